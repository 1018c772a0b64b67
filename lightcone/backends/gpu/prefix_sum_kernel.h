// Running sums, products and maxima along the last axis, as one kernel: the steps over 1, 2, 4, ... elements that a
// graph has for them read and write all of memory in each.
#pragma once

#include <memory>

#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/passes/compiler.h"

namespace lc::backends::gpu {

Graph fuse_prefix_sums(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log);

}  // namespace lc::backends::gpu
