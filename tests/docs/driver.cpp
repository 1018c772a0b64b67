// Runs a program of a documentation page:  docs_driver FILE.so FUNCTION
// The library is linked into this program. The code of a page is compiled to a shared object that resolves its symbols
// here. An Error's message goes to standard error. The exit status is 1 for an Error and 3 for another exception.
#include <dlfcn.h>

#include <cstdio>
#include <exception>

#include "lightcone/base/error.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* object = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  void* function = object ? dlsym(object, argv[2]) : nullptr;
  if (!function) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  try {
    return reinterpret_cast<int (*)()>(function)();
  } catch (const lc::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "not an lc::Error: %s\n", e.what());
    return 3;
  }
}
