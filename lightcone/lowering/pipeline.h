// The passes that compile a graph for a device, in order. All devices share this list; each fills in DeviceTraits.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lightcone/lowering/attention.h"
#include "lightcone/lowering/factors.h"
#include "lightcone/passes/compiler.h"

namespace lc::lowering {

struct DeviceTraits {
  // Returns whether the device has a kernel for this composite; if not, its definition is inlined.
  std::function<bool(const Graph& g, const Node& composite)> has_kernel;
  // Compiles each loop with its body to one kernel (device/loop_plan.h).
  std::function<Graph(const Graph& g, PassLog& log)> compile_loops;
  // Replaces attention by kernels: calls `fuse` with the device's.
  std::function<Graph(const Graph& g, PassLog& log, AttentionFusion fuse)> fuse_attention;
  // Returns whether this sum of products is a convolution for which the device has a kernel.
  std::function<bool(const Graph& g, const Factors& f)> is_convolution;
  // Passes that only some devices have.
  std::optional<Pass> channels_last, filter_gradients, fuse_prefix_sums, bf16_propagation;
  bool shapes_reductions = false;  // if set, joins reductions over adjacent axes and splits long ones among threads
  // Partitions the graph and replaces its nodes by kernels.
  Pass emit_kernels;
  std::optional<Pass> run_concurrently;  // runs after `emit_kernels`
};

// The passes before `emit_kernels`, in order. They bring a graph into the form that is partitioned into kernels. A
// graph computes the same if passes that are not required are skipped.
std::vector<Pass> canonical_passes(const DeviceTraits& d);
// The compiler that runs all passes.
Compiler pipeline(const DeviceTraits& d);
// Runs the passes that apply to the graph and returns the result. All of them write to one `log`.
Graph run_passes(const Graph& g, std::span<const Pass> passes, PassLog& log);
// The passes after `emit_kernels`, in order. They choose when kernels run.
std::vector<Pass> scheduling_passes(const DeviceTraits& d);

}  // namespace lc::lowering
