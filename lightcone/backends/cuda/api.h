// The part of CUDA's driver interface and of NVRTC that Lightcone calls, as declarations of our own: neither headers
// nor a toolkit are needed to build. https://docs.nvidia.com/cuda/cuda-driver-api and .../nvrtc document the calls.
//
// Both are binary interfaces that only grow. A function whose arguments changed has a new name that ends in _v2, and
// the old one stays; the names here are those that the libraries export.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lc::backends::cuda::api {

// Opaque types of the driver.
struct Context;
struct Stream;
struct Event;
struct Module;
struct Function;
struct Graph;
struct GraphExec;
struct GraphNode;
struct Program;  // NVRTC's

using Device = int;
using Address = std::uint64_t;     // an address in device memory
using Allocation = std::uint64_t;  // memory that has no address yet

// The results that Lightcone distinguishes; the driver has words for all of them.
enum class Result : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  Deinitialized = 4,
  StubLibrary = 34,
  DevicesUnavailable = 46,
  InvalidImage = 200,
  NoBinaryForGpu = 209,
  EccUncorrectable = 214,
  UnsupportedPtxVersion = 222,
  InvalidSource = 300,
  NotFound = 500,
  IllegalAddress = 700,
  LaunchTimeout = 702,
  HardwareStackError = 714,
  IllegalInstruction = 715,
  MisalignedAddress = 716,
  InvalidAddressSpace = 717,
  InvalidPc = 718,
  LaunchFailed = 719,
  SystemDriverMismatch = 803,
  CompatNotSupported = 804,
  Unknown = 999,
};

enum class DeviceAttribute : int {
  MaxThreadsPerBlock = 1,
  MaxGridDimX = 5,
  WarpSize = 10,
  MultiprocessorCount = 16,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
  MaxSharedMemoryPerBlockOptin = 97,
  VirtualMemoryManagementSupported = 102,
};
enum class FunctionAttribute : int { SharedSizeBytes = 1, MaxDynamicSharedSizeBytes = 8 };
enum class StreamFlags : unsigned { NonBlocking = 1 };
enum class EventFlags : unsigned { DisableTiming = 2 };
enum class CaptureMode : int { Global = 0, ThreadLocal = 1, Relaxed = 2 };
enum class CaptureStatus : int { None = 0, Active = 1, Invalidated = 2 };
enum class GranularityFlags : int { Minimum = 0, Recommended = 1 };
enum class TensorMapType : int { U8 = 0, U16 = 1 };
enum class TensorMapInterleave : int { None = 0 };
enum class TensorMapSwizzle : int { Bytes128 = 3 };
enum class TensorMapPromotion : int { Bytes256 = 3 };  // promotion of reads into L2
enum class TensorMapFill : int { Zeros = 0 };

struct Location {
  int type = 1;  // a device
  int id = 0;
};
struct AllocationProperties {
  int type = 1;          // pinned: it stays where it is
  int handle_types = 0;  // for export to other processes
  Location location;
  void* win32_metadata = nullptr;
  struct {
    unsigned char compression = 0, rdma = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } flags;
};
struct AccessDescription {
  Location location;
  int flags = 3;  // read and write
};
struct KernelNodeParams {  // CUDA_KERNEL_NODE_PARAMS_v2
  Function* function = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** arguments = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;
  Context* context = nullptr;
};

struct LaunchAttribute {  // CUlaunchAttribute
  enum class Id : int { Overlap = 6 };
  Id id = Id::Overlap;
  int padding = 0;
  union {
    int overlap;
    char bytes[64];
  } value = {1};
};
struct LaunchConfig {  // CUlaunchConfig
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  Stream* stream = nullptr;
  const LaunchAttribute* attributes = nullptr;
  unsigned count = 0;
};

