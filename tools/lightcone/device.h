// The device that a command's model runs on: what --device says.
#pragma once

#include <memory>
#include <string>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/gpu/gpu.h"

namespace lc::tool {

struct DeviceChoice {
  std::string api = "cpu";  // or "cuda", "opencl", "metal"
  int index = 0;            // of those that `lightcone devices` lists
  bool is_cpu() const { return api == "cpu"; }
};

// "cuda" or "cuda:1". What is wrong with the words; "" where they are right.
std::string read_device(const std::string& words, DeviceChoice& choice);

// Opened; null: the CPU. `cache` is that of CudaOptions and OpenClOptions.
std::shared_ptr<backends::gpu::GpuDevice> open_device(const DeviceChoice& choice, const std::string& cache = "");

// generic() and that device's compiler. What a GPU has no numbers for (f64 on Metal) the CPU computes; notes say so.
Compiler compiler_for(const std::shared_ptr<backends::gpu::GpuDevice>& device, const CpuOptions& options);

}  // namespace lc::tool
