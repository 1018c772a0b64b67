#include "lightcone/lowering/pipeline.h"

#include "lightcone/device/loop_plan.h"
#include "lightcone/lowering/contraction.h"
#include "lightcone/lowering/order.h"
#include "lightcone/lowering/reductions.h"
#include "lightcone/passes/canonical.h"
#include "lightcone/passes/composites.h"

namespace lc::lowering {
namespace {

using Applies = std::function<bool(const Graph&)>;

Applies contains(bool (*is)(const Graph& g, const Node& n)) {
  return [is](const Graph& g) { return any_node(g, [&](const Node& n) { return is(g, n); }); };
}
bool is_exponential(const Graph&, const Node& n) { return n.op == Op::Exp || n.op == Op::Exp2; }
bool is_sum_of_products(const Graph& g, const Node& n) {
  return n.op == Op::SumReduce && g[n.in[0].node].op == Op::Mul;
}
bool is_reduction(const Graph&, const Node& n) { return info(n.op).kind == Kind::Reduce; }

// Returns true for composites without a kernel and for elementwise operations without a C spelling.
bool is_foreign(const DeviceTraits& d, const Graph& g, const Node& n) {
  const OpInfo& op = info(n.op);
  if (op.kind == Kind::Elementwise) return !op.has(kPrimitive) && op.c.empty();
  return n.op == Op::Composite && !d.has_kernel(g, n);
}

Pass inline_foreign(const DeviceTraits& d) {
  const auto foreign = [d](const Graph& g, const Node& n) { return is_foreign(d, g, n); };
  return {.name = "inline-composites",
          .run = [=](const Graph& g, PassLog& log) { return inline_composites(g, log, foreign); },
          .required = true,
          .applies = [=](const Graph& g) { return any_node(g, [&](const Node& n) { return foreign(g, n); }); }};
}

}  // namespace

std::vector<Pass> canonical_passes(const DeviceTraits& d) {
  std::vector<Pass> p;
  p.push_back({.name = "compile-loops", .run = d.compile_loops, .applies = has_loops});
  // This comes first, so that attention without a kernel is inlined with the other composites.
  p.push_back({.name = "fuse-attention",
               .run = [fuse = d.fuse_attention](const Graph& g, PassLog& log) { return fuse(g, log, fuse_attention); },
               .applies = [](const Graph& g) { return any_node(g, is_attention); }});
  p.push_back(inline_foreign(d));
  p.push_back({.name = "unroll-windows", .run = unroll_windows, .applies = has_windows});
  if (d.channels_last) p.push_back(*d.channels_last);
  if (d.filter_gradients) p.push_back(*d.filter_gradients);
  p.push_back({.name = "materialize-views",
               .run = [](const Graph& g, PassLog&) { return make_contiguous(g); },
               .required = true});
  p.push_back(
      {.name = "match-attention",
       .run = [fuse = d.fuse_attention](const Graph& g, PassLog& log) { return fuse(g, log, fuse_matched_attention); },
       .applies = contains(is_exponential)});
  if (d.fuse_prefix_sums) p.push_back(*d.fuse_prefix_sums);
  p.push_back(
      {.name = "prepare-contractions",
       .run = [is = d.is_convolution](const Graph& g, PassLog& log) { return prepare_contractions(g, log, is); },
       .applies = contains(is_sum_of_products)});
  if (d.shapes_reductions) {
    p.push_back({.name = "join-reductions", .run = join_reductions, .applies = contains(is_reduction)});
    p.push_back({.name = "split-reductions",
                 .run = [](const Graph& g, PassLog& log) { return split_reductions(g, log); },
                 .applies = contains(is_reduction)});
  }
  if (d.bf16_propagation) p.push_back(*d.bf16_propagation);
  return p;
}

std::vector<Pass> scheduling_passes(const DeviceTraits& d) {
  // State updates come second: they follow the waits that they depend on.
  std::vector<Pass> p{{.name = "overlap-exchanges", .run = overlap_exchanges, .applies = has_exchanges},
                      {.name = "schedule-state-updates", .run = schedule_state_updates, .applies = has_large_updates}};
  if (d.run_concurrently) p.push_back(*d.run_concurrently);
  return p;
}

Compiler pipeline(const DeviceTraits& d) {
  Compiler all;
  for (Pass& p : canonical_passes(d)) all = all | Compiler(std::move(p));
  all = all | Compiler(d.emit_kernels);
  for (Pass& p : scheduling_passes(d)) all = all | Compiler(std::move(p));
  return all;
}

Graph run_passes(const Graph& g, std::span<const Pass> passes, PassLog& log) {
  Graph done = g.clone();
  for (const Pass& p : passes)
    if (!p.applies || p.applies(done)) done = p.run(done, log);
  return done;
}

}  // namespace lc::lowering
