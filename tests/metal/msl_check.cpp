#include "msl_check.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "paths.h"
#include "simulators/metal/translate.h"

namespace lc::test {
namespace {

namespace metal = simulators::metal;

const char* clang() {
  static const char* const found = [] {
    for (const char* name :
         {"clang++", "clang++-20", "clang++-19", "clang++-18", "clang++-17", "clang++-16", "clang++-15"})
      if (std::system((std::string(name) + " --version > /dev/null 2>&1").c_str()) == 0) return name;
    return static_cast<const char*>(nullptr);
  }();
  return found;
}

// Stores clang's output in `said`; returns true if clang succeeded.
bool run_clang(const std::string& arguments, std::string& said) {
  std::FILE* out = ::popen((std::string(clang()) + " " + arguments + " 2>&1").c_str(), "r");
  if (!out) return said = "clang cannot be started", false;
  char part[512];
  said.clear();
  while (std::fgets(part, sizeof part, out)) said += part;
  const bool content = ::pclose(out) == 0;
  if (!content && said.empty()) said = "clang fails without a word";
  return content;
}

std::string check_in(const std::string& folder, const std::string& text) {
  const std::string file = folder + "/program.cpp";
  std::string expanded = text;
  // language constructs inside macros must be translated, too; a text without macros keeps its line numbers
  if (text.find("#define") != text.npos) {
    const std::string library = "#include <metal_stdlib>";
    std::string alone = text;
    if (const std::size_t at = alone.find(library); at != alone.npos) alone.erase(at, library.size());
    std::ofstream(file) << alone;
    if (!run_clang("-E -P -w '" + file + "'", expanded)) return expanded;
  }
  const metal::Translation t = metal::translate(expanded, metal::Target::Check);
  if (!t.error.empty()) return t.error;
  std::ofstream(file) << t.cpp;
  std::string said;
  run_clang(std::string("-fsyntax-only -std=gnu++14 -w -Wno-c++11-narrowing -include '") + paths::kSource +
                "/tests/metal/msl_declarations.h' '" + file + "'",
            said);
  return said;
}

}  // namespace

bool can_check_msl() { return clang() != nullptr; }

std::string check_msl(const std::string& text) {
  std::string folder = (std::filesystem::temp_directory_path() / "msl_check_XXXXXX").string();
  if (!::mkdtemp(folder.data())) return "there is no folder for temporary files";
  std::string said = check_in(folder, text);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return said;
}

}  // namespace lc::test
