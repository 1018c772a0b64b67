// Kernels that compute on the host what the device cannot compute. Each run copies the operands to the host and the
// result back. They are used only if GpuOptions::fallback is set.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/core/graph.h"
#include "lightcone/passes/compiler.h"

namespace lc::backends::gpu {

// Makes a kernel that computes node `root` from `operands`, all of which are in memory. Throws Error if `host` leaves a
// node without a kernel of the host.
std::shared_ptr<Kernel> fallback_kernel(const Graph& g, NodeId root, const std::vector<NodeId>& operands,
                                        const Compiler& host);

}  // namespace lc::backends::gpu
