// What every device must do is tested on the CPU and, by the same program, on another device:
// LIGHTCONE_TEST_DEVICE=cuda or metal (as they run on the CPU, tests/fake_cuda and tests/fake_metal) or opencl (a
// driver that is installed). ctest runs such programs once more on `cuda`.
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

// The compiler of that device, which ends a pipeline as cpu() does. `o` is for the CPU: others take its precision
// alone.
inline Compiler device(CpuOptions o = {}) {
  const std::string name = device_name();
  if (name == "cpu") return cpu(std::move(o));
  for (const GpuUnderTest& d : gpus_under_test())
    if (d.name == name) {
      static const auto& opened = *new std::shared_ptr<backends::gpu::GpuDevice>(d.open());  // never closed, as OnGpu's
      return backends::gpu::compiler(opened, {.precision = o.precision, .fallback = cpu({.threads = 1})});
    }
  throw Error("LIGHTCONE_TEST_DEVICE", str_cat(name, " is none of cpu, cuda, metal, opencl"));
}

}  // namespace lc::test

// For what is said of the CPU's compiler alone.
#define LIGHTCONE_CPU_ALONE() \
  if (lc::test::device_name() != "cpu") GTEST_SKIP() << "SKIPPED: said of the CPU alone"
