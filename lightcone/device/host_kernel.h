// HostKernel: a kernel that runs on the host, with addresses for operands. The host's device and tests call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lightcone/device/kernel.h"
#include "lightcone/device/parallel.h"

namespace lc {

struct HostLaunch {
  std::span<const void* const> in;  // whole operand buffers; views are the kernel's business
  void* out;
  std::span<const std::int64_t> sizes;  // the values of Kernel::sizes(), in order
  std::byte* scratch;                   // scratch_bytes(), 64-byte aligned
  Parallel& parallel;
};

class HostKernel : public Kernel {
 public:
  // Must not allocate, lock or throw, except for an Error about the sizes given.
  virtual void run(const HostLaunch& launch) const = 0;
  // Where divisible() says so: iterations [begin, end).
  virtual void run_iterations(const HostLaunch& /*launch*/, std::int64_t /*begin*/, std::int64_t /*end*/) const {}
};

}  // namespace lc
