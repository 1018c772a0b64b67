// The part of OpenCL 1.2 that the device uses: a binary interface, as declarations of our own.
// https://registry.khronos.org/OpenCL/sdk/1.2/docs/man/xhtml/ documents the calls.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lc::backends::opencl::api {

// Opaque types of the driver.
struct Platform;
struct Device;
struct Context;
struct Queue;
struct Memory;
struct Program;
struct Kernel;
struct Event;

using Int = std::int32_t;
using UInt = std::uint32_t;
using Bits = std::uint64_t;
using Property = std::intptr_t;

// Codes with a handling of their own; all others are only named (error.h).
inline constexpr Int kSuccess = 0, kDeviceNotFound = -1, kDeviceNotAvailable = -2, kAllocationFailure = -4,
                     kOutOfResources = -5, kOutOfHostMemory = -6, kBuildFailure = -11, kWaitListFailure = -14,
                     kInvalidContext = -34, kInvalidQueue = -36, kInvalidKernelName = -46, kInvalidArgumentSize = -51,
                     kInvalidGroupSize = -54, kInvalidBufferSize = -61, kPlatformNotFound = -1001;

inline constexpr UInt kPlatformVersion = 0x0901, kPlatformName = 0x0902;
inline constexpr Bits kAllDevices = 0xFFFFFFFF;
inline constexpr UInt kDeviceType = 0x1000, kComputeUnits = 0x1002, kGroupSize = 0x1004, kItemSizes = 0x1005,
                      kAddressBits = 0x100D, kAllocationSize = 0x1010, kParameterSize = 0x1017, kSingleConfig = 0x101B,
                      kGlobalMemory = 0x101F, kLocalMemory = 0x1023, kLittleEndian = 0x1026, kAvailable = 0x1027,
                      kCompilerAvailable = 0x1028, kDeviceName = 0x102B, kDriverVersion = 0x102D, kProfile = 0x102E,
                      kDoubleConfig = 0x1032, kLanguageVersion = 0x103D;
inline constexpr Bits kTypeCpu = 1 << 1, kTypeGpu = 1 << 2;       // values of kDeviceType
inline constexpr Bits kCorrectlyRounded = 1 << 7;                 // bit of kSingleConfig: division and square root
inline constexpr Bits kReadWrite = 1 << 0;                        // flag of a buffer
inline constexpr UInt kBinarySizes = 0x1165, kBinaries = 0x1166;  // queries of a program, one value for each device
inline constexpr UInt kBuildLog = 0x1183;
inline constexpr UInt kArguments = 0x1191;        // number of a kernel's arguments
inline constexpr UInt kKernelGroupSize = 0x11B0;  // query of a kernel on a device: most threads of a group
inline constexpr UInt kTrue = 1;

using ContextNotify = void (*)(const char* what, const void* data, std::size_t bytes, void* user);
using ProgramNotify = void (*)(Program*, void* user);

// The functions, named as in the library without "cl".
struct Functions {
  Int (*GetPlatformIDs)(UInt room, Platform**, UInt* count);
  Int (*GetPlatformInfo)(Platform*, UInt what, std::size_t room, void*, std::size_t* size);
  Int (*GetDeviceIDs)(Platform*, Bits type, UInt room, Device**, UInt* count);
  Int (*GetDeviceInfo)(Device*, UInt what, std::size_t room, void*, std::size_t* size);
  Context* (*CreateContext)(const Property*, UInt count, Device* const*, ContextNotify, void* user, Int* code);
  Int (*ReleaseContext)(Context*);
  Queue* (*CreateCommandQueue)(Context*, Device*, Bits properties, Int* code);
  Int (*ReleaseCommandQueue)(Queue*);
  Memory* (*CreateBuffer)(Context*, Bits flags, std::size_t bytes, void* host, Int* code);
  Int (*ReleaseMemObject)(Memory*);
  Program* (*CreateProgramWithSource)(Context*, UInt count, const char* const* texts, const std::size_t* sizes,
                                      Int* code);
  Program* (*CreateProgramWithBinary)(Context*, UInt count, Device* const*, const std::size_t* sizes,
                                      const unsigned char* const* binaries, Int* codes, Int* code);
  Int (*GetProgramInfo)(Program*, UInt what, std::size_t room, void*, std::size_t* size);
  Int (*BuildProgram)(Program*, UInt count, Device* const*, const char* options, ProgramNotify, void* user);
  Int (*GetProgramBuildInfo)(Program*, Device*, UInt what, std::size_t room, void*, std::size_t* size);
  Int (*ReleaseProgram)(Program*);
  Kernel* (*CreateKernel)(Program*, const char* name, Int* code);
  Int (*GetKernelInfo)(Kernel*, UInt what, std::size_t room, void*, std::size_t* size);
  Int (*GetKernelWorkGroupInfo)(Kernel*, Device*, UInt what, std::size_t room, void*, std::size_t* size);
  Int (*SetKernelArg)(Kernel*, UInt index, std::size_t bytes, const void*);
  Int (*ReleaseKernel)(Kernel*);
  Int (*EnqueueNDRangeKernel)(Queue*, Kernel*, UInt dimensions, const std::size_t* offset, const std::size_t* global,
                              const std::size_t* local, UInt waits, Event* const*, Event**);
  Int (*EnqueueReadBuffer)(Queue*, Memory*, UInt blocking, std::size_t offset, std::size_t bytes, void*, UInt waits,
                           Event* const*, Event**);
  Int (*EnqueueWriteBuffer)(Queue*, Memory*, UInt blocking, std::size_t offset, std::size_t bytes, const void*,
                            UInt waits, Event* const*, Event**);
  Int (*EnqueueCopyBuffer)(Queue*, Memory* from, Memory* to, std::size_t from_offset, std::size_t to_offset,
                           std::size_t bytes, UInt waits, Event* const*, Event**);
  Int (*EnqueueFillBuffer)(Queue*, Memory*, const void* pattern, std::size_t pattern_bytes, std::size_t offset,
                           std::size_t bytes, UInt waits, Event* const*, Event**);
  Int (*Finish)(Queue*);
};

}  // namespace lc::backends::opencl::api
