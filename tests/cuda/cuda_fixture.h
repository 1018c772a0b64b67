// Shared by tests of CUDA devices: the simulated driver (simulators/cuda), and kernels given as text.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data.h"
#include "error_of.h"
#include "lightcone/backends/cuda/cuda.h"
#include "lightcone/backends/cuda/memory.h"
#include "paths.h"

namespace lc::test {

// RAII: settings and counters of the simulated driver. Changed settings are restored at the end.
class Fake {
 public:
  explicit Fake(const std::string& path = paths::kFakeCuda) : library_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) throw std::runtime_error(::dlerror());
    set_ = reinterpret_cast<decltype(set_)>(::dlsym(library_, "fake_cuda_set"));
    get_ = reinterpret_cast<decltype(get_)>(::dlsym(library_, "fake_cuda_get"));
  }
  ~Fake() {
    for (auto it = before_.rbegin(); it != before_.rend(); ++it) set_(it->first.c_str(), it->second);
  }
  Fake(const Fake&) = delete;
  void set(const std::string& name, long value) {
    before_.emplace_back(name, get(name));
    EXPECT_EQ(set_(name.c_str(), value), 0) << name;
  }
  long get(const std::string& name) const { return get_(name.c_str()); }
  long live() const { return get("live"); }  // objects not yet released
  // Makes the n-th call from now on fail; n = 0 makes none fail.
  void fail(long n, long code) {
    set_("fail_code", code);
    set_("fail_at", n ? get("calls") + n : 0);
  }

 private:
  void* library_;
  int (*set_)(const char*, long);
  long (*get_)(const char*);
  std::vector<std::pair<std::string, long>> before_;
};

// A second driver in this process: a copy of the library, with its own settings and device.
struct SecondDriver {
  TempDir dir;
  std::string path = dir / "libsecond_cuda.so";
  SecondDriver() { std::filesystem::copy_file(paths::kFakeCuda, path); }
};

inline CudaOptions fake_options(const std::string& cache = "off") {
  CudaOptions o;
  o.driver = o.compiler = paths::kFakeCuda;
  o.cache = cache;
  return o;
}

template <class T>
void put(Device& d, BufferSlice to, const std::vector<T>& v) {
  d.copy_in(to, v.data(), v.size() * sizeof(T));
}
template <class T>
std::vector<T> take(Device& d, BufferSlice from, std::size_t n) {
  std::vector<T> v(n);
  d.copy_out(v.data(), from, n * sizeof(T));
  return v;
}
inline std::vector<float> iota(std::size_t n, float first = 0) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

// y = x * factor, and y[i] += x[i]; one thread per element.
inline constexpr const char* kText = R"(
extern "C" __global__ void scale(const float* x, float* y, long long n, long long factor) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * (float)factor;
}
extern "C" __global__ void add(const float* x, float* y, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += x[i];
}
)";
inline const std::vector<std::string> kKernels = {"scale", "add"};

// A kernel given as text, with one thread per element; sizes[0] is the number of elements.
class TextKernel : public backends::gpu::GpuKernel {
 public:
  TextKernel(std::shared_ptr<const backends::gpu::Code> code, std::size_t function)
      : code_(std::move(code)), function_(function) {}
  std::string name() const override { return "text"; }
  void enqueue(const Launch& l, backends::gpu::GpuDevice& device) const override {
    std::vector<BufferSlice> places(l.in.begin(), l.in.end());
    places.push_back(l.out);
    device.launch_kernel({.code = code_.get(),
                          .function = function_,
                          .grid_size = (l.sizes[0] + 63) / 64,
                          .block_size = 64,
                          .buffers = places,
                          .sizes = l.sizes});
  }

 private:
  std::shared_ptr<const backends::gpu::Code> code_;
  std::size_t function_;
};

// A list of launches that owns the arrays its entries point to.
struct Launches {
  std::vector<std::vector<BufferSlice>> in;
  std::vector<std::vector<std::int64_t>> sizes;
  std::vector<Launch> all;
  explicit Launches(std::size_t n) : in(n), sizes(n), all(n) {}
  void set(std::size_t k, const Kernel& kernel, std::vector<BufferSlice> from, BufferSlice to,
           std::vector<std::int64_t> numbers) {
    in[k] = std::move(from), sizes[k] = std::move(numbers);
    all[k] = {&kernel, in[k], to, sizes[k], {}, false};
  }
};

}  // namespace lc::test
