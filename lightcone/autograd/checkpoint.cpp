#include "lightcone/autograd/checkpoint.h"

#include <algorithm>
#include <map>
#include <set>

#include "lightcone/autograd/reverse.h"
#include "lightcone/core/composite.h"
#include "lightcone/passes/barrier.h"

namespace lc {
namespace {

// The nodes of a function, in topological order, and the outside nodes that they read.
struct Segment {
  NodeId result;
  std::vector<NodeId> nodes, operands;
  std::map<NodeId, Derivative> derivatives;  // user-defined derivatives, by node
};

bool is_leaf(const Node& n) { return n.op == Op::Constant || n.op == Op::Index; }

Segment segment(const Graph& g, NodeId result, std::size_t begin) {
  Segment s{result, {}, {}, {}};
  std::set<NodeId> inside{result}, outside;
  std::vector<NodeId> open{result};
  const auto reach = [&](const Edge& e) {
    const Node& n = g[e.node];
    if (n.op == Op::Input || (e.node < begin && !is_leaf(n))) outside.insert(e.node);
    else if (!is_leaf(n) && inside.insert(e.node).second) open.push_back(e.node);
  };
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (const Edge& e : g[id].in) reach(e);
    if (const Derivative* d = g.derivative(id)) {
      for (const Edge& e : d->in) reach(e);
      s.derivatives.emplace(id, *d);
    }
  }
  s.nodes.assign(inside.begin(), inside.end()), s.operands.assign(outside.begin(), outside.end());
  return s;
}

// Clones the segment. Parameters are read directly, other operands through barriers.
std::map<NodeId, NodeId> clone(Graph& g, const Segment& s) {
  std::map<NodeId, NodeId> to;
  for (const NodeId id : s.operands) {
    const Node& n = g[id];
    const Tensor x(g, {id, View(n.shape)});
    to[id] = n.op == Op::Input && n.parameter ? id : behind_barrier(x).edge().node;
  }
  const auto moved = [&](std::vector<Edge> edges) {
    for (Edge& e : edges)
      if (const auto it = to.find(e.node); it != to.end()) e.node = it->second;
    return edges;
  };
  for (const NodeId id : s.nodes) {
    Node n = g[id];
    n.in = moved(std::move(n.in));
    to[id] = g.add(std::move(n));
    if (const auto d = s.derivatives.find(id); d != s.derivatives.end())
      g.derivative(to[id], std::make_shared<const Derivative>(Derivative{moved(d->second.in), d->second.vjp}));
  }
  return to;
}

std::vector<Tensor> through_clone(const Segment& s, const VjpCall& call) {
  Graph& g = call.g().graph();
  const std::map<NodeId, NodeId> to = clone(g, s);
  std::vector<NodeId> wrt;
  for (std::size_t k = 0; k < s.operands.size(); ++k)
    if (call.wanted[k]) wrt.push_back(to.at(s.operands[k]));
  ReverseSweep sweep(g, wrt, true);
  const NodeId y = to.at(s.result);
  sweep.seed(Tensor(g, {y, View(g[y].shape)}), call.g());
  sweep.run();
  std::vector<Tensor> d(s.operands.size());
  for (std::size_t k = 0; k < d.size(); ++k)
    if (call.wanted[k]) d[k] = sweep.cotangent(to.at(s.operands[k]));
  return d;
}

}  // namespace

void recompute_in_backward(const Tensor& y, std::size_t begin) {
  Graph& g = y.graph();
  const NodeId id = y.edge().node;
  if (id < begin || g[id].op == Op::Input || is_leaf(g[id])) return;  // nothing to recompute
  if (g[id].op == Op::Result)
    throw Error("checkpoint",
                "the function gives one of several results of an operation as it is: put a step behind it");
  const auto s = std::make_shared<const Segment>(segment(g, id, begin));
  std::vector<Edge> in;
  for (const NodeId k : s->operands) in.push_back({k, View(g[k].shape)});
  g.derivative(id, std::make_shared<const Derivative>(
                       Derivative{in, [s](const VjpCall& call) { return through_clone(*s, call); }}));
}

}  // namespace lc
