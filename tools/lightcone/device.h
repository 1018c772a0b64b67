// The device on which a command's model runs, as --device selects it.
#pragma once

#include <memory>
#include <string>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/gpu/gpu.h"

namespace lc::tool {

struct DeviceChoice {
  std::string api = "cpu";  // or "cuda", "opencl", "metal"
  int index = 0;            // index in the list of `lightcone devices`
  bool is_cpu() const { return api == "cpu"; }
};

// Parses "cuda" or "cuda:1". Returns the error as a sentence, or "".
std::string read_device(const std::string& words, DeviceChoice& choice);

// Opens the device; null: the CPU. `cache` is the one of CudaOptions and OpenClOptions.
std::shared_ptr<backends::gpu::GpuDevice> open_device(const DeviceChoice& choice, const std::string& cache = "");

// Returns generic() and the device's compiler. The CPU computes types that a GPU lacks (f64 on Metal), and notes report
// it.
Compiler compiler_for(const std::shared_ptr<backends::gpu::GpuDevice>& device, const CpuOptions& options);

}  // namespace lc::tool
