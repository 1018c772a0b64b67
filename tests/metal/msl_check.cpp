#include "msl_check.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fake_metal/translate.h"

namespace lc::test {
namespace {

const char* clang() {
  static const char* const found = [] {
    for (const char* name :
         {"clang++", "clang++-20", "clang++-19", "clang++-18", "clang++-17", "clang++-16", "clang++-15"})
      if (std::system((std::string(name) + " --version > /dev/null 2>&1").c_str()) == 0) return name;
    return static_cast<const char*>(nullptr);
  }();
  return found;
}

}  // namespace

bool can_check_msl() { return clang() != nullptr; }

std::string check_msl(const std::string& text) {
  const fake::Translation t = fake::translate(text, fake::Target::Check);
  if (!t.error.empty()) return t.error;
  std::string folder = (std::filesystem::temp_directory_path() / "msl_check_XXXXXX").string();
  if (!::mkdtemp(folder.data())) return "there is no folder for temporary files";
  const std::string file = folder + "/program.cpp";
  std::ofstream(file) << t.cpp;
  const std::string command = std::string(clang()) +
                              " -fsyntax-only -std=c++14 -w -Wno-c++11-narrowing -include '" LIGHTCONE_SOURCE
                              "/tests/metal/msl_declarations.h' '" +
                              file + "' 2>&1";
  std::string said;
  if (std::FILE* out = ::popen(command.c_str(), "r")) {
    char part[512];
    while (std::fgets(part, sizeof part, out)) said += part;
    if (::pclose(out) != 0 && said.empty()) said = "clang fails without a word";
  } else {
    said = "clang cannot be started";
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return said;
}

}  // namespace lc::test
