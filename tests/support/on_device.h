// Selects the device of tests that hold for every device. They run on the CPU, or on the device of
// LIGHTCONE_TEST_DEVICE: cuda or metal (simulated: simulators/cuda, simulators/metal) or opencl (an installed driver).
// ctest runs such programs once more on `cuda`.
#pragma once

#include <cstdlib>
#include <string>

#include "gpu_devices.h"
#include "lightcone/backends/cpu/cpu.h"

namespace lc::test {

inline std::string device_name() {
  const char* named = std::getenv("LIGHTCONE_TEST_DEVICE");
  return named && *named ? named : "cpu";
}

// Returns the compiler of the selected device, which ends a pipeline as cpu() does. `o` is for the CPU; other devices
// use only its precision.
inline Compiler device(CpuOptions o = {}) {
  const std::string name = device_name();
  if (name == "cpu") return cpu(std::move(o));
  for (const GpuUnderTest& d : gpus_under_test())
    if (d.name == name) {
      // never closed, as in OnGpu
      static const auto& opened = *new std::shared_ptr<backends::gpu::GpuDevice>(d.open());
      return backends::gpu::compiler(opened, {.precision = o.precision, .fallback = cpu({.threads = 1})});
    }
  throw Error("LIGHTCONE_TEST_DEVICE", str_cat(name, " is none of cpu, cuda, metal, opencl"));
}

}  // namespace lc::test

// Skips a test that holds only for the CPU's compiler.
#define LIGHTCONE_CPU_ALONE() \
  if (lc::test::device_name() != "cpu") GTEST_SKIP() << "SKIPPED: said of the CPU alone"
