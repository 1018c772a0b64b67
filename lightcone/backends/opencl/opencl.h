// OpenCL: GPUs, processors and accelerators of any maker, by the drivers that a machine has.
//
//   for (const opencl::DeviceInfo& d : opencl::devices()) std::cout << d.platform << ": " << d.limits.name << '\n';
//   std::shared_ptr<gpu::GpuDevice> device = opencl::open_device();
//
// Kernels are OpenCL C 1.2. An argument of gpu::KernelLaunch is, in the text, for a place the buffer and where it
// begins there, for a size a number; and where a start asks for shared memory, that stands last:
//
//   kernel void add(global char* b0, long o0, global char* b1, long o1, long n, local char* shared)
//
// A null place is a null buffer and 0.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/gpu.h"

namespace lc {

struct OpenClOptions {
  int device = 0;  // in the order of backends::opencl::devices()
  // Only devices of platforms whose name has this in it, in small letters or capitals: "nvidia".
  std::string platform = {};
  // The path of the library; "": what the environment variable LIGHTCONE_OPENCL names, else the system's libOpenCL.
  std::string library = {};
  // Where compiled kernels are kept; "": $LIGHTCONE_CACHE, else as the CPU's, but nowhere for PoCL, which keeps them by
  // itself; "off".
  std::string cache = {};
  std::size_t cache_bytes = 0;  // that it may have; 0: $LIGHTCONE_CACHE_SIZE, else 512 MB
};

// Opens the device when the first graph is compiled. All programs of one such value share it.
Compiler opencl(OpenClOptions options = {}, GpuOptions gpu = {});

namespace backends::opencl {

struct DeviceInfo {
  std::string platform;  // "NVIDIA CUDA"
  std::string version;   // of the language that it compiles: "OpenCL C 1.2"
  std::string unusable;  // why Lightcone cannot use it; "" where it can
  backends::gpu::Limits limits;
  std::size_t max_allocation = 0;  // bytes of a buffer that the device promises; it may have larger ones
  // Division and square root of f32 to the last bit. Where not, they are off by 2.5 and 3 units of it at most.
  bool correctly_rounded = false;
  // Whether its compiler may optimise. Intel's for processors may not: a negated number that is kept across a barrier
  // becomes that of the group's last item (version 2026.22: softmax(0.5f * x) over rows of five).
  bool optimised = true;
};

// Every device of every platform, GPUs first; empty where no driver is installed. An Error where there is no OpenCL.
std::vector<DeviceInfo> devices(const OpenClOptions& options = {});

// A device with a queue of its own. An Error where there is no such one, or one that is unusable.
std::shared_ptr<backends::gpu::GpuDevice> open_device(const OpenClOptions& options = {});

}  // namespace backends::opencl
}  // namespace lc
