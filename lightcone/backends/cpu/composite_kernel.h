// Kernels for composites on the CPU, written by users as functions.
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

// A run of a composite's kernel. Operands and results are whole, row-major arrays in memory.
class CpuCall {
 public:
  // Pointer to the elements of operand `k`. T must be the operand's element type.
  template <class T>
  const T* in(std::size_t k) const {
    return static_cast<const T*>(launch_.in[k]);
  }
  // Pointer to the elements of result `k`. T must be the result's element type.
  template <class T>
  T* out(std::size_t k = 0) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(launch_.out) + offsets_[k]);
  }
  // Shape of operand `k` in this run.
  std::span<const std::int64_t> in_shape(std::size_t k) const { return shape(k); }
  // Shape of result `k` in this run.
  std::span<const std::int64_t> out_shape(std::size_t k = 0) const { return shape(operands_ + k); }
  // Attributes of the composite's node.
  const Attributes& attributes() const { return attributes_; }
  // Value, in this run, of the attribute `name`, which must be an extent (a Dim). Throws Error if there is none.
  std::int64_t extent(std::string_view name) const;
  // Calls f(begin, end) for ranges that partition [0, count), on all threads. Results must not depend on the partition.
  template <class F>
  void parallel(std::int64_t count, const F& f) const;

 private:
  friend class CpuCompositeKernel;
  CpuCall(const HostLaunch& l, std::span<const std::int64_t> offsets, std::span<const std::size_t> ranks,
          std::size_t operands, const Attributes& a)
      : launch_(l), offsets_(offsets), ranks_(ranks), operands_(operands), attributes_(a) {}
  std::span<const std::int64_t> shape(std::size_t k) const;

  const HostLaunch& launch_;
  std::span<const std::int64_t> offsets_;  // byte offset of each result in launch_.out
  std::span<const std::size_t> ranks_;     // ranks of the operands, then of the results
  std::size_t operands_;
  const Attributes& attributes_;
};

// Makes a CPU kernel rule from `run`, which must not throw, allocate, or keep pointers from its argument. `takes`
// returns whether `run` supports these attributes and operand types; if it returns false, the composite's definition is
// computed instead. An empty `takes` accepts everything.
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
