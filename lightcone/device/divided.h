// Kernels whose iterations do not depend on each other, spread over threads: one alone, or several small ones that
// share a fork.
#pragma once

#include <span>

#include "lightcone/device/host_kernel.h"

namespace lc {

struct Divided {
  const HostKernel* kernel;
  HostLaunch launch;
  Iterations iterations;  // of these sizes
};
// None of them reads or overwrites what another writes.
void run_divided(std::span<const Divided> kernels, Parallel& parallel);

}  // namespace lc
