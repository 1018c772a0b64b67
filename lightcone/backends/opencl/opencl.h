// OpenCL: GPUs, processors and accelerators of any maker, through the drivers that a machine has.
//
//   for (const opencl::DeviceInfo& d : opencl::devices()) std::cout << d.platform << ": " << d.limits.name << '\n';
//   std::shared_ptr<gpu::GpuDevice> device = opencl::open_device();
//
// Kernels are OpenCL C 1.2. In the text, each buffer of a gpu::KernelLaunch is two arguments, a pointer and the offset
// at which the slice begins; each size is a number; and if the launch has shared memory, that comes last:
//
//   kernel void add(global char* b0, long o0, global char* b1, long o1, long n, local char* shared)
//
// An empty buffer slice is a null pointer and 0.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/gpu.h"

namespace lc {

// Options of the OpenCL compiler and of devices that open_device() opens.
struct OpenClOptions {
  int device = 0;  // index in backends::opencl::devices()
  // Only devices of platforms whose name contains this text, in any case: "nvidia".
  std::string platform = {};
  // The path of the library; "": $LIGHTCONE_OPENCL, else the system's libOpenCL.
  std::string library = {};
  // Folder of compiled kernels; "": $LIGHTCONE_CACHE, else as the CPU's, but none for PoCL, which has a cache of its
  // own; "off": none.
  std::string cache = {};
  std::size_t cache_bytes = 0;  // limit of the cache; 0: $LIGHTCONE_CACHE_SIZE, else 512 MB
};

// Returns a compiler that opens the device when the first graph is compiled. All programs of one such compiler share
// the device.
Compiler opencl(OpenClOptions options = {}, GpuOptions gpu = {});

namespace backends::opencl {

// A device of OpenCL, as devices() lists it.
struct DeviceInfo {
  std::string platform;  // "NVIDIA CUDA"
  std::string version;   // version of the language that it compiles: "OpenCL C 1.2"
  std::string unusable;  // why Lightcone cannot use it; "" if it can
  backends::gpu::Limits limits;
  std::size_t max_allocation = 0;  // bytes of a buffer that the device guarantees; larger ones may work
  // Whether division and square root of f32 are exact to the last bit. If not, they are off by at most 2.5 and 3 units
  // of it.
  bool correctly_rounded = false;
  // Whether its compiler may optimise. Intel's compiler for processors may not: a negated number that is kept across a
  // barrier becomes the one of the group's last item (version 2026.22: softmax(0.5f * x) over rows of five).
  bool optimised = true;
};

// Returns every device of every platform, GPUs first; empty if no driver is installed. Throws Error if there is no
// OpenCL.
std::vector<DeviceInfo> devices(const OpenClOptions& options = {});

// Opens a device with a queue of its own. Throws Error if there is no such device, or if it is unusable.
std::shared_ptr<backends::gpu::GpuDevice> open_device(const OpenClOptions& options = {});

}  // namespace backends::opencl
}  // namespace lc