// clang-format off
// Each function: our name, the library's, and its arguments. All of them return a Result.
#define LIGHTCONE_CUDA_FUNCTIONS(F)                                                                                    \
  F(init, "cuInit", unsigned flags)                                                                                    \
  F(driver_version, "cuDriverGetVersion", int* version)                                                                \
  F(error_name, "cuGetErrorName", Result code, const char** name)                                                      \
  F(error_string, "cuGetErrorString", Result code, const char** text)                                                  \
  F(device_count, "cuDeviceGetCount", int* count)                                                                      \
  F(device, "cuDeviceGet", Device* device, int ordinal)                                                                \
  F(device_name, "cuDeviceGetName", char* name, int bytes, Device device)                                              \
  F(device_memory, "cuDeviceTotalMem_v2", std::size_t* bytes, Device device)                                           \
  F(device_attribute, "cuDeviceGetAttribute", int* value, DeviceAttribute attribute, Device device)                    \
  F(retain_context, "cuDevicePrimaryCtxRetain", Context** context, Device device)                                      \
  F(release_context, "cuDevicePrimaryCtxRelease_v2", Device device)                                                    \
  F(reset_context, "cuDevicePrimaryCtxReset_v2", Device device)                                                        \
  F(set_current, "cuCtxSetCurrent", Context* context)                                                                  \
  F(memory_info, "cuMemGetInfo_v2", std::size_t* free, std::size_t* total)                                             \
  F(allocate, "cuMemAlloc_v2", Address* to, std::size_t bytes)                                                         \
  F(free, "cuMemFree_v2", Address at)                                                                                  \
  F(allocate_host, "cuMemHostAlloc", void** to, std::size_t bytes, unsigned flags)                                     \
  F(free_host, "cuMemFreeHost", void* at)                                                                              \
  F(copy_in, "cuMemcpyHtoDAsync_v2", Address to, const void* from, std::size_t bytes, Stream* stream)                  \
  F(copy_out, "cuMemcpyDtoHAsync_v2", void* to, Address from, std::size_t bytes, Stream* stream)                       \
  F(copy, "cuMemcpyDtoDAsync_v2", Address to, Address from, std::size_t bytes, Stream* stream)                         \
  F(fill, "cuMemsetD8Async", Address to, unsigned char value, std::size_t bytes, Stream* stream)                       \
  F(granularity, "cuMemGetAllocationGranularity", std::size_t* bytes, const AllocationProperties* properties,          \
    GranularityFlags flags)                                                                                            \
  F(reserve_addresses, "cuMemAddressReserve", Address* to, std::size_t bytes, std::size_t alignment, Address wish,     \
    unsigned long long flags)                                                                                          \
  F(free_addresses, "cuMemAddressFree", Address at, std::size_t bytes)                                                 \
  F(create_memory, "cuMemCreate", Allocation* to, std::size_t bytes, const AllocationProperties* properties,           \
    unsigned long long flags)                                                                                          \
  F(release_memory, "cuMemRelease", Allocation memory)                                                                 \
  F(map, "cuMemMap", Address at, std::size_t bytes, std::size_t offset, Allocation memory, unsigned long long flags)   \
  F(unmap, "cuMemUnmap", Address at, std::size_t bytes)                                                                \
  F(set_access, "cuMemSetAccess", Address at, std::size_t bytes, const AccessDescription* access, std::size_t count)   \
  F(create_stream, "cuStreamCreate", Stream** to, StreamFlags flags)                                                   \
  F(destroy_stream, "cuStreamDestroy_v2", Stream* stream)                                                              \
  F(synchronise_stream, "cuStreamSynchronize", Stream* stream)                                                         \
  F(begin_capture, "cuStreamBeginCapture_v2", Stream* stream, CaptureMode mode)                                        \
  F(end_capture, "cuStreamEndCapture", Stream* stream, Graph** to)                                                     \
  F(capture_info, "cuStreamGetCaptureInfo_v2", Stream* stream, CaptureStatus* status, std::uint64_t* id, Graph** graph,\
    GraphNode* const** last, std::size_t* count)                                                                       \
  F(create_event, "cuEventCreate", Event** to, EventFlags flags)                                                       \
  F(destroy_event, "cuEventDestroy_v2", Event* event)                                                                  \
  F(record_event, "cuEventRecord", Event* event, Stream* stream)                                                       \
  F(synchronise_event, "cuEventSynchronize", Event* event)                                                             \
  F(load_module, "cuModuleLoadData", Module** to, const void* image)                                                   \
  F(unload_module, "cuModuleUnload", Module* module)                                                                   \
  F(function, "cuModuleGetFunction", Function** to, Module* module, const char* name)                                  \
  F(function_attribute, "cuFuncGetAttribute", int* value, FunctionAttribute attribute, Function* function)             \
  F(set_function_attribute, "cuFuncSetAttribute", Function* function, FunctionAttribute attribute, int value)          \
  F(launch, "cuLaunchKernel", Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
    unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream* stream, void** arguments, void** extra)         \
  F(launch_with, "cuLaunchKernelEx", const LaunchConfig* config, Function* function, void** arguments, void** extra)   \
  F(encode_tiled, "cuTensorMapEncodeTiled", void* map, TensorMapType type, std::uint32_t axes, Address at,              \
    const std::uint64_t* extents, const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* steps,  \
    TensorMapInterleave interleave, TensorMapSwizzle swizzle, TensorMapPromotion promotion, TensorMapFill fill)        \
  F(instantiate_graph, "cuGraphInstantiateWithFlags", GraphExec** to, Graph* graph, unsigned long long flags)          \
  F(launch_graph, "cuGraphLaunch", GraphExec* graph, Stream* stream)                                                   \
  F(set_kernel_node, "cuGraphExecKernelNodeSetParams_v2", GraphExec* graph, GraphNode* node,                           \
    const KernelNodeParams* params)                                                                                    \
  F(destroy_graph, "cuGraphDestroy", Graph* graph)                                                                     \
  F(destroy_graph_exec, "cuGraphExecDestroy", GraphExec* graph)
