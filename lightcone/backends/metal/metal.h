// Metal, the interface to the GPUs of Apple's machines, as a device. It is found at run time: programs need neither a
// framework nor Objective-C to be built.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/gpu.h"

namespace lc {

struct MetalOptions {
  int device = 0;  // of devices(); 0 is the one that the system prefers
  // One that has Objective-C's run time and Metal; "": what the environment variable LIGHTCONE_METAL names, else those
  // of macOS.
  std::string library = {};
};

// Opens the device when the first graph is compiled. All programs of one such value share it.
Compiler metal(MetalOptions options = {}, GpuOptions gpu = {});

namespace backends::metal {

// All GPUs of this machine. An Error where there is no Metal or no GPU.
std::vector<backends::gpu::Limits> devices(const MetalOptions& options = {});

// Memory, a queue and a compiler of one GPU. Kernels are texts in Metal's shading language; their places are
// [[buffer(0)]] and so on, in order, and their sizes one array behind them, `constant long*`. Threads are counted along
// one axis. Shared memory beyond what the text declares is [[threadgroup(0)]].
//
// Numbers have 32 bits at most, and compilers may not reorder sums nor assume that there is no NaN. An Error where
// there is no Metal or no such device; a kernel that fails while it runs is an Error of the next copy_out() or
// synchronise().
std::shared_ptr<backends::gpu::GpuDevice> open_device(const MetalOptions& options = {});

}  // namespace backends::metal
}  // namespace lc
