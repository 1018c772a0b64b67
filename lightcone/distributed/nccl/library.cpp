#include "lightcone/distributed/nccl/library.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <type_traits>
#include <vector>

#include "lightcone/backends/cuda/library.h"
#include "lightcone/base/error.h"
#include "lightcone/cache/environment.h"

namespace lc::distributed::nccl {
namespace {

constexpr const char* kVariable = "LIGHTCONE_NCCL";
constexpr const char* kInstall =
    "install it with your system's packages (libnccl2), or alone: pip install nvidia-nccl-cu12 or nvidia-nccl-cu13, "
    "and "
    "name its libnccl.so.2 in ";

std::string version_words(int version) {
  return str_cat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

void* open_file(const std::string& wish) {
  const auto names = wish.empty() ? backends::cuda::with_toolkit_folders({"libnccl.so.2"}) : std::vector{wish};
  std::string why;
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* const said = ::dlerror();
    if (why.empty() && said) why = said;
  }
  throw Error("nccl",
              str_cat("NCCL, by which GPUs exchange arrays, cannot be loaded: ", why, "; ", kInstall, kVariable));
}

}  // namespace

const Library& Library::open(const std::string& path) {
  static std::mutex mutex;
  // Libraries by the system's handle. The map is never destroyed, because communicators may end at exit.
  static auto& known = *new std::map<void*, Library>;
  void* const handle = open_file(path.empty() ? env(kVariable) : path);
  const std::lock_guard lock(mutex);
  if (const auto it = known.find(handle); it != known.end()) {
    ::dlclose(handle);  // the library stays: it has been opened before
    return it->second;
  }
  Library l;
  std::string lacks;
  const auto find = [&](auto& to, const char* symbol) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(::dlsym(handle, symbol));
    if (!to && lacks.empty()) lacks = symbol;
  };
#define LIGHTCONE_NCCL_FIND(name, symbol, ...) find(l.api_.name, symbol);
  LIGHTCONE_NCCL_FUNCTIONS(LIGHTCONE_NCCL_FIND)
#undef LIGHTCONE_NCCL_FIND
  find(l.api_.words, "ncclGetErrorString"), find(l.api_.last_error, "ncclGetLastError");
  const bool asked = l.api_.version && l.api_.version(&l.version_) == Result::Success;
  if (asked && lacks.empty() && l.version_ >= kOldest) return known.emplace(handle, l).first->second;
  ::dlclose(handle);
  throw Error("nccl", str_cat("the NCCL found ", asked ? str_cat("is of version ", version_words(l.version_)) : "",
                              asked ? "" : "does not say its version",
                              lacks.empty() ? "" : str_cat(" and has no function ", lacks), ": version ",
                              version_words(kOldest), " or a newer one of NCCL 2 is needed; ", kInstall, kVariable));
}

std::string Library::name() const { return "NCCL " + version_words(version_); }

std::string Library::words(Result r) const {
  const char* const text = api_.words(r);
  const char* const more = api_.last_error(nullptr);
  return str_cat(text ? text : "an error", " (", static_cast<int>(r), ")", more && *more ? ": " : "", more ? more : "");
}

}  // namespace lc::distributed::nccl
