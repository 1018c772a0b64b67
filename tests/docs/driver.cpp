// Runs a program of a page:  docs_driver FILE.so FUNCTION
// The whole library is linked into this program, once; what a page shows is compiled into a shared object that finds it
// here. An Error's sentence goes to standard error; the exit status is 1, or 3 where something else was thrown.
#include <dlfcn.h>

#include <cstdio>
#include <exception>

#include "lightcone/core/error.h"

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
