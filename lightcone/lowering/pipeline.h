// The passes by which a device compiles a graph, in order: one list for all devices. A device fills in DeviceTraits.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lightcone/lowering/factors.h"
#include "lightcone/passes/compiler.h"

namespace lc::lowering {

struct DeviceTraits {
  // Does the device have a kernel for this composite? Otherwise its definition is inlined.
  std::function<bool(const Graph& g, const Node& composite)> has_kernel;
  // Compiles the bodies of loops, each to one kernel (device/loop_plan.h).
  std::function<Graph(const Graph& g, PassLog& log)> compile_loops;
  // Replaces attention by kernels (lowering/attention.h).
  std::function<Graph(const Graph& g, PassLog& log)> fuse_attention;
  // Is this sum of products a convolution that the device has a kernel for?
  std::function<bool(const Graph& g, const Factors& f)> is_convolution;
  std::optional<Pass> channels_last, filter_gradients, fuse_prefix_sums;  // what only some devices do
  bool shapes_reductions = false;  // joins reductions over neighbouring axes, and splits long ones over workers
  // The graph with kernels in place of its nodes.
  Pass emit;
  std::optional<Pass> run_concurrently;
};

// The passes before `emit`, which bring a graph into the form that is partitioned into kernels. Without them the graph
// computes the same, but for those that are required.
std::vector<Pass> canonical_passes(const DeviceTraits& d);
// All passes, as a compiler.
Compiler pipeline(const DeviceTraits& d);
// The graph after these passes, without a log of its own for each.
Graph run_passes(const Graph& g, std::span<const Pass> passes, PassLog& log);
// The passes after `emit`.
std::vector<Pass> scheduling_passes(const DeviceTraits& d);

}  // namespace lc::lowering
