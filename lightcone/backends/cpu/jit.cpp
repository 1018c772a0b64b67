#include "lightcone/backends/cpu/jit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "lightcone/backends/cpu/llvm.h"
#include "lightcone/backends/cpu/object_cache.h"
#include "lightcone/core/error.h"

extern char** environ;

namespace lc::host {
namespace {

constexpr std::size_t kFunctionsPerUnit = 6;

std::string on_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0 ? program : "";
  std::istringstream path(env("PATH").empty() ? "/usr/bin:/bin" : env("PATH"));
  for (std::string dir; std::getline(path, dir, ':');) {
    const std::string full = dir + "/" + program;
    if (::access(full.c_str(), X_OK) == 0) return full;
  }
  return "";
}

int memory_file(const std::string& content) {
  const int fd = ::memfd_create("lightcone", MFD_CLOEXEC);
  if (fd < 0) throw Error("jit", "the system gives no memory file");
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::write(fd, content.data() + done, content.size() - done);
    if (n <= 0) {
      ::close(fd);
      throw Error("jit", "writing a memory file failed");
    }
    done += static_cast<std::size_t>(n);
  }
  ::lseek(fd, 0, SEEK_SET);
  return fd;
}

std::string read_all(int fd) {
  std::string s;
  ::lseek(fd, 0, SEEK_SET);
  std::array<char, 65536> buffer;
  for (ssize_t n; (n = ::read(fd, buffer.data(), buffer.size())) > 0;)
    s.append(buffer.data(), static_cast<std::size_t>(n));
  return s;
}

std::string first_words(int fd) {
  const std::string s = read_all(fd).substr(0, 600);
  return s.empty() ? "it said nothing; LIGHTCONE_CC names another C compiler, LIGHTCONE_CC=none does without" : s;
}

// By its name or that of the file it leads to. Clang takes GCC's options but those of GCC's own vectoriser.
bool is_clang(const std::string& compiler) {
  std::error_code none;
  const std::filesystem::path file = std::filesystem::canonical(compiler, none);
  return (std::filesystem::path(compiler).filename().string() + file.filename().string()).find("clang") !=
         std::string::npos;
}

// One compiler process: source from one memory file, shared object into another, words into a third.
struct Process {
  int in = -1, out = -1, err = -1;
  pid_t pid = -1;
  Process(const std::string& compiler, const std::string& text) {
    in = memory_file(text);
    out = memory_file("");
    err = memory_file("");
    const std::string target = "/proc/self/fd/3";
    // Not -O3: GCC 12 unrolls short inner loops there and then vectorises the outer one with
    // conditional loads of the wrong elements.
    std::vector<std::string> args = {compiler,
                                     "-x",
                                     "c",
                                     "-std=gnu11",
                                     "-O2",
                                     "-ftree-vectorize",
                                     "-march=native",
                                     "-fPIC",
                                     "-shared",
                                     "-fno-math-errno",
                                     "-fno-trapping-math",
                                     "-ffp-contract=fast",
                                     "-w",
                                     "-pipe",
                                     "-o",
                                     target,
                                     "-",
                                     "-lm"};
    if (!is_clang(compiler)) args.insert(args.begin() + 1, "-fvect-cost-model=dynamic");
    std::vector<char*> argv;
    for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, err, 1);
    posix_spawn_file_actions_adddup2(&actions, err, 2);
    posix_spawn_file_actions_adddup2(&actions, out, 3);
    const int rc = ::posix_spawn(&pid, compiler.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0) throw Error("jit", cat("cannot start ", compiler, ": ", std::strerror(rc)));
  }
  Process(const Process&) = delete;
  ~Process() {
    if (pid > 0) {
      int status;
      ::waitpid(pid, &status, 0);
    }
    for (int fd : {in, out, err})
      if (fd >= 0) ::close(fd);
  }
  std::string finish(const std::string& compiler) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    pid = -1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      throw Error("jit", cat(compiler, " failed with ", WIFEXITED(status) ? "exit status " : "signal ",
                             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), ": ", first_words(err)));
    return read_all(out);
  }
};

