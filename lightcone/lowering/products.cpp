#include "lightcone/lowering/products.h"

#include "lightcone/composites/composites.h"
#include "lightcone/lowering/attention.h"

namespace lc::lowering {

std::vector<bool> inside_attention(const Graph& g) {
  std::vector<bool> inside(g.size());
  const std::vector<int> uses = g.uses();
  for (NodeId id = 0; id < g.size(); ++id) {
    if (g[id].op != Op::SumReduce) continue;
    const auto match = match_attention(g, uses, id);
    if (!match) continue;
    std::vector<bool> seen(g.size());
    for (const Edge& e : match->operands) seen[e.node] = true;
    std::vector<NodeId> open{id};
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      inside[at] = true;
      for (const Edge& e : g[at].in)
        if (!seen[e.node]) seen[e.node] = true, open.push_back(e.node);
    }
  }
  return inside;
}

bool is_product(const Graph& g, const Factors& f) {
  const bool own[2] = {has_own_axis(f, 0), has_own_axis(f, 1)};
  const Node& w = g[f.edge[own[0] ? 0 : 1].node];
  return (own[0] && own[1]) || (w.op == Op::Input && w.parameter);
}

bool is_narrow(const Graph& g, const Node& n) {
  if (is(n, builtin::dequantize())) return true;
  if (n.op != Op::Contiguous) return false;
  const DType from = g[n.in[0].node].dtype;
  return is_half(from) || from == DType::I8;
}

std::vector<bool> loaded_parameters(const Graph& g) {
  std::vector<bool> loaded(g.size());
  for (NodeId id = 0; id < g.size(); ++id) loaded[id] = g[id].op == Op::Input && g[id].parameter;
  for (const Assignment& a : g.assignments()) loaded[a.state] = false;
  return loaded;
}

std::optional<Aligned> aligned(const Graph& g, const Factors& f, int side) {
  const Node& sum = g[f.sum];
  const Node& mul = g[sum.in[0].node];
  const View& v = sum.in[0].view;
  if (!v.identity() && !(v.base() == mul.shape)) return std::nullopt;
  Tensor t(g, f.edge[side]);
  t = t.with(t.view().then(v));
  std::vector<int> order;
  for (int i = 0; i <= static_cast<int>(sum.shape.size()); ++i)
    if (i != sum.axis) order.push_back(i);
  order.push_back(sum.axis);
  Aligned a{t.permute(order), t.permute(order)};
  const auto used = f.at[side].offset.symbols(), valid = f.at[side].valid.symbols();
  for (std::size_t i = 0; i < f.symbols.size(); ++i) {
    const auto name = f.symbols[i].name();
    const bool some = a.small.extent(static_cast<int>(i)).bounds().lo > 0;  // an empty axis has no first element
    if (some && name && !used.contains(*name) && !valid.contains(*name))
      a.small = a.small.slice(static_cast<int>(i), 0, 1);
  }
  return a;
}

}  // namespace lc::lowering
