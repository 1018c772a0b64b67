#include "lightcone/backends/opencl/library.h"

#include <dlfcn.h>

#include <type_traits>

#include "lightcone/base/error.h"
#include "lightcone/cache/environment.h"

namespace lc::backends::opencl {
namespace {

constexpr const char* kVariable = "LIGHTCONE_OPENCL";
constexpr const char* kAdvice =
    "; install the driver of your device and the loader (on Debian: ocl-icd-libopencl1, and pocl-opencl-icd for the "
    "processor)";

std::string why() {
  const char* said = ::dlerror();
  return said ? said : "the system does not say why";
}

// Opens a library that is never closed: drivers have threads of their own that outlive every object.
void* open(const std::string& path) { return ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

void* open_named(const std::string& path, const char* who) {
  if (void* const library = open(path)) return library;
  throw Error("opencl", str_cat("the library '", path, "' that ", who, " names cannot be loaded: ", why(), kAdvice));
}

void* open_system(std::string& path) {
  std::string tried;
  for (const char* name : {"libOpenCL.so.1", "libOpenCL.so", "/System/Library/Frameworks/OpenCL.framework/OpenCL"}) {
    path = name;
    if (void* const library = open(path)) return library;
    tried += str_cat(tried.empty() ? "" : "; ", why());
  }
  throw Error("opencl", str_cat("there is no OpenCL on this machine (", tried, ")", kAdvice,
                                ", or name the library in ", kVariable));
}

}  // namespace

std::shared_ptr<const Library> load_library(const std::string& path) {
  auto made = std::make_shared<Library>();
  const std::string named = env(kVariable);
  void* library = nullptr;
  if (!path.empty()) library = open_named(made->path = path, "OpenClOptions::library");
  else if (!named.empty()) library = open_named(made->path = named, kVariable);
  else library = open_system(made->path);

  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (!function)
      throw Error("opencl", str_cat("'", made->path, "' has no function ", name,
                                    ": it is no library of OpenCL 1.2 or newer", kAdvice));
  };
  api::Functions& f = made->functions;
#define LIGHTCONE_FIND(name) find(f.name, "cl" #name)
  LIGHTCONE_FIND(GetPlatformIDs);
  LIGHTCONE_FIND(GetPlatformInfo);
  LIGHTCONE_FIND(GetDeviceIDs);
  LIGHTCONE_FIND(GetDeviceInfo);
  LIGHTCONE_FIND(CreateContext);
  LIGHTCONE_FIND(ReleaseContext);
  LIGHTCONE_FIND(CreateCommandQueue);
  LIGHTCONE_FIND(ReleaseCommandQueue);
  LIGHTCONE_FIND(CreateBuffer);
  LIGHTCONE_FIND(ReleaseMemObject);
  LIGHTCONE_FIND(CreateProgramWithSource);
  LIGHTCONE_FIND(CreateProgramWithBinary);
  LIGHTCONE_FIND(GetProgramInfo);
  LIGHTCONE_FIND(BuildProgram);
  LIGHTCONE_FIND(GetProgramBuildInfo);
  LIGHTCONE_FIND(ReleaseProgram);
  LIGHTCONE_FIND(CreateKernel);
  LIGHTCONE_FIND(GetKernelInfo);
  LIGHTCONE_FIND(GetKernelWorkGroupInfo);
  LIGHTCONE_FIND(SetKernelArg);
  LIGHTCONE_FIND(ReleaseKernel);
  LIGHTCONE_FIND(EnqueueNDRangeKernel);
  LIGHTCONE_FIND(EnqueueReadBuffer);
  LIGHTCONE_FIND(EnqueueWriteBuffer);
  LIGHTCONE_FIND(EnqueueCopyBuffer);
  LIGHTCONE_FIND(EnqueueFillBuffer);
  LIGHTCONE_FIND(Finish);
#undef LIGHTCONE_FIND
  return made;
}

}  // namespace lc::backends::opencl
