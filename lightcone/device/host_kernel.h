// HostKernel: a kernel that runs on the host and gets operands as addresses. The host's device and tests call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lightcone/device/kernel.h"
#include "lightcone/device/parallel.h"

namespace lc {

// The arguments of one run.
struct HostLaunch {
  std::span<const void* const> in;  // whole operand buffers; the kernel applies views itself
  void* out;
  std::span<const std::int64_t> sizes;  // the values of Kernel::sizes(), in order
  std::byte* scratch;                   // Kernel::scratch_bytes() bytes, 64-byte aligned
  Parallel& parallel;
};

// A kernel for the host. Several threads may run the same kernel at once with different launches.
class HostKernel : public Kernel {
 public:
  // Runs the kernel. It must not allocate, lock or throw, except for an Error about the sizes given.
  virtual void run(const HostLaunch& launch) const = 0;
  // Runs the iterations [begin, end) of a kernel for which divisible() is true.
  virtual void run_iterations(const HostLaunch& /*launch*/, std::int64_t /*begin*/, std::int64_t /*end*/) const {}
};

}  // namespace lc
