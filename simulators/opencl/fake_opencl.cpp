// An OpenCL library that forwards every call to the real one, counts live objects, and can make one call fail. Without
// a real library it has no platforms.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lightcone/backends/opencl/api.h"

using namespace lc::backends::opencl::api;

namespace {

std::atomic<long> calls{0}, live{0}, failing{0};
std::atomic<Int> wanted{0};
std::atomic<const char*> failed{nullptr};
std::string platform, options;  // platform name to report, if not empty; options of the last program built

void* real() {
  static void* const library = [] {
    const char* named = std::getenv("LIGHTCONE_OPENCL");
    return ::dlopen(named && *named ? named : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  }();
  return library;
}

template <class F>
F find(F, const char* name) {
  return real() ? reinterpret_cast<F>(::dlsym(real(), name)) : nullptr;
}

bool fails(const char* name) {
  if (++calls != failing) return false;
  failed = name;
  return true;
}

}  // namespace

extern "C" {

// Makes the n-th call from now on return `code`; 0: none.
void fake_fail(long n, Int code) { calls = 0, failing = n, wanted = code, failed = nullptr; }
long fake_calls() { return calls; }
long fake_live() { return live; }
const char* fake_failed() { return failed; }  // the call that failed, or null
void fake_platform(const char* name) { platform = name; }
const char* fake_options() { return options.c_str(); }

#define ASK(name, parameters, arguments)                                         \
  Int name parameters {                                                          \
    static const auto own = find(&name, #name);                                  \
    return fails(#name) ? Int{wanted} : own ? own arguments : kPlatformNotFound; \
  }
#define CREATE(type, name, parameters, arguments)     \
  type* name parameters {                             \
    static const auto own = find(&name, #name);       \
    if (fails(#name)) return *code = wanted, nullptr; \
    type* const made = own arguments;                 \
    if (made) ++live;                                 \
    return made;                                      \
  }
#define RELEASE(type, name)                     \
  Int name(type* object) {                      \
    static const auto own = find(&name, #name); \
    const Int code = own(object);               \
    --live;                                     \
    return fails(#name) ? Int{wanted} : code;   \
  }

ASK(clGetPlatformIDs, (UInt room, Platform** to, UInt* count), (room, to, count))
Int clGetPlatformInfo(Platform* p, UInt what, std::size_t room, void* to, std::size_t* size) {
  static const auto own = find(&clGetPlatformInfo, "clGetPlatformInfo");
  if (fails("clGetPlatformInfo")) return wanted;
  if (!own) return kPlatformNotFound;
  if (what != kPlatformName || platform.empty()) return own(p, what, room, to, size);
  if (size) *size = platform.size() + 1;
  if (to) std::memcpy(to, platform.c_str(), std::min(room, platform.size() + 1));
  return kSuccess;
}
ASK(clGetDeviceIDs, (Platform * p, Bits type, UInt room, Device** to, UInt* count), (p, type, room, to, count))
ASK(clGetDeviceInfo, (Device * d, UInt what, std::size_t room, void* to, std::size_t* size), (d, what, room, to, size))
CREATE(Context, clCreateContext,
       (const Property* properties, UInt count, Device* const* devices, ContextNotify notify, void* user, Int* code),
       (properties, count, devices, notify, user, code))
RELEASE(Context, clReleaseContext)
CREATE(Queue, clCreateCommandQueue, (Context * c, Device* d, Bits properties, Int* code), (c, d, properties, code))
RELEASE(Queue, clReleaseCommandQueue)
CREATE(Memory, clCreateBuffer, (Context * c, Bits flags, std::size_t bytes, void* host, Int* code),
       (c, flags, bytes, host, code))
RELEASE(Memory, clReleaseMemObject)
CREATE(Program, clCreateProgramWithSource,
       (Context * c, UInt count, const char* const* texts, const std::size_t* sizes, Int* code),
       (c, count, texts, sizes, code))
CREATE(Program, clCreateProgramWithBinary,
       (Context * c, UInt count, Device* const* devices, const std::size_t* sizes, const unsigned char* const* binaries,
        Int* codes, Int* code),
       (c, count, devices, sizes, binaries, codes, code))
ASK(clGetProgramInfo, (Program * p, UInt what, std::size_t room, void* to, std::size_t* size),
    (p, what, room, to, size))
Int clBuildProgram(Program* p, UInt count, Device* const* devices, const char* with, ProgramNotify notify, void* user) {
  static const auto own = find(&clBuildProgram, "clBuildProgram");
  options = with ? with : "";
  return fails("clBuildProgram") ? Int{wanted} : own ? own(p, count, devices, with, notify, user) : kPlatformNotFound;
}
ASK(clGetProgramBuildInfo, (Program * p, Device* d, UInt what, std::size_t room, void* to, std::size_t* size),
    (p, d, what, room, to, size))
RELEASE(Program, clReleaseProgram)
CREATE(Kernel, clCreateKernel, (Program * p, const char* name, Int* code), (p, name, code))
ASK(clGetKernelInfo, (Kernel * k, UInt what, std::size_t room, void* to, std::size_t* size), (k, what, room, to, size))
ASK(clGetKernelWorkGroupInfo, (Kernel * k, Device* d, UInt what, std::size_t room, void* to, std::size_t* size),
    (k, d, what, room, to, size))
ASK(clSetKernelArg, (Kernel * k, UInt index, std::size_t bytes, const void* value), (k, index, bytes, value))
RELEASE(Kernel, clReleaseKernel)
ASK(clEnqueueNDRangeKernel,
    (Queue * q, Kernel* k, UInt dimensions, const std::size_t* offset, const std::size_t* global,
     const std::size_t* local, UInt waits, Event* const* before, Event** done),
    (q, k, dimensions, offset, global, local, waits, before, done))
ASK(clEnqueueReadBuffer,
    (Queue * q, Memory* m, UInt blocking, std::size_t offset, std::size_t bytes, void* to, UInt waits,
     Event* const* before, Event** done),
    (q, m, blocking, offset, bytes, to, waits, before, done))
ASK(clEnqueueWriteBuffer,
    (Queue * q, Memory* m, UInt blocking, std::size_t offset, std::size_t bytes, const void* from, UInt waits,
     Event* const* before, Event** done),
    (q, m, blocking, offset, bytes, from, waits, before, done))
ASK(clEnqueueCopyBuffer,
    (Queue * q, Memory* from, Memory* to, std::size_t from_offset, std::size_t to_offset, std::size_t bytes, UInt waits,
     Event* const* before, Event** done),
    (q, from, to, from_offset, to_offset, bytes, waits, before, done))
ASK(clEnqueueFillBuffer,
    (Queue * q, Memory* m, const void* pattern, std::size_t pattern_bytes, std::size_t offset, std::size_t bytes,
     UInt waits, Event* const* before, Event** done),
    (q, m, pattern, pattern_bytes, offset, bytes, waits, before, done))
ASK(clFinish, (Queue * q), (q))
}
