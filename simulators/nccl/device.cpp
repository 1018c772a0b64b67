#include "device.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

namespace lc::simulators::nccl {
namespace {

int remember(dl_phdr_info* info, std::size_t, void* to) {
  if (info->dlpi_name && *info->dlpi_name) static_cast<std::vector<std::string>*>(to)->push_back(info->dlpi_name);
  return 0;
}

// Returns true if the library itself has the function, and not one that it is linked with.
template <class Function>
bool find(void* library, const std::string& file, const char* name, Function& to) {
  void* const f = ::dlsym(library, name);
  Dl_info info{};
  if (f == nullptr || ::dladdr(f, &info) == 0 || info.dli_fname == nullptr || file != info.dli_fname) return false;
  to = reinterpret_cast<Function>(f);
  return true;
}

}  // namespace

Device current_device() {
  std::vector<std::string> files;
  ::dl_iterate_phdr(remember, &files);
  Device found;
  for (const std::string& file : files) {
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr) continue;
    Device d;
    int (*current)(void**) = nullptr;
    void* context = nullptr;
    if (find(library, file, "fake_cuda_library_work", d.work) &&
        find(library, file, "fake_cuda_library_call", d.call) && find(library, file, "cuCtxGetCurrent", current) &&
        current(&context) == 0 && context != nullptr) {
      if (found) {
        ::dlclose(library);
        return {};
      }
      found = d;
    }
    ::dlclose(library);
  }
  return found;
}

}  // namespace lc::simulators::nccl
