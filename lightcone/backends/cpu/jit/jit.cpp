#include "lightcone/backends/cpu/jit/jit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>

#include "lightcone/backends/cpu/jit/c_flags.h"
#include "lightcone/backends/cpu/jit/compiler_process.h"
#include "lightcone/backends/cpu/jit/elf_check.h"
#include "lightcone/backends/cpu/jit/identity.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/cache/environment.h"
#include "lightcone/cache/object_cache.h"
#include "lightcone/codegen/c/prelude.h"

namespace lc::backends::cpu {
namespace {

constexpr std::size_t kFunctionsPerUnit = 6;

bool is_program(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode) &&
         ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
}

// A name without a slash is looked up in absolute PATH entries only, never in the working directory.
std::string on_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return is_program(program) ? program : "";
  std::istringstream path(env("PATH").empty() ? "/usr/bin:/bin" : env("PATH"));
  for (std::string dir; std::getline(path, dir, ':');)
    if (const std::string full = dir + "/" + program; dir.starts_with('/') && is_program(full)) return full;
  return "";
}

// dlopen() identifies a library by its path, even if the descriptor's number has been reused for another file since. A
// counter encoded as "./" and "//" makes every path unique.
std::string fresh_path(int fd) {
  static std::atomic<unsigned> counter{0};
  std::string path = "/proc/self/fd/";
  for (unsigned n = counter++; n > 0; n >>= 1) path += n & 1 ? "./" : "//";
  return path + std::to_string(fd);
}

// Loads a shared object. Returns nullptr and sets `problem` on failure.
std::shared_ptr<void> open_library(std::string_view object, std::string& problem) {
  const cache::Descriptor file = memory_file(object);
  void* handle = ::dlopen(fresh_path(file.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) problem = ::dlerror();
  return handle ? std::shared_ptr<void>(handle, [](void* h) { ::dlclose(h); }) : nullptr;
}

// Several functions that are compiled together.
struct Unit {
  std::string text;
  std::vector<std::string> names;  // names of its functions
  std::string key;                 // cache key
  std::shared_ptr<void> library;
  std::vector<KernelFunction> functions;

  // Loads the object and looks up the functions. Returns "" or what is wrong with the object.
  std::string load(std::string_view object) {
    std::string problem;
    library = open_library(object, problem);
    functions.clear();
    for (const std::string& name : names)
      if (library) functions.push_back(reinterpret_cast<KernelFunction>(::dlsym(library.get(), name.c_str())));
    if (library && std::find(functions.begin(), functions.end(), nullptr) != functions.end())
      problem = "it lacks a function";
    if (!problem.empty()) library = nullptr;
    return problem;
  }
};

// Distributes the sources over units; sources that share a text are compiled once.
std::vector<Unit> units_of(std::span<const Source> sources) {
  std::map<std::string_view, std::string_view> known;  // name -> text
  std::vector<Unit> units;
  for (const Source& s : sources) {
    const auto [it, fresh] = known.try_emplace(s.name, s.text);
    check(fresh || s.text.empty() || it->second == s.text, "two kernels of one name");
    if (!fresh) continue;
    if (units.empty() || units.back().names.size() == kFunctionsPerUnit)
      units.emplace_back().text = codegen::c_prelude();
    units.back().names.push_back(s.name);
    units.back().text += s.text;
  }
  return units;
}

// identity(), computed once per compiler; "" is retried.
std::string known_identity(const std::string& compiler) {
  static std::mutex lock;
  static std::map<std::string, std::string> identities;
  const std::lock_guard hold(lock);
  std::string& known = identities[compiler];
  if (known.empty()) known = identity(compiler);
  return known;
}

// Compilers that rejected GCC-only options. A name does not reveal the compiler behind a link or a script.
class Refusals {
 public:
  // Records the compiler and returns true if its output mentions a GCC-only option from `args`.
  bool learn(const std::vector<std::string>& args, std::string_view words) {
    const auto refused = [&](std::string_view option) {
      return words.find(option) != std::string_view::npos && std::find(args.begin(), args.end(), option) != args.end();
    };
    if (std::none_of(kGccOptions.begin(), kGccOptions.end(), refused)) return false;
    const std::lock_guard hold(lock_);
    return refused_.insert(args.front()), true;
  }
  std::vector<std::string> without(std::vector<std::string> args) {
    const std::lock_guard hold(lock_);
    if (refused_.contains(args.front()))
      for (const std::string_view option : kGccOptions) std::erase(args, option);
    return args;
  }

 private:
  std::mutex lock_;
  std::set<std::string> refused_;
};

// Returns whether the compiler compiles the prelude alone, without any kernels.
bool works(const std::vector<std::string>& args) try {
  return !CompilerProcess(args, codegen::c_prelude()).finish().empty();
} catch (const CompilerUnfit&) {
  return false;
}

// Caches an object only after it has been loaded, so that the cache never holds an object that does not work.
void keep(Unit& u, CompilerProcess& process, const std::vector<std::string>& args, const cache::ObjectCache& cache) {
  std::string object;
  try {
    object = process.finish();
  } catch (const CompilerUnfit& e) {
    if (speaks_of_text(e.problem()) && works(args)) throw Error("jit", e.problem());
    throw;
  }
  if (const std::string problem = u.load(object); !problem.empty())
    throw CompilerUnfit("jit", str_cat("what ", args.front(), " compiled cannot be loaded: ", problem));
  cache.keep(u.key, object);
}

// Runs one process more than there are processors, because the oldest one is waited for while another may already have
// ended. The longest texts start first, so that none of them is left for the end.
void compile_all(std::vector<Unit*> units, const std::vector<std::string>& args, const cache::ObjectCache& cache) {
  std::ranges::stable_sort(units, std::greater(), [](const Unit* u) { return u->text.size(); });
  const auto most = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))) + 1;
  std::deque<std::pair<Unit*, std::unique_ptr<CompilerProcess>>> running;
  for (std::size_t next = 0; next < units.size() || !running.empty();) {
    if (next < units.size() && running.size() < most) {
      running.emplace_back(units[next], std::make_unique<CompilerProcess>(args, units[next]->text));
      ++next;
      continue;
    }
    keep(*running.front().first, *running.front().second, args, cache);
    running.pop_front();
  }
}

