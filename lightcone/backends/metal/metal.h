// Metal, the interface to the GPUs of Apple's machines. It is loaded at run time: building programs needs neither a
// framework nor Objective-C.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/gpu.h"

namespace lc {

// Options of the Metal compiler and of devices that open_device() opens.
struct MetalOptions {
  int device = 0;  // index in devices(); 0 is the one that the system prefers
  // A library that has both Objective-C's run time and Metal; "": $LIGHTCONE_METAL, else those of macOS.
  std::string library = {};
};

// Returns a compiler that opens the device when the first graph is compiled. All programs of one such compiler share
// the device.
Compiler metal(MetalOptions options = {}, GpuOptions gpu = {});

namespace backends::metal {

// Returns all GPUs of this machine. Throws Error if there is no Metal or no GPU.
std::vector<backends::gpu::Limits> devices(const MetalOptions& options = {});

// Opens a GPU: its memory, a queue and a compiler. Kernels are texts in Metal's shading language. Their buffers are
// [[buffer(0)]] and so on, in order, followed by their sizes as one array, `constant long*`. Threads are counted along
// one axis. Shared memory beyond what the text declares is [[threadgroup(0)]].
//
// Floats have 32 bits at most, and compilers may neither reorder sums nor assume that there is no NaN. Throws Error if
// there is no Metal or no such device. If a kernel fails while it runs, the next copy_out() or synchronise() throws
// Error.
std::shared_ptr<backends::gpu::GpuDevice> open_device(const MetalOptions& options = {});

}  // namespace backends::metal
}  // namespace lc
