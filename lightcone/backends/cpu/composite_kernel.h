// A kernel of one's own for a composite on the CPU, as a function.
//
//   Composite c{.name = "rms_norm", ..., .kernels = {cpu_kernel([](const CpuCall& call) { ... })}};
#pragma once

#include "lightcone/macros_off.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "lightcone/device/host_kernel.h"
#include "lightcone/device/kernel_rule.h"

namespace lc {

// One run: operands and results lie whole and row-major in memory.
class CpuCall {
 public:
  template <class T>
  const T* in(std::size_t k) const {
    return static_cast<const T*>(launch_.in[k]);
  }
  template <class T>
  T* out(std::size_t k = 0) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(launch_.out) + offsets_[k]);
  }
  std::span<const std::int64_t> in_shape(std::size_t k) const { return shape(k); }
  std::span<const std::int64_t> out_shape(std::size_t k = 0) const { return shape(operands_ + k); }
  const Attributes& attributes() const { return attributes_; }
  std::int64_t extent(std::string_view name) const;  // the number behind an attribute that is an extent
  // Calls f(begin, end) for ranges of [0, count), on all threads. Results may not depend on how it is divided.
  template <class F>
  void parallel(std::int64_t count, const F& f) const;

 private:
  friend class CpuCompositeKernel;
  CpuCall(const HostLaunch& l, std::span<const std::int64_t> offsets, std::span<const std::size_t> ranks,
          std::size_t operands, const Attributes& a)
      : launch_(l), offsets_(offsets), ranks_(ranks), operands_(operands), attributes_(a) {}
  std::span<const std::int64_t> shape(std::size_t k) const;

  const HostLaunch& launch_;
  std::span<const std::int64_t> offsets_;  // of the results, in bytes
  std::span<const std::size_t> ranks_;     // of the operands, then of the results
  std::size_t operands_;
  const Attributes& attributes_;
};

// `run` may not throw, allocate or keep what it is given. `takes`: which element types and attributes it can; others
// are computed by the definition.
std::shared_ptr<const KernelRule> cpu_kernel(
    std::function<void(const CpuCall&)> run,
    std::function<bool(const Attributes&, std::span<const TensorType> operands)> takes = {});

template <class F>
void CpuCall::parallel(std::int64_t count, const F& f) const {
  struct Job {
    const F& f;
    std::int64_t count, tasks;
  } job{f, count, std::min<std::int64_t>(count, 4 * launch_.parallel.workers())};
  launch_.parallel.run(
      static_cast<int>(job.tasks),
      [](void* arg, int task, int) {
        const Job& j = *static_cast<const Job*>(arg);
        j.f(j.count * task / j.tasks, j.count * (task + 1) / j.tasks);
      },
      &job);
}

}  // namespace lc
#include "lightcone/macros_on.h"