// clang-format on

struct Driver {
#define LIGHTCONE_MEMBER(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
  LIGHTCONE_CUDA_FUNCTIONS(LIGHTCONE_MEMBER)
};

enum class CompilerResult : int {
  Success = 0,
  OutOfMemory = 1,
  InvalidOption = 5,
  Compilation = 6,
  BuiltinFailure = 7
};

// clang-format off
#define LIGHTCONE_NVRTC_FUNCTIONS(F)                                                                                   \
  F(version, "nvrtcVersion", int* major, int* minor)                                                                   \
  F(architecture_count, "nvrtcGetNumSupportedArchs", int* count)                                                       \
  F(architectures, "nvrtcGetSupportedArchs", int* list)                                                                \
  F(create, "nvrtcCreateProgram", Program** to, const char* text, const char* name, int headers,                       \
    const char* const* contents, const char* const* names)                                                             \
  F(destroy, "nvrtcDestroyProgram", Program** program)                                                                 \
  F(compile, "nvrtcCompileProgram", Program* program, int count, const char* const* options)                           \
  F(cubin_size, "nvrtcGetCUBINSize", Program* program, std::size_t* bytes)                                             \
  F(cubin, "nvrtcGetCUBIN", Program* program, char* to)                                                                \
  F(log_size, "nvrtcGetProgramLogSize", Program* program, std::size_t* bytes)                                          \
  F(log, "nvrtcGetProgramLog", Program* program, char* to)
// clang-format on

struct Compiler {
#define LIGHTCONE_COMPILER_MEMBER(name, symbol, ...) CompilerResult (*name)(__VA_ARGS__) = nullptr;
  LIGHTCONE_NVRTC_FUNCTIONS(LIGHTCONE_COMPILER_MEMBER)
};
#undef LIGHTCONE_MEMBER
#undef LIGHTCONE_COMPILER_MEMBER

}  // namespace lc::backends::cuda::api
