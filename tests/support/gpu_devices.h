// The devices that tests of GPUs run on: CUDA by the driver that runs on the CPU (tests/fake_cuda), Metal by one that
// does (tests/fake_metal), and OpenCL where a driver is installed. LIGHTCONE_GPU=cuda, metal or opencl wants one alone;
// with LIGHTCONE_CUDA_DRIVER set, CUDA is that.
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
#include "lightcone/core/error.h"
#include "paths.h"

namespace lc::test {

struct GpuUnderTest {
  std::string name;
  std::function<std::shared_ptr<backends::gpu::GpuDevice>()> open;
};
inline void PrintTo(const GpuUnderTest& d, std::ostream* out) { *out << d.name; }

// Kernels are kept for as long as the program runs, for tests compile the same ones again and again.
inline CudaOptions cuda_under_test() {
  static const TempDir kept;
  CudaOptions o;
  o.cache = kept / "kernels";
  if (!std::getenv("LIGHTCONE_CUDA_DRIVER")) o.driver = o.compiler = paths::kFakeCuda;
  return o;
}

// How the driver that runs on the CPU orders its threads and when it works (tests/fake_cuda); false where CUDA is
// another.
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

// A test for each of them. `device` is null, and the test skipped, where there is no driver of that kind.
class OnGpu : public testing::TestWithParam<GpuUnderTest> {
 protected:
  void SetUp() override {
    // Opened once a program, because opening takes longer than most tests, and never closed: while a process ends, a
    // driver may be gone before its devices.
    static auto& opened = *new std::map<std::string, std::shared_ptr<backends::gpu::GpuDevice>>;
    auto& kept = opened[GetParam().name];
    try {
      if (!kept) kept = GetParam().open();
    } catch (const Error& e) {
      if (GetParam().name != "opencl") throw;  // what stands in for it is always there
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
