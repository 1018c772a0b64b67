#include "lightcone/backends/gpu/gpu.h"

#include "lightcone/backends/gpu/lower.h"
#include "lightcone/backends/gpu/scan.h"
#include "lightcone/lowering/canonical.h"
#include "lightcone/lowering/order.h"
#include "lightcone/passes/composites.h"

namespace lc::gpu {
namespace {

// What brings a graph into the form in which it is cut.
std::vector<Pass> canonical_passes(const std::shared_ptr<GpuDevice>& device, const GpuOptions& options) {
  const auto is_foreign = [device](const Graph& g, const Node& n) {
    return n.op == Op::Composite && !has_kernel(g, n, *device);
  };
  std::vector<Pass> passes;
  passes.push_back({"loops",
                    [=](const Graph& g, PassLog& log) {
                      return compile_loops(g, log, rule_name(*device), compiler(device, options), 1, scan_kernel);
                    },
                    {},
                    false,
                    has_loops});
  passes.push_back({"composites",
                    [=](const Graph& g, PassLog& log) { return inline_composites(g, log, is_foreign); },
                    {},
                    true,
                    [=](const Graph& g) { return any_node(g, [&](const Node& n) { return is_foreign(g, n); }); }});
  passes.push_back({"unroll windows", lowering::unroll_windows, {}, false, lowering::has_windows});
  passes.push_back({"contiguous", [](const Graph& g, PassLog&) { return lowering::make_contiguous(g); }, {}, true});
  return passes;
}

}  // namespace

Compiler compiler(std::shared_ptr<GpuDevice> device, GpuOptions options) {
  Compiler all;
  for (Pass& p : canonical_passes(device, options)) all = all | Compiler(std::move(p));
  all = all | Compiler({"gpu", [=](const Graph& g, PassLog& log) {
                          Lowered l = lower(g, device, log, options);
                          compile(l.kernels, *device, log);
                          return std::move(l.graph);
                        }});
  return all | Compiler({"updates early", lowering::updates_early, {}, false, lowering::has_large_updates});
}

std::vector<Graph> compile_batch(std::span<const Graph* const> graphs, const std::shared_ptr<GpuDevice>& device,
                                 GpuOptions options, PassLog* log) {
  PassLog whole;
  whole.pass = "gpu";
  std::vector<Graph> done;
  std::vector<std::shared_ptr<TextKernel>> kernels;
  for (const Graph* given : graphs) {
    PassLog own;
    Graph g = given->clone();
    for (const Pass& p : canonical_passes(device, options))
      if (!p.applies || p.applies(g)) g = p.run(g, own);
    Lowered l = lower(g, device, own, options);
    kernels.insert(kernels.end(), l.kernels.begin(), l.kernels.end());
    done.push_back(lowering::updates_early(l.graph, own));
  }
  compile(kernels, *device, whole);
  if (log) *log = std::move(whole);
  return done;
}

}  // namespace lc::gpu
