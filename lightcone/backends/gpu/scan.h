// Loops as kernels that launch the kernels of their body, step after step, without a return to the host's program.
#pragma once

#include <memory>

#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/device/loop_plan.h"

namespace lc::backends::gpu {

std::shared_ptr<Kernel> scan_kernel(LoopPlan plan);

}  // namespace lc::backends::gpu
