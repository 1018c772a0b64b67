#include "lightcone/backends/gpu/gpu.h"

#include <mutex>

#include "lightcone/backends/gpu/attention_kernel.h"
#include "lightcone/backends/gpu/lower.h"
#include "lightcone/backends/gpu/prefix_sum_kernel.h"
#include "lightcone/backends/gpu/product_kernel.h"
#include "lightcone/backends/gpu/products/product.h"
#include "lightcone/backends/gpu/scan.h"
#include "lightcone/lowering/canonical.h"
#include "lightcone/lowering/contraction.h"
#include "lightcone/lowering/order.h"
#include "lightcone/lowering/reductions.h"
#include "lightcone/passes/composites.h"

namespace lc::backends::gpu {
namespace {

// A device that is opened when it is first asked for.
class LazyDevice {
 public:
  explicit LazyDevice(std::function<std::shared_ptr<GpuDevice>()> open) : open_(std::move(open)) {}
  const std::shared_ptr<GpuDevice>& device() {
    const std::lock_guard lock(mutex_);  // an Error is one of this time: the next one tries again
    if (!device_) device_ = open_();
    return device_;
  }

 private:
  std::mutex mutex_;
  std::function<std::shared_ptr<GpuDevice>()> open_;
  std::shared_ptr<GpuDevice> device_;
};
using Device = std::shared_ptr<LazyDevice>;

// What brings a graph into the form in which it is cut.
std::vector<Pass> canonical_passes(const Device& lazy, const GpuOptions& options) {
  const auto is_foreign = [lazy](const Graph& g, const Node& n) {
    return n.op == Op::Composite && !has_kernel(g, n, *lazy->device());
  };
  std::vector<Pass> passes;
  const auto add = [&](const char* name, std::function<bool(const Graph&)> applies,
                       std::function<Graph(const Graph&, PassLog&)> run, bool required = false) {
    passes.push_back({name, std::move(run), {}, required, std::move(applies)});
  };
  add("compile-loops", has_loops, [=](const Graph& g, PassLog& log) {
    const auto device = lazy->device();
    return compile_loops(g, log, rule_name(*device), compiler(device, options), 1, scan_kernel);
  });
  add(
      "inline-composites", [=](const Graph& g) { return any_node(g, [&](const Node& n) { return is_foreign(g, n); }); },
      [=](const Graph& g, PassLog& log) { return inline_composites(g, log, is_foreign); }, true);
  add("unroll-windows", lowering::has_windows, lowering::unroll_windows);
  add(
      "materialize-views", {}, [](const Graph& g, PassLog&) { return lowering::make_contiguous(g); }, true);
  add(
      "fuse-attention",
      [](const Graph& g) { return any_node(g, [](const Node& n) { return n.op == Op::Exp || n.op == Op::Exp2; }); },
      [=](const Graph& g, PassLog& log) { return fuse_attention(g, lazy->device(), log, options.precision); });
  add(
      "fuse-prefix-sums", [](const Graph& g) { return any_node(g, [](const Node& n) { return n.op == Op::Where; }); },
      [=](const Graph& g, PassLog& log) { return fuse_prefix_sums(g, lazy->device(), log); });
  add(
      "prepare-contractions",
      [](const Graph& g) {
        return any_node(g, [&](const Node& n) { return n.op == Op::SumReduce && g[n.in[0].node].op == Op::Mul; });
      },
      [](const Graph& g, PassLog& log) {
        return lowering::prepare_contractions(
            g, log, [](const Graph& of, const lowering::Factors& f) { return find_convolution(of, f).has_value(); });
      });
  const auto reduces = [](const Graph& g) {
    return any_node(g, [](const Node& n) { return info(n.op).kind == Kind::Reduce; });
  };
  add("join-reductions", reduces, lowering::join_reductions);
  add("split-reductions", reduces, [](const Graph& g, PassLog& log) { return lowering::split_reductions(g, log); });
  return passes;
}

Compiler joined(const Device& lazy, const GpuOptions& options) {
  Compiler all;
  for (Pass& p : canonical_passes(lazy, options)) all = all | Compiler(std::move(p));
  all = all | Compiler({"gpu", [=](const Graph& g, PassLog& log) {
                          Lowered l = lower(g, lazy->device(), log, options);
                          compile(l.kernels, *lazy->device(), log);
                          choose_libraries(l.kernels, *lazy->device(), log);
                          return std::move(l.graph);
                        }});
  return all |
         Compiler({"schedule-state-updates", lowering::schedule_state_updates, {}, false, lowering::has_large_updates});
}

}  // namespace

Compiler compiler(std::shared_ptr<GpuDevice> device, GpuOptions options) {
  return joined(std::make_shared<LazyDevice>([device = std::move(device)] { return device; }), options);
}
Compiler compiler(std::function<std::shared_ptr<GpuDevice>()> open, GpuOptions options) {
  return joined(std::make_shared<LazyDevice>(std::move(open)), options);
}

std::vector<Graph> compile_batch(std::span<const Graph* const> graphs, const std::shared_ptr<GpuDevice>& device,
                                 GpuOptions options, PassLog* log) {
  const auto lazy = std::make_shared<LazyDevice>([device] { return device; });
  const std::vector<Pass> passes = canonical_passes(lazy, options);
  PassLog whole;
  whole.pass = "gpu";
  std::vector<Graph> done;
  std::vector<std::shared_ptr<TextKernel>> kernels;
  for (const Graph* given : graphs) {
    PassLog own;
    Graph g = given->clone();
    for (const Pass& p : passes)
      if (!p.applies || p.applies(g)) g = p.run(g, own);
    Lowered l = lower(g, device, own, options);
    kernels.insert(kernels.end(), l.kernels.begin(), l.kernels.end());
    done.push_back(lowering::schedule_state_updates(l.graph, own));
  }
  compile(kernels, *device, whole);
  choose_libraries(kernels, *device, whole);
  if (log) *log = std::move(whole);
  return done;
}

}  // namespace lc::backends::gpu
