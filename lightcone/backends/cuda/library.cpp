#include "lightcone/backends/cuda/library.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "lightcone/base/error.h"
#include "lightcone/cache/environment.h"

namespace lc::backends::cuda {
namespace {

constexpr int kOldestDriver = 12000;  // the functions that update graphs of kernels are of this version
constexpr const char* kDriverVariable = "LIGHTCONE_CUDA_DRIVER";
constexpr const char* kCompilerVariable = "LIGHTCONE_NVRTC";
constexpr const char* kInstallDriver = "install NVIDIA's driver for this machine";
constexpr const char* kInstallCompiler = "install the CUDA toolkit, or NVRTC alone: pip install nvidia-cuda-nvrtc";

struct Symbol {
  const char* name;
  void** to;
};
// Looks up all symbols. Returns the name of the first that the library does not have, or null.
const char* missing(void* library, std::initializer_list<Symbol> symbols) {
  for (const Symbol& s : symbols)
    if (!(*s.to = ::dlsym(library, s.name))) return s.name;
  return nullptr;
}

std::string why_not() {
  const char* said = ::dlerror();
  return said ? said : "the system does not say why";
}

// Drivers by the system's handle of their library, so that two paths of one library are one driver.
struct Drivers {
  std::mutex mutex;
  std::map<void*, std::shared_ptr<Driver>> all;
};
Drivers& drivers() {
  static Drivers d;
  return d;
}

// Returns the names under which NVRTC may be found, best first.
std::vector<std::string> compiler_names(int driver_version) {
  std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
  // A driver does not load code that a compiler of a later major version made.
  const int major = driver_version / 1000;
  if (major) {
    std::stable_partition(names.begin(), names.end(),
                          [&](const std::string& n) { return std::stoi(n.substr(n.find(".so.") + 4)) <= major; });
  }
  names.emplace_back("libnvrtc.so");
  return with_toolkit_folders(names);
}

// Loads a second library in NVRTC's folder. NVRTC looks for it by name alone, and finds it if it is loaded already.
void load_builtins(const std::string& file) {
  std::error_code ignored;
  const auto folder = std::filesystem::path(file).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with("libnvrtc-builtins.so"))
      ::dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
}

// Returns the file that contains a function.
std::string file_of(const void* function) {
  Dl_info info{};
  return ::dladdr(function, &info) && info.dli_fname ? info.dli_fname : "";
}

std::string file_identity(const std::string& file) {
  struct stat s {};
  if (::stat(file.c_str(), &s) != 0) return "";
  return str_cat(file, " ", s.st_size, " ", s.st_mtim.tv_sec, ".", s.st_mtim.tv_nsec);
}

void* open_compiler(const std::string& wish, int driver_version) {
  if (!wish.empty()) {
    if (void* library = ::dlopen(wish.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    throw Error("cuda", str_cat("NVRTC, which compiles kernels, cannot be loaded from '", wish, "': ", why_not(),
                                "; give ", "the path of libnvrtc.so in CudaOptions::compiler or ", kCompilerVariable));
  }
  for (const std::string& name : compiler_names(driver_version))
    if (void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  throw Error("cuda",
              str_cat("NVRTC, which compiles kernels, was not found: ", kInstallCompiler, ", and name its libnvrtc.so ",
                      "in ", kCompilerVariable, " where the system does not find it"));
}

}  // namespace

std::vector<std::string> with_toolkit_folders(const std::vector<std::string>& names) {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string home = env(variable); !home.empty()) folders.push_back(home + "/lib64/");
  folders.emplace_back("/usr/local/cuda/lib64/");
  folders.emplace_back("/usr/local/cuda/targets/x86_64-linux/lib/");
  folders.emplace_back("/opt/cuda/lib64/");
  std::vector<std::string> all = names;
  for (const std::string& folder : folders)
    for (const std::string& name : names) all.push_back(folder + name);
  return all;
}

std::string version_text(int version) { return str_cat(version / 1000, ".", version % 1000 / 10); }

// ---- the driver -------------------------------------------------------------------------------

std::shared_ptr<Driver> Driver::open(const std::string& path) {
  const std::string wish = path.empty() ? env(kDriverVariable) : path;
  const std::string name = wish.empty() ? "libcuda.so.1" : wish;
  Drivers& known = drivers();
  const std::lock_guard lock(known.mutex);
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error("cuda", str_cat("the CUDA driver cannot be loaded: ", why_not(), "; ", kInstallDriver, ", or name its ",
                                "library in ", kDriverVariable));
  if (const auto it = known.all.find(library); it != known.all.end()) {
    ::dlclose(library);  // the library stays: it has been opened before
    return it->second;
  }
  const std::shared_ptr<Driver> d(new Driver);
  d->path_ = name;
  api::Driver& a = d->api_;
#define LIGHTCONE_SYMBOL(name, symbol, ...) {symbol, reinterpret_cast<void**>(&a.name)},
  const char* const lacks = missing(library, {LIGHTCONE_CUDA_FUNCTIONS(LIGHTCONE_SYMBOL)});
#undef LIGHTCONE_SYMBOL
  const bool asked = a.driver_version && a.driver_version(&d->version_) == api::Result::Success;
  if (lacks || !asked || d->version_ < kOldestDriver) {
    ::dlclose(library);
    const std::string has =
        d->version_ ? str_cat("is of version ", version_text(d->version_)) : "does not say its version";
    throw Error("cuda",
                str_cat("the CUDA driver '", name, "' ", has, lacks ? str_cat(" and has no function ", lacks) : "",
                        ": version ", version_text(kOldestDriver), " or a newer one is needed (NVIDIA's driver 525 ",
                        "has it); ", kInstallDriver));
  }
  known.all.emplace(library, d);
  return d;
}

std::string Driver::words(api::Result r) const {
  const char *name = nullptr, *text = nullptr;
  const bool known = api_.error_name(r, &name) == api::Result::Success &&
                     api_.error_string(r, &text) == api::Result::Success && name && text;
  const int code = static_cast<int>(r);
  return known ? str_cat(text, " (", name, ", ", code, ")") : str_cat("error ", code);
}

void Driver::initialise() const {
  const api::Result r = api_.init(0);
  using api::Result;
  if (r == Result::Success) return;
  const char* advice = "see whether nvidia-smi lists the device, and whether this user may open /dev/nvidia*";
  if (r == Result::StubLibrary)
    advice = "the library found is the toolkit's stub: take the driver's own out of LD_LIBRARY_PATH's way";
  if (r == Result::SystemDriverMismatch || r == Result::CompatNotSupported)
    advice =
        "the driver's library and its kernel module are of different versions: restart the machine, or install the "
        "driver anew";
  throw Error("cuda", str_cat("the CUDA driver '", path_, "' finds no device: ", words(r), "; ", advice));
}

// ---- NVRTC ------------------------------------------------------------------------------------

std::shared_ptr<const Compiler> Compiler::open(const std::string& path, int driver_version) {
  const std::string wish = path.empty() ? env(kCompilerVariable) : path;
  void* const library = open_compiler(wish, driver_version);  // stays loaded, because its threads and tables do
  const std::shared_ptr<Compiler> c(new Compiler);
  api::Compiler& a = c->api_;
#define LIGHTCONE_SYMBOL(name, symbol, ...) {symbol, reinterpret_cast<void**>(&a.name)},
  const char* const lacks = missing(library, {LIGHTCONE_NVRTC_FUNCTIONS(LIGHTCONE_SYMBOL)});
#undef LIGHTCONE_SYMBOL
  if (lacks) {
    ::dlclose(library);
    throw Error("cuda", str_cat("the library ", wish.empty() ? "libnvrtc" : "'" + wish + "'", " has no function ",
                                lacks, ": NVRTC 11.2 or a newer one is needed; ", kInstallCompiler));
  }
  int major = 0, minor = 0, count = 0;
  const bool asked = a.version(&major, &minor) == api::CompilerResult::Success &&
                     a.architecture_count(&count) == api::CompilerResult::Success && count > 0;
  if (asked) c->architectures_.resize(static_cast<std::size_t>(count));
  if (!asked || a.architectures(c->architectures_.data()) != api::CompilerResult::Success)
    throw Error("cuda", str_cat("NVRTC does not say which devices it compiles for; ", kInstallCompiler));
  std::sort(c->architectures_.begin(), c->architectures_.end());
  c->version_ = major * 1000 + minor * 10;
  const std::string file = file_of(reinterpret_cast<const void*>(a.version));
  load_builtins(file);
  c->identity_ = str_cat("NVRTC ", version_text(c->version_), " ", file_identity(file));
  return c;
}

}  // namespace lc::backends::cuda
