// Runs kernels with independent iterations on several threads: a single one, or several small ones in one fork.
#pragma once

#include <span>

#include "lightcone/device/host_kernel.h"

namespace lc {

struct Divided {
  const HostKernel* kernel;
  HostLaunch launch;
  Iterations iterations;  // for the sizes of this launch
};
// Runs kernels of which none reads or overwrites what another one writes.
void run_divided(std::span<const Divided> kernels, Parallel& parallel);

}  // namespace lc
