#include "lightcone/device/loop_plan.h"

#include <algorithm>

#include "lightcone/base/error.h"
#include "lightcone/device/kernel_rule.h"
#include "lightcone/passes/passes.h"

namespace lc {
namespace {

std::size_t bytes_of(const Node& n) {
  return static_cast<std::size_t>(*product(n.shape).constant()) * size_of(n.dtype);
}

// Returns total + times * each, at most 2^60. The length of while_loop is an upper bound, and the product of two such
// bounds would overflow a Dim.
Dim repeated(const Dim& total, const Dim& each, std::int64_t times) {
  constexpr double kMost = static_cast<double>(std::int64_t{1} << 60);
  const double sum =
      static_cast<double>(*total.constant()) + static_cast<double>(*each.constant()) * static_cast<double>(times);
  return sum < kMost ? total + each * Dim(times) : Dim(std::int64_t{1} << 60);
}

}  // namespace

LoopPlan::LoopPlan(const LoopBody& body, Graph compiled, int workers, std::span<const TensorType> results)
    : states(body.states),
      slices(body.slices),
      ys(body.ys),
      length(body.length),
      reverse(body.reverse),
      keeps(body.keeps),
      result_at(result_offsets(results)),
      graph_(std::move(compiled)),
      plan_(make_plan(graph_, workers)),
      prepared_(find_prepared(graph_)),
      prepared_at_(aligned(plan_.arena_bytes)) {
  for (std::size_t k = 0; k < body.inputs.size(); ++k) {
    const Node& in = body.graph[body.inputs[k]];
    if (k < states + slices) bytes.push_back(bytes_of(in));
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (graph_[id].op == Op::Input && graph_[id].name == in.name) operand_[id] = k;
  }
  scratch_bytes = aligned(prepared_at_ + plan_.prepared_bytes);
  place_states(body);
  add_kernels();
}

void LoopPlan::place_states(const LoopBody& body) {
  for (auto& places : state_at)
    for (std::size_t k = 0; k < states; ++k) {
      places.push_back(scratch_bytes);
      scratch_bytes = aligned(scratch_bytes + bytes[k]);
    }
  for (std::size_t k = 0; k < states + ys; ++k) {
    const Root& r = graph_.roots()[k];
    check(r.edge.view.identity(), "an output of a compiled loop is a view");
    next.push_back(ref(r.edge.node));
  }
  for (std::size_t k = 0; k < ys; ++k) {
    const Edge& e = body.graph.roots()[states + k].edge;  // may be a view
    bytes.push_back(static_cast<std::size_t>(*product(e.view.shape()).constant()) * size_of(body.graph[e.node].dtype));
  }
}

LoopPlan::Ref LoopPlan::ref(NodeId id) const {
  if (prepared_.node[id]) return {Ref::Scratch, prepared_at_ + plan_.nodes[id].offset};
  if (graph_[id].op != Op::Input) return {Ref::Scratch, plan_.nodes[id].offset};
  const std::size_t k = operand_.at(id);
  return {k < states ? Ref::State : k < states + slices ? Ref::Slice : Ref::Operand, k};
}

void LoopPlan::add_kernels() {
  const std::vector<bool> live = graph_.live();
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& n = graph_[id];
    if (!live[id] || n.op == Op::Input || (n.kernel->part() && !prepared_.node[id])) continue;
    Step s{n.kernel.get(), {}, ref(id), {}, plan_.scratch[id], operands};
    for (const Edge& e : n.in) s.in.push_back(ref(e.node));
    for (const Dim& d : n.kernel->sizes()) s.sizes.push_back(*d.constant());
    operands += s.in.size();
    flops = repeated(flops, n.kernel->flops(), prepared_.node[id] ? 1 : length);
    (prepared_.node[id] ? once : steps).push_back(std::move(s));
  }
}

namespace {

bool is_loop(const Node& n) { return n.composite && n.composite->loop; }

// Returns true if every node is a kernel with constant sizes.
bool compiled_whole(const Graph& g) {
  const std::vector<bool> live = g.live();
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live[id] || g[id].op == Op::Input) continue;
    if (g[id].op != Op::Kernel) return false;
    for (const Dim& d : g[id].kernel->sizes())
      if (!d.is_constant()) return false;
  }
  return true;
}

CompositeRef with_kernel(const CompositeRef& c, PassLog& log, const std::string& device, const Compiler& compiler,
                         int workers, const std::function<std::shared_ptr<Kernel>(LoopPlan)>& make) {
  Compiled body = transform(c->loop->graph, generic() | compiler);
  for (const PassLog& part : body.log) {
    for (const auto& [what, n] : part.fired) log.fired[what] += n;
    log.notes.insert(log.notes.end(), part.notes.begin(), part.notes.end());
  }
  if (!compiled_whole(body.graph)) return c;
  ++log.fired["loop compiled"];
  auto own = std::make_shared<Composite>(*c);
  const std::vector<TensorType> results = c->infer({}, {});
  const std::shared_ptr<Kernel> kernel = make(LoopPlan(*c->loop, std::move(body.graph), workers, results));
  own->kernels = {std::make_shared<const KernelRule>(
      KernelRule{device, [kernel](const Node&, std::span<const TensorType>) { return kernel; }})};
  return own;
}

}  // namespace

bool has_loops(const Graph& g) { return any_node(g, is_loop); }

Graph compile_loops(const Graph& g, PassLog& log, const std::string& device, const Compiler& compiler, int workers,
                    const std::function<std::shared_ptr<Kernel>(LoopPlan)>& kernel) {
  std::map<CompositeRef, CompositeRef> made;
  return copy_graph(g, [&](Graph& dst, NodeId, Node n) {
    if (is_loop(n)) {
      CompositeRef& own = made[n.composite];
      if (!own) own = with_kernel(n.composite, log, device, compiler, workers, kernel);
      n.composite = own;
    }
    const NodeId id = dst.add(std::move(n));
    return Edge{id, View(dst[id].shape)};
  });
}

}  // namespace lc
