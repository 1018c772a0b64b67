#include "lightcone/autograd/reverse.h"

#include <algorithm>

#include "lightcone/autograd/loops.h"
#include "lightcone/autograd/rules.h"
#include "lightcone/autograd/views.h"
#include "lightcone/composites/composites.h"

namespace lc {

ReverseSweep::ReverseSweep(Graph& g, const std::vector<NodeId>& wrt, bool stop)
    : g_(g), wrt_(wrt.begin(), wrt.end()), stop_(stop) {}

// Finds the nodes between `from` and the leaves that depend on one of wrt. Node numbers are a topological order.
void ReverseSweep::mark(const Edge& from) {
  std::vector<NodeId> open{from.node}, found;
  std::set<NodeId> seen{from.node};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (depends_.contains(id)) continue;
    found.push_back(id);
    if (stop_ && wrt_.contains(id)) continue;
    for (const Edge& e : g_[id].in)
      if (seen.insert(e.node).second) open.push_back(e.node);
  }
  std::sort(found.begin(), found.end());
  for (const NodeId id : found)
    depends_[id] =
        wrt_.contains(id) || std::ranges::any_of(g_[id].in, [&](const Edge& e) { return depends_.at(e.node); });
}

bool ReverseSweep::wanted(const Edge& e) const {
  const auto it = depends_.find(e.node);
  if (it == depends_.end() || !it->second) return false;
  return is_float(g_[e.node].dtype) || !g_[e.node].results.empty();
}

// Cotangents that arrive through one view are added before the view is transposed. If transposing it sums (Expand),
// each is transposed first: a product followed by a sum is a contraction, but a sum of two products is not. The
// transpose is built here and not when the sweep reaches the parameter, so that its operands are freed early.
void ReverseSweep::add(const Edge& to, const Tensor& cotangent, int result) {
  auto& parts = pending_[to.node].parts;
  const bool sums = std::ranges::any_of(to.view.moves(), [](const Move& m) { return m.kind == MoveKind::Expand; });
  if (sums) {
    parts.push_back({result, View(to.view.base()), transpose_view(to.view, cotangent)});
    return;
  }
  for (auto& p : parts)
    if (p.result == result && p.view == to.view) {
      p.sum = prim::add(p.sum, cotangent);
      return;
    }
  parts.push_back({result, to.view, cotangent});
}

void ReverseSweep::seed(const Tensor& output, const Tensor& cotangent) {
  const Edge e = output.edge();
  mark(e);
  if (wanted(e)) add(e, cotangent);
}

Tensor ReverseSweep::collect(const Pending& p, int result) const {
  Tensor sum;
  for (const auto& part : p.parts) {
    if (part.result != result) continue;
    const Tensor whole = transpose_view(part.view, part.sum);
    sum = sum.defined() ? prim::add(sum, whole) : whole;
  }
  return sum;
}

void ReverseSweep::run() {
  while (!pending_.empty()) {
    auto last = pending_.extract(std::prev(pending_.end()));
    const OpScope scope(g_[last.key()].where);
    if (wrt_.contains(last.key())) {
      const Tensor here = collect(last.mapped(), 0);
      Tensor& total = totals_[last.key()];
      total = total.defined() ? prim::add(total, here) : here;
      if (stop_) continue;
    }
    visit(last.key(), last.mapped());
  }
}

Tensor ReverseSweep::cotangent(NodeId wrt) const {
  const auto it = totals_.find(wrt);
  return it == totals_.end() ? Tensor() : it->second;
}

std::vector<Tensor> ReverseSweep::operands(std::span<const Edge> edges) const {
  std::vector<Tensor> in;
  for (const Edge& e : edges) in.emplace_back(g_, e);
  return in;
}

void ReverseSweep::visit(NodeId id, const Pending& p) {
  const Node n = g_[id];
  if (n.op == Op::Result) return add(n.in[0], collect(p, 0), n.axis);
  const Derivative* own = g_.derivative(id);
  const std::vector<Edge> edges = own ? own->in : n.in;
  if (edges.empty()) return;
  std::vector<Tensor> out, cotangents;
  const View whole(n.shape);
  if (n.results.empty()) out.emplace_back(g_, Edge{id, whole});
  for (int k = 0; k < static_cast<int>(n.results.size()); ++k) {
    const NodeId part = g_.add({.op = Op::Result, .in = {{id, whole}}, .axis = k});
    out.emplace_back(g_, Edge{part, View(g_[part].shape)});
  }
  for (int k = 0; k < static_cast<int>(out.size()); ++k) cotangents.push_back(collect(p, k));
  const Vjp rule = own ? own->vjp : n.composite ? n.composite->vjp : Vjp();
  const LoopBody* const loop = n.composite && !rule ? n.composite->loop.get() : nullptr;
  if (n.composite && !rule && !loop) return through_definition(id, cotangents);
  std::vector<bool> wants;
  for (const Edge& e : edges) wants.push_back(wanted(e));
  const std::vector<Tensor> in = operands(edges);
  const VjpCall call{n.attributes, in, out, cotangents, wants};
  const std::vector<Tensor> back = rule ? rule(call) : loop ? loop_vjp(*loop, call) : apply_rule(n, call);
  check(back.size() == in.size(), "a rule of differentiation gives one cotangent an operand");
  bool passes = false;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!wants[k] || !back[k].defined()) continue;
    passes = true;
    if (back[k].shape() != in[k].shape() || back[k].dtype() != in[k].dtype())
      throw Error("gradients", str_cat("the rule of ", n.composite ? n.composite->name : std::string(info(n.op).name),
                                       " gives ", name(back[k].dtype()), " ", str(back[k].shape()), " for an operand ",
                                       name(in[k].dtype()), " ", str(in[k].shape())));
    add(edges[k], back[k]);
  }
  if (!passes) flat_.insert(id);
}

// Differentiates a composite without a rule through its definition.
void ReverseSweep::through_definition(NodeId id, const std::vector<Tensor>& cotangents) {
  const Node n = g_[id];
  std::vector<NodeId> nodes;
  for (const Edge& e : n.in)
    if (wanted(e)) nodes.push_back(e.node);
  ReverseSweep inner(g_, nodes, true);
  const std::vector<Tensor> results = define_all(n, operands(n.in));
  for (std::size_t k = 0; k < results.size(); ++k)
    if (cotangents[k].defined()) inner.seed(results[k], cotangents[k]);
  inner.run();
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (const NodeId node : nodes)
    if (const Tensor d = inner.cotangent(node); d.defined()) add({node, View(g_[node].shape)}, d);
    else flat_.insert(id);
}

}  // namespace lc
