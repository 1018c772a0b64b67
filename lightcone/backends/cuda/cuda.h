// NVIDIA's GPUs as devices. Building needs nothing of NVIDIA's: the driver and NVRTC are loaded when a device is
// opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/gpu.h"

namespace lc {

// Options of the CUDA compiler and of devices that open_device() opens.
struct CudaOptions {
  int device = 0;               // index among the devices that the driver finds
  std::string driver = "";      // the driver's library; "": $LIGHTCONE_CUDA_DRIVER, else libcuda.so.1
  std::string compiler = "";    // NVRTC's library; "": $LIGHTCONE_NVRTC, else libnvrtc.so, also of a CUDA toolkit
  std::string cache = "";       // folder of compiled kernels; "": $LIGHTCONE_CACHE, else as the CPU's; "off": none
  std::size_t cache_bytes = 0;  // limit of the cache; 0: $LIGHTCONE_CACHE_SIZE, else 512 MB
  // Whether NVIDIA's cuBLASLt computes large products of known sizes. Unset: it does if it is found and was measured to
  // be faster when the graph was compiled.
  std::optional<bool> cublas_lt = {};
  std::string cublas_lt_library = "";        // its file; "": $LIGHTCONE_CUBLASLT ("off": none), else libcublasLt.so.13
  std::int64_t cublas_lt_least = 100000000;  // operations from which a product is large
  // Whether, on a device of compute capability 9.0, large products of halves and bytes use its warpgroup instructions,
  // on tiles that the device copies by itself (wgmma, TMA). Unset: yes, unless $LIGHTCONE_WARPGROUPS is 0. On an H200
  // they are twice as fast as our products by warps, and 0.82 to 0.86 of cuBLASLt.
  std::optional<bool> warpgroups = {};
  // Whether a kernel begins while the previous one still runs, for which it waits by itself (programmatic dependent
  // launch). It takes compute capability 9.0 and a driver for CUDA 12.3; an older driver is an Error. Unset: only if
  // $LIGHTCONE_OVERLAP is 1. On an H200 decoding by a small model was 5 % faster with it and a training step was not,
  // so it is not the default.
  std::optional<bool> overlap = {};
};

// Returns a compiler that opens the device when the first graph is compiled. All programs of one such compiler share
// the device.
Compiler cuda(CudaOptions options = {}, GpuOptions gpu = {});

namespace backends::cuda {

// Returns the properties of all devices. Throws Error, with advice, if there is no driver or no device.
std::vector<backends::gpu::Limits> devices(const CudaOptions& options = {});

// Opens a device with an ordered stream of its own. Throws Error if there is no such device, driver or NVRTC; the
// message tells what to install. After a kernel has brought the device down (which is an Error), the process must be
// restarted: NVIDIA's driver refuses all calls until then.
std::shared_ptr<backends::gpu::GpuDevice> open_device(const CudaOptions& options = {});

}  // namespace backends::cuda
}  // namespace lc
