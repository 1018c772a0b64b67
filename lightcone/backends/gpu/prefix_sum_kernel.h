// Prefix sums, products and maxima along the last axis, each as one kernel. The graph computes them by steps over 1, 2,
// 4, ... elements, each of which reads and writes all of the memory.
#pragma once

#include <memory>

#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/passes/compiler.h"

namespace lc::backends::gpu {

Graph fuse_prefix_sums(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log);

}  // namespace lc::backends::gpu
