// Shared by the tests of OpenCL: the devices, and buffers as vectors.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lightcone/backends/opencl/opencl.h"
#include "lightcone/base/error.h"

namespace lc::test {

// Returns why no device can be tested, or "".
inline std::string no_devices() {
  try {
    for (const backends::opencl::DeviceInfo& d : backends::opencl::devices())
      if (d.unusable.empty()) return "";
    return "NOT TESTED: no driver of OpenCL is installed (Debian's for processors is pocl-opencl-icd)";
  } catch (const Error& e) {
    return str_cat("NOT TESTED: ", e.what());
  }
}

class OnOpenCl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_devices(); !why.empty()) GTEST_SKIP() << why;
  }
};

inline void on_each_device(const std::function<void(backends::gpu::GpuDevice&)>& run) {
  const std::vector<backends::opencl::DeviceInfo> all = backends::opencl::devices();
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (!all[k].unusable.empty()) continue;
    SCOPED_TRACE(str_cat(all[k].platform, ": ", all[k].limits.name));
    const auto device = backends::opencl::open_device({.device = static_cast<int>(k)});
    run(*device);
  }
}

template <class T>
std::unique_ptr<Buffer> put(Device& device, const std::vector<T>& values) {
  auto b = device.allocate(values.size() * sizeof(T));
  device.copy_in({b.get(), 0}, values.data(), values.size() * sizeof(T));
  return b;
}
template <class T>
std::vector<T> take(Device& device, BufferSlice from, std::size_t count) {
  std::vector<T> values(count);
  device.copy_out(values.data(), from, count * sizeof(T));
  return values;
}

// Returns the message of the Error that `run` throws, or "".
inline std::string refusal(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
inline bool says(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace lc::test