// Compiles, and retries without GCC's options if the compiler refuses one by name. Compilers check options before they
// read any text.
void compile_as_it_likes(const std::vector<Unit*>& units, const std::vector<std::string>& args,
                         const cache::ObjectCache& cache) {
  static Refusals refusals;
  const std::vector<std::string> taken = refusals.without(args);
  try {
    return compile_all(units, taken, cache);
  } catch (const CompilerUnfit& e) {
    if (!refusals.learn(taken, e.problem())) throw;
  }
  compile_all(units, refusals.without(taken), cache);
}

}  // namespace

bool compiler_named(const JitOptions& o) { return !o.compiler.empty() || !env("LIGHTCONE_CC").empty(); }

std::string find_compiler(const JitOptions& o) {
  const std::string wish = o.compiler.empty() ? env("LIGHTCONE_CC") : o.compiler;
  if (wish == "none") return "";
  if (wish == kLlvm) return wish;
  if (!wish.empty()) {
    if (std::string found = on_path(wish); !found.empty()) return found;
    throw Error("jit",
                str_cat("the C compiler '", wish,
                        "' (LIGHTCONE_CC) is no program that can be run: name another, 'llvm' for LLVM's library or "
                        "'none' for interpreted kernels"));
  }
  for (const char* name : {"cc", "gcc", "clang"})
    if (const std::string found = on_path(name); !found.empty()) return found;
  return find_llvm(o).path.empty() ? "" : std::string(kLlvm);
}

Jitted jit(std::span<const Source> sources, const JitOptions& options) {
  Jitted result;
  if (sources.empty()) return result;
  const std::string compiler = find_compiler(options);
  if (compiler == kLlvm) return jit_llvm(sources, options);
  if (compiler.empty())
    throw Error(
        "jit",
        "neither a C compiler nor LLVM's library was found; install gcc, clang or libllvm14, or set LIGHTCONE_CC");
  std::vector<std::string> args = c_flags(compiler, options.vector, options.isa.value_or(detect_isa()));
  args.insert(args.begin(), compiler);
  args.insert(args.end(), {"-o", CompilerProcess::kTarget, "-", "-lm"});
  std::string toolchain = known_identity(compiler);
  const cache::ObjectCache cache =
      toolchain.empty() ? cache::ObjectCache() : cache::ObjectCache({options.cache_dir, options.cache_size});
  for (const std::string& a : args) toolchain += str_cat(" ", a);
  std::vector<Unit> units = units_of(sources);
  std::vector<Unit*> missing;
  for (Unit& u : units) {
    u.key = cache.name({u.text, toolchain}, ".so");
    const std::string object = cache.find(u.key);
    if (!object.empty() && whole_elf(object, ET_DYN) && u.load(object).empty()) {
      ++result.cached;
      continue;
    }
    if (!object.empty()) cache.drop(u.key);  // valid, but from another library or machine
    missing.push_back(&u);
  }
  compile_as_it_likes(missing, args, cache);
  if (!missing.empty()) cache.trim();
  result.compiled = static_cast<int>(missing.size());
  result.cache_problem = cache.problem();
  std::map<std::string_view, KernelFunction> functions;
  for (const Unit& u : units) {
    result.libraries.push_back(u.library);
    for (std::size_t k = 0; k < u.names.size(); ++k) functions[u.names[k]] = u.functions[k];
  }
  for (const Source& s : sources) result.functions.push_back(functions.at(s.name));
  return result;
}

}  // namespace lc::backends::cpu
