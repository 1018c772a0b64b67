#include "lightcone/lowering/types/half_precision.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "lightcone/composites/composites.h"
#include "lightcone/lowering/factors.h"
#include "lightcone/lowering/products.h"
#include "lightcone/passes/composites.h"

namespace lc {
namespace {

using namespace prim;
using lowering::Factors;

class Halved {
 public:
  Halved(const Graph& g, DType to, PassLog& log);
  Graph run();

 private:
  void find_crossings();
  bool is_statistic(const Edge& e, NodeId reader) const;
  Edge emit(Graph& dst, NodeId was, Node n);
  Edge parameter(Graph& dst, NodeId was, Node n);
  std::optional<Tensor> product(Graph& dst, const Factors& f);
  Tensor factor(Graph& dst, NodeId node);
  bool wants_copy(const Factors& f, int side) const;
  Tensor rounded(const Tensor& x) const { return cast(cast(x, to_), x.dtype()); }

  struct Given {
    NodeId as_given;
    int uses;
  };
  const Graph& g_;
  const DType to_;
  PassLog& log_;
  std::vector<bool> live_, parameter_, attention_, crossing_;
  std::vector<bool> factors_;      // the Mul of a product
  std::map<NodeId, Given> given_;  // keyed by the rounded parameter in the new graph
  std::vector<int> uses_;
};

Halved::Halved(const Graph& g, DType to, PassLog& log)
    : g_(g),
      to_(to),
      log_(log),
      live_(g.live()),
      parameter_(lowering::loaded_parameters(g)),
      attention_(lowering::inside_attention(g)),
      crossing_(g.size()),
      factors_(g.size()),
      uses_(g.uses()) {
  bool any = false;
  for (NodeId id = 0; id < g.size(); ++id) {
    any = any || (live_[id] && g[id].dtype == DType::F32);
    const auto f = live_[id] ? lowering::factors(g, id) : std::nullopt;
    if (f && lowering::is_product(g, *f)) factors_[g[id].in[0].node] = true;
  }
  if (!any) throw Error("half", str_cat("nothing in the graph is f32, so there is nothing to round to ", name(to)));
  find_crossings();
}

// Returns true if `reader` reads a statistic of a row or a channel, such as a mean or a maximum, broadcast over all of
// it. Statistics are not rounded.
bool Halved::is_statistic(const Edge& e, NodeId reader) const {
  return !factors_[reader] && !(lc::product(e.view.shape()) == lc::product(g_[e.node].shape));
}

// Finds the values passed between the calls of a model: computed in one call and read in another, by a reduction or by
// several readers.
void Halved::find_crossings() {
  std::vector<bool> crosses(g_.size()), lies(g_.size()), never(g_.size()), varies(g_.size());
  for (const Assignment& a : g_.assignments()) never[a.next.node] = true;
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    varies[id] = n.op == Op::Input && !parameter_[id];
    for (const Edge& e : n.in) {
      varies[id] = varies[id] || varies[e.node];
      if (!live_[id]) continue;
      const Location &here = n.where, &there = g_[e.node].where;
      if (here.line != there.line || std::string_view(here.op) != there.op) crosses[e.node] = true;
      if (uses_[e.node] > 1 || info(n.op).kind == Kind::Reduce) lies[e.node] = true;
      if (is_statistic(e, id)) never[e.node] = true;
    }
  }
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    const Kind kind = info(n.op).kind;
    const bool computed = kind == Kind::Elementwise || (kind == Kind::Reduce && factors_[n.in[0].node]);
    crossing_[id] = live_[id] && n.dtype == DType::F32 && computed && varies[id] && crosses[id] && lies[id] &&
                    !never[id] && !factors_[id] && !attention_[id];
  }
}

Edge Halved::parameter(Graph& dst, NodeId was, Node n) {
  const NodeId given = dst.add(std::move(n));
  const Edge computed = rounded(Tensor(dst, {given, View(dst[given].shape)})).edge();
  given_[computed.node] = {given, uses_[was]};
  ++log_.fired[str_cat("parameter in ", name(to_))];
  return computed;
}

// Matrix kernels read narrow weights along the summed axis, so a parameter in another order is copied. If it has
// another reader, it is stored once, in the order given.
bool Halved::wants_copy(const Factors& f, int side) const {
  const auto given = given_.find(f.edge[side].node);
  if (given == given_.end() || given->second.uses != 1) return false;
  const auto at = lowering::linear(f.at[side].offset, f.symbols);
  return at && f.at[side].valid == Dim(1) && !(at->strides.back() == Dim(1));
}

Tensor Halved::factor(Graph& dst, NodeId node) {
  const Tensor whole(dst, {node, View(dst[node].shape)});
  const bool leave = dst[node].dtype != DType::F32 || lowering::is_narrow(dst, dst[node]);
  return leave ? whole : rounded(whole);
}

std::optional<Tensor> Halved::product(Graph& dst, const Factors& f) {
  const Node sum = dst[f.sum];
  Tensor in[2];
  const bool copy[2] = {wants_copy(f, 0), wants_copy(f, 1)};
  if (!copy[0] && !copy[1]) {
    for (int side = 0; side < 2; ++side) in[side] = factor(dst, f.edge[side].node).with(f.edge[side].view);
    return sum_reduce(mul(in[0], in[1]).with(sum.in[0].view), sum.axis);
  }
  for (int side = 0; side < 2; ++side) {
    const auto axes = lowering::aligned(dst, f, side);
    if (!axes) return std::nullopt;
    if (!copy[side]) {
      in[side] = factor(dst, f.edge[side].node).with(axes->whole.view());
      continue;
    }
    const Tensor given(dst, {given_.at(f.edge[side].node).as_given, axes->small.view()});
    in[side] = rounded(given).expand(axes->whole.shape());
  }
  return sum_reduce(mul(in[0], in[1]), in[0].rank() - 1);
}

Edge Halved::emit(Graph& dst, NodeId was, Node n) {
  if (n.dtype == DType::F32 && parameter_[was]) return parameter(dst, was, std::move(n));
  if (is(n, builtin::gather()) && given_.contains(n.in[0].node)) {  // an embedding reads the halves
    const Tensor halves(dst, {dst[n.in[0].node].in[0].node, n.in[0].view});
    return cast(gather(halves, Tensor(dst, n.in[1]), static_cast<int>(n.attributes.integer("axis"))), n.dtype).edge();
  }
  const NodeId id = dst.add(std::move(n));
  Tensor made(dst, {id, View(dst[id].shape)});
  const bool sums = g_[was].op == Op::SumReduce && g_[was].dtype == DType::F32 && factors_[g_[was].in[0].node];
  if (const auto f = sums && !attention_[was] ? lowering::factors(dst, id) : std::nullopt)
    if (const auto half = product(dst, *f)) made = *half, ++log_.fired[str_cat("product in ", name(to_))];
  if (!crossing_[was]) return made.edge();
  ++log_.fired[str_cat("value in ", name(to_))];
  return rounded(made).edge();
}

Graph Halved::run() {
  return copy_graph(g_, [&](Graph& dst, NodeId was, Node n) { return emit(dst, was, std::move(n)); });
}

}  // namespace

Compiler half(DType to) {
  if (!is_half(to)) throw Error("half", str_cat("to ", name(to), ": a model is rounded to f16 or bf16"));
  Pass p;
  p.name = str_cat("half ", name(to));
  p.redefines = true;
  p.run = [to](const Graph& g, PassLog& log) {
    const Graph written_out = inline_transparent(g, log, builtin::attention());
    return Halved(written_out, to, log).run();
  };
  return Compiler(std::move(p));
}

}  // namespace lc