// dlopen() takes a path it has seen for the library it loaded then, even when the descriptor's
// number has been given to another file since. So no path is used twice: a counter is written
// into it as "./" and "//".
std::string fresh_path(int fd) {
  static std::atomic<unsigned> counter{0};
  std::string path = "/proc/self/fd/";
  for (unsigned n = counter++; n > 0; n >>= 1) path += n & 1 ? "./" : "//";
  return path + std::to_string(fd);
}

std::shared_ptr<void> open_library(const std::string& object) {
  const int fd = memory_file(object);
  const std::string path = fresh_path(fd);
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* why = handle ? "" : ::dlerror();
  ::close(fd);
  if (!handle) throw Error("jit", cat("cannot load a compiled kernel: ", why));
  return {handle, [](void* h) { ::dlclose(h); }};
}

struct Unit {
  std::vector<std::size_t> members;  // of the distinct sources
  std::string text, key, object;
};

}  // namespace

std::string find_compiler(const JitOptions& o) {
  const std::string wish = o.compiler.empty() ? env("LIGHTCONE_CC") : o.compiler;
  if (wish == "none") return "";
  if (wish == kLlvm) return wish;
  if (!wish.empty()) {
    if (std::string found = on_path(wish); !found.empty()) return found;
    throw Error("jit", cat("the C compiler '", wish,
                           "' (LIGHTCONE_CC) is no program that can be run: name another, 'llvm' for LLVM's library or "
                           "'none' for interpreted kernels"));
  }
  for (const char* name : {"cc", "gcc", "clang"})
    if (const std::string found = on_path(name); !found.empty()) return found;
  return find_llvm(o).path.empty() ? "" : std::string(kLlvm);
}

Jitted jit(std::span<const Source> sources, const JitOptions& options) {
  Jitted result;
  result.functions.resize(sources.size());
  if (sources.empty()) return result;
  const std::string compiler = find_compiler(options);
  if (compiler == kLlvm) return jit_llvm(sources, options);
  if (compiler.empty())
    throw Error(
        "jit",
        "neither a C compiler nor LLVM's library was found; install gcc, clang or libllvm14, or set LIGHTCONE_CC");
  static std::mutex lock;
  static std::map<std::string, std::string> identities;
  std::string id;
  {
    const std::lock_guard hold(lock);
    std::string& known = identities[compiler];
    if (known.empty()) known = identity(compiler);
    id = known;
  }
  std::map<std::string, std::size_t> distinct;  // by name: names are content hashes
  std::vector<std::size_t> unique;
  for (std::size_t k = 0; k < sources.size(); ++k)
    if (distinct.emplace(sources[k].name, unique.size()).second) unique.push_back(k);
  std::vector<Unit> units;
  for (std::size_t k = 0; k < unique.size(); ++k) {
    if (k % kFunctionsPerUnit == 0) units.push_back({{}, std::string(c_prelude()), "", ""});
    units.back().members.push_back(unique[k]);
    units.back().text += sources[unique[k]].text;
  }
  const std::string dir = cache_folder(options);
  std::vector<Unit*> missing;
  for (Unit& u : units) {
    u.key = content_hash({u.text, id}) + ".so";
    u.object = kept_object(dir, u.key);
    if (u.object.empty()) missing.push_back(&u);
    else ++result.cached;
  }
  const std::size_t jobs = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  for (std::size_t k = 0; k < missing.size(); k += jobs) {
    std::vector<std::unique_ptr<Process>> running;
    for (std::size_t j = k; j < std::min(missing.size(), k + jobs); ++j)
      running.push_back(std::make_unique<Process>(compiler, missing[j]->text));
    for (std::size_t j = 0; j < running.size(); ++j) {
      Unit& u = *missing[k + j];
      u.object = running[j]->finish(compiler);
      ++result.compiled;
      keep_object(dir, u.key, u.object);
    }
  }
  std::map<std::string, KernelFunction> functions;
  for (Unit& u : units) {
    const auto library = open_library(u.object);
    result.libraries.push_back(library);
    for (std::size_t m : u.members) {
      void* f = ::dlsym(library.get(), sources[m].name.c_str());
      if (!f) throw Error("jit", "a compiled kernel lacks its function");
      functions[sources[m].name] = reinterpret_cast<KernelFunction>(f);
    }
  }
  for (std::size_t k = 0; k < sources.size(); ++k) result.functions[k] = functions.at(sources[k].name);
  return result;
}

}  // namespace lc::host
