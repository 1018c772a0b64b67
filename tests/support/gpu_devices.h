// The devices that GPU tests run on: CUDA on its simulator (simulators/cuda), Metal on its simulator
// (simulators/metal), and OpenCL where a driver is installed. LIGHTCONE_GPU=cuda, metal or opencl selects one of them.
// LIGHTCONE_CUDA_DRIVER names another CUDA driver.
#pragma once

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "data.h"
#include "lightcone/backends/cuda/cuda.h"
#include "lightcone/backends/gpu/gpu.h"
#include "lightcone/backends/metal/metal.h"
#include "lightcone/backends/opencl/opencl.h"
#include "lightcone/base/error.h"
#include "paths.h"

namespace lc::test {

struct GpuUnderTest {
  std::string name;
  std::function<std::shared_ptr<backends::gpu::GpuDevice>()> open;
};
inline void PrintTo(const GpuUnderTest& d, std::ostream* out) { *out << d.name; }

// Compiled kernels are cached for the life of the program, because tests compile the same kernels repeatedly.
inline CudaOptions cuda_under_test() {
  static const TempDir kept;
  CudaOptions o;
  o.cache = kept / "kernels";
  if (!std::getenv("LIGHTCONE_CUDA_DRIVER")) o.driver = o.compiler = paths::kFakeCuda;
  return o;
}

// Sets how the CUDA simulator orders threads and when it executes work (simulators/cuda). Returns false if CUDA is not
// the simulator.
inline bool set_fake_cuda(const char* what, long value) {
  static void* const driver =
      std::getenv("LIGHTCONE_CUDA_DRIVER") ? nullptr : dlopen(paths::kFakeCuda, RTLD_NOW | RTLD_NOLOAD);
  if (driver) reinterpret_cast<void (*)(const char*, long)>(dlsym(driver, "fake_cuda_set"))(what, value);
  return driver;
}

inline std::vector<GpuUnderTest> gpus_under_test() {
  const char* one = std::getenv("LIGHTCONE_GPU");
  std::vector<GpuUnderTest> all;
  const auto add = [&](const char* name, std::function<std::shared_ptr<backends::gpu::GpuDevice>()> open) {
    if (!one || !*one || std::string(one) == name) all.push_back({name, std::move(open)});
  };
  add("cuda", [] { return backends::cuda::open_device(cuda_under_test()); });
  add("metal", [] { return backends::metal::open_device({.library = paths::kFakeMetal}); });
  add("opencl", [] { return backends::opencl::open_device(); });
  return all;
}

// The test fixture, parameterized by device. If the device has no driver, `device` is null and the test is skipped.
class OnGpu : public testing::TestWithParam<GpuUnderTest> {
 protected:
  void SetUp() override {
    // A device is opened once per program, because opening takes longer than most tests. It is never closed, because at
    // exit the driver may be unloaded before its devices.
    static auto& opened = *new std::map<std::string, std::shared_ptr<backends::gpu::GpuDevice>>;
    auto& kept = opened[GetParam().name];
    try {
      if (!kept) kept = GetParam().open();
    } catch (const Error& e) {
      if (GetParam().name != "opencl") throw;  // only OpenCL may lack a driver; the simulators are always built
      GTEST_SKIP() << "SKIPPED: " << e.what();
    }
    device = kept;
  }
  Compiler compiler(GpuOptions o = {}) const { return backends::gpu::compiler(device, o); }
  std::shared_ptr<backends::gpu::GpuDevice> device;
};

#define LIGHTCONE_ON_GPUS(Suite)                                                           \
  INSTANTIATE_TEST_SUITE_P(Devices, Suite, testing::ValuesIn(lc::test::gpus_under_test()), \
                           [](const auto& info) { return info.param.name; })

}  // namespace lc::test
