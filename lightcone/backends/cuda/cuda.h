// NVIDIA's GPUs as devices. Nothing of NVIDIA's is needed to build: the driver and NVRTC are loaded when a device is
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

struct CudaOptions {
  int device = 0;               // of those that the driver finds
  std::string driver = "";      // the driver's library; "": $LIGHTCONE_CUDA_DRIVER, else libcuda.so.1
  std::string compiler = "";    // NVRTC's library; "": $LIGHTCONE_NVRTC, else libnvrtc.so, also of a CUDA toolkit
  std::string cache = "";       // where compiled kernels are kept; "": $LIGHTCONE_CACHE, else as the CPU's; "off"
  std::size_t cache_bytes = 0;  // that it may have; 0: $LIGHTCONE_CACHE_SIZE, else 512 MB
  // Are large products of known sizes left to NVIDIA's cuBLASLt? Nothing said: where it is there and was measured to be
  // faster when the graph was compiled.
  std::optional<bool> cublas_lt = {};
  std::string cublas_lt_library = "";        // its file; "": $LIGHTCONE_CUBLASLT ("off": none), else libcublasLt.so.13
  std::int64_t cublas_lt_least = 100000000;  // operations of a product that is large
  // On a device of compute capability 9.0, are large products of halves and bytes made by its warpgroups' instructions,
  // from tiles that it copies by itself (wgmma, TMA)? Nothing said: yes, but where $LIGHTCONE_WARPGROUPS is 0. On an
  // H200 they are twice as fast as our products by warps, and 0.82 to 0.86 of cuBLASLt.
  std::optional<bool> warpgroups = {};
  // From compute capability 9.0 and a driver for CUDA 12.3 on (an Error with an older one), does a kernel begin while
  // the one before it still runs, and wait for that itself (programmatic dependent launch)? Nothing said: where
  // $LIGHTCONE_OVERLAP is 1. On an H200 decoding by a small model was 5 % faster with it and a training step was not,
  // so it is not the default.
  std::optional<bool> overlap = {};
};

// Opens the device when the first graph is compiled. All programs of one such value share it.
Compiler cuda(CudaOptions options = {}, GpuOptions gpu = {});

namespace backends::cuda {

// What is there. An Error where there is no driver or no device, which says what to do.
std::vector<backends::gpu::Limits> devices(const CudaOptions& options = {});

// A device with an ordered stream of its own. An Error when there is no such device, driver or NVRTC, which says what
// to install. After a kernel has brought the device down (an Error says so), the process has to be started anew:
// NVIDIA's driver refuses whatever it is asked until then.
std::shared_ptr<backends::gpu::GpuDevice> open_device(const CudaOptions& options = {});

}  // namespace backends::cuda
}  // namespace lc
