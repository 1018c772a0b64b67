// What a device cannot compute, by kernels of the host: operands are copied there and the result back, each time. It is
// done only where it was asked for (GpuOptions::fallback).
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/core/graph.h"
#include "lightcone/passes/compiler.h"

namespace lc::backends::gpu {

// A kernel for the value of `root`, of whose operands all are in memory. An Error where the compiler leaves anything to
// somebody else.
std::shared_ptr<Kernel> fallback_kernel(const Graph& g, NodeId root, const std::vector<NodeId>& operands,
                                        const Compiler& host);

}  // namespace lc::backends::gpu
