#include "program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "runtime.h"
#include "translate.h"

extern char** environ;

namespace lc::simulators::metal {
namespace {

const std::vector<std::string> kFlags {
  "-std=gnu++14", "-O1", "-w", "-fPIC", "-shared", "-nostdlib", "-fvisibility=hidden", "-ffp-contract=off",
      "-fno-math-errno", "-fsigned-char", "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables",
#if defined(__x86_64__)
      "-march=native",
#endif
      "-I" FAKE_METAL_SHIM, "-I" FAKE_METAL_INTERFACE, "-include", "msl.h"
};

// RAII: a temporary folder, removed with its files.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "fake_metal_XXXXXX").string();
    if (::mkdtemp(name.data())) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }
  bool made() const { return !path_.empty(); }

 private:
  std::string path_;
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

bool run_compiler(std::vector<std::string> words, const std::string& log) {
  words.insert(words.begin(), FAKE_METAL_CXX);
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  int status = 1;
  return !failed && ::waitpid(child, &status, 0) == child && status == 0;
}

// Returns the text with its macros expanded, because the translation must also see language constructs inside macros.
std::string preprocessed(const std::string& msl, const Folder& folder) {
  static const std::string library = "#include <metal_stdlib>";  // included later by -include
  std::string text = msl;
  if (const std::size_t at = text.find(library); at != std::string::npos) text.erase(at, library.size());
  std::ofstream(folder.file("program.metal")) << text;
  return run_compiler(
             {"-E", "-P", "-x", "c++", "-nostdinc", "-w", folder.file("program.metal"), "-o", folder.file("program.i")},
             folder.file("log"))
             ? read_file(folder.file("program.i"))
             : msl;
}

}  // namespace

std::shared_ptr<const Program> Program::make(const std::string& msl, std::string& error) {
  // never destroyed: devices may be used at exit
  static auto& known = *new std::map<std::string, std::shared_ptr<const Program>>;
  if (const auto it = known.find(msl); it != known.end()) return it->second;
  const Folder folder;
  if (!folder.made()) return error = "there is no folder for temporary files", nullptr;
  // a text without macros is translated as it is, so that errors have its line numbers
  const Translation t =
      translate(msl.find("#define") == std::string::npos ? msl : preprocessed(msl, folder), Target::Cpu);
  if (!t.error.empty()) return error = t.error, nullptr;
  ++control().compiles;
  std::ofstream(folder.file("program.cpp")) << t.cpp;
  std::vector<std::string> words = kFlags;
  words.insert(words.end(), {folder.file("program.cpp"), "-lgcc", "-o", folder.file("program.so")});
  if (!run_compiler(std::move(words), folder.file("log"))) {
    error = read_file(folder.file("log"));
    if (error.empty()) error = "the C++ compiler " FAKE_METAL_CXX " cannot be run";
    return nullptr;
  }
  std::shared_ptr<Program> p(new Program);
  p->library_ = ::dlopen(folder.file("program.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (p->library_) p->module_ = static_cast<const LcMetalModule*>(::dlsym(p->library_, "lc_metal_module"));
  if (!p->module_) return error = std::string("the compiled program cannot be loaded: ") + ::dlerror(), nullptr;
  return known.emplace(msl, std::move(p)).first->second;
}

Program::~Program() {
  if (library_) ::dlclose(library_);
}

}  // namespace lc::simulators::metal
