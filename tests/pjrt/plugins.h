// The plugins that tests run on: lightcone_pjrt.so, and the one (such as XLA's) whose path is
// LIGHTCONE_TEST_PJRT_PLUGIN.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lightcone/backends/pjrt/client.h"
#include "lightcone/base/error.h"
#include "paths.h"

namespace lc::test {

inline std::vector<std::string> plugin_paths() {
  std::vector<std::string> all{paths::kPjrtPlugin};
  if (const char* other = std::getenv("LIGHTCONE_TEST_PJRT_PLUGIN")) all.push_back(other);
  return all;
}
inline std::string name_of(const ::testing::TestParamInfo<std::string>& p) {
  return p.index == 0 ? "Lightcone" : "Other";
}

template <class F>
std::string refusal(const F& f) {
  try {
    f();
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& v) {
  return std::as_bytes(std::span(v));
}
template <class T>
backends::pjrt::Array put(const backends::pjrt::Client& c, const std::vector<T>& v, std::vector<std::int64_t> shape) {
  return c.to_device({dtype_of<T>::value, std::move(shape), bytes_of(v)});
}
template <class T>
std::vector<T> take(const backends::pjrt::Array& a) {
  std::vector<T> v(a.bytes() / sizeof(T));
  a.to_host(v.data(), v.size() * sizeof(T));
  return v;
}

// A program with two results, a + b and b transposed. The first result takes over the memory of a.
inline constexpr const char* kTwo = R"(module @two {
  func.func public @main(%a: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2x3xf32>)
      -> (tensor<2x3xf32>, tensor<3x2xf32>) {
    %0 = "stablehlo.add"(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = "stablehlo.transpose"(%b) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %0, %1 : tensor<2x3xf32>, tensor<3x2xf32>
  }
})";

}  // namespace lc::test
