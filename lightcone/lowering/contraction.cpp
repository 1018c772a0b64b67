#include "lightcone/lowering/contraction.h"

#include <optional>

#include "lightcone/composites/composites.h"
#include "lightcone/lowering/products.h"

namespace lc::lowering {

using i64 = std::int64_t;

namespace {
Dim sum_extent(const Graph& g, NodeId id) { return g[id].in[0].view.shape()[g[id].axis]; }

// The operand as it is stored. A cast or dequantisation is skipped if the kernel can read the narrow type.
struct Stored {
  Edge edge;
  WeightType type = WeightType::F32;
};
Stored look_through(const Graph& g, const Edge& e) {
  const Node& n = g[e.node];
  if (n.op == Op::Contiguous && n.in[0].view.identity()) {
    const DType t = g[n.in[0].node].dtype;
    if (is_half(t)) return {{n.in[0].node, e.view}, t == DType::F16 ? WeightType::F16 : WeightType::BF16};
    if (t == DType::I8) return {{n.in[0].node, e.view}, WeightType::Bytes};
  }
  if (is(n, builtin::dequantize()) && n.in[0].view.identity())
    return {{n.in[0].node, View()}, weight_type(static_cast<QuantFormat>(n.attributes.integer("format")))};
  return {e, WeightType::F32};
}

}  // namespace

std::string shapes_of(const Contraction& c, const std::vector<Dim>& others) {
  Shape a, b;
  for (std::size_t i = 0; i + 1 < c.axes.size(); ++i) {
    const Contraction::Axis& axis = c.axes[i];
    if (!(axis.a == Dim(0))) a.push_back(axis.extent);
    if (!(axis.b == Dim(0))) b.push_back(axis.extent);
  }
  a.push_back(c.k.extent), b.push_back(c.k.extent);
  std::string columns = c.axes.back().extent.str();
  for (const Dim& more : others) columns += " + " + more.str();
  const std::string left = str(a), right = str(b);
  return str_cat(left, " x ", right.substr(0, right.size() - 1), ", ", columns, "]");
}

bool rows_follow(const Contraction& c) {
  Dim next = 0;
  for (std::size_t i = c.axes.size() - 1; i-- > 0;) {
    const Contraction::Axis& x = c.axes[i];
    if (x.extent == Dim(1)) continue;
    if (!(next == Dim(0)) && !(x.a == next)) return false;
    next = x.a * x.extent;
  }
  return true;
}

std::optional<Contraction> match_contraction(const Graph& g, const Factors& s) {
  const NodeId id = s.sum;
  for (const auto& p : s.at)
    if (!(p.valid == Dim(1))) return std::nullopt;
  const std::size_t rank = s.symbols.size() - 1;
  std::optional<Linear> l[2] = {linear(s.at[0].offset, s.symbols), linear(s.at[1].offset, s.symbols)};
  if (!l[0] || !l[1]) return std::nullopt;
  // The columns of C are the innermost output axis whose extent is not one.
  std::size_t last = rank;
  while (last > 0 && !s.symbols[last - 1].name()) --last;
  if (last == 0) return std::nullopt;
  const bool last0 = !(l[0]->strides[last - 1] == Dim(0)), last1 = !(l[1]->strides[last - 1] == Dim(0));
  if (last0 == last1) return std::nullopt;  // both factors have it: no matrix kernel writes this order
  const int b = last1 ? 1 : 0, a = 1 - b;
  Contraction c;
  const Stored w = look_through(g, s.edge[b]);
  c.a_node = s.edge[a].node;
  c.b_node = s.edge[b].node;
  c.type = WeightType::F32;
  const Dim k_stride = l[b]->strides[rank];
  if (exact_bytes(g, g[id])) {
    c.type = WeightType::I8;
    c.a_node = g[c.a_node].in[0].node, c.b_node = g[c.b_node].in[0].node;
    c.to_f32 = g[id].dtype == DType::F32;
  } else if (w.type != WeightType::F32 && k_stride == Dim(1)) {
    const QuantInfo* format = block_format(w.type);
    const Dim block = format ? format->elements : 1;
    bool whole = l[b]->offset % block == Dim(0) && sum_extent(g, id) % block == Dim(0);
    for (std::size_t i = 0; i < rank; ++i) whole = whole && l[b]->strides[i] % block == Dim(0);
    if (whole) {
      c.type = w.type;
      c.b_node = w.edge.node;
    }
  }
  c.a_offset = l[a]->offset;
  c.b_offset = l[b]->offset;
  Dim stride = 1;
  std::vector<Dim> c_strides(rank);
  for (std::size_t i = rank; i-- > 0;) {
    c_strides[i] = stride;
    stride = stride * g[id].shape[i];
  }
  for (std::size_t i = 0; i < last; ++i)
    c.axes.push_back({g[id].shape[i], l[a]->strides[i], l[b]->strides[i], c_strides[i]});
  c.k = {sum_extent(g, id), l[a]->strides[rank], k_stride, 0};
  return c;
}

namespace {

// Products read narrow weights along the summed axis. Returns the weights, a matrix that is a parameter stored the
// other way, as they are read from a transposed copy, which is made once, when the parameter is loaded.
std::optional<Edge> transposed_weights(Graph& g, const Edge& e, const Dim& offset, const std::vector<Dim>& symbols) {
  const Node& cast = g[e.node];
  if (cast.op != Op::Contiguous || cast.dtype != DType::F32 || !cast.in[0].view.identity()) return std::nullopt;
  const Node& stored = g[cast.in[0].node];
  const bool narrow = is_half(stored.dtype) || stored.dtype == DType::I8;
  if (!narrow || stored.op != Op::Input || !stored.parameter || stored.shape.size() != 2) return std::nullopt;
  const auto strides = linear(offset, symbols);
  if (!strides || strides->strides.back() == Dim(1) || !stored.shape[0].is_constant()) return std::nullopt;
  const Tensor copy = prim::contiguous(Tensor(g, cast.in[0]).permute({1, 0}));
  const Tensor same = prim::cast(copy, DType::F32).permute({1, 0});
  return same.with(same.view().then(e.view)).edge();
}

// The same product with such weights transposed; nullopt if it has none.
std::optional<Edge> with_transposed_weights(Graph& g, const Factors& f) {
  for (const int side : {0, 1}) {
    const auto edge = transposed_weights(g, f.edge[side], f.at[side].offset, f.symbols);
    if (!edge) continue;
    Node sum = g[f.sum], mul = g[sum.in[0].node];
    mul.in[static_cast<std::size_t>(side)] = *edge;
    sum.in[0].node = g.add(std::move(mul));
    const NodeId id = g.add(std::move(sum));
    return Edge{id, View(g[id].shape)};
  }
  return std::nullopt;
}

}  // namespace

Graph prepare_contractions(const Graph& g, PassLog& log,
                           const std::function<bool(const Graph&, const Factors&)>& taken) {
  return copy_graph(g, [&](Graph& dst, NodeId, Node n) {
    const NodeId id = dst.add(n);
    const Edge made{id, View(dst[id].shape)};
    const auto s = factors(dst, id);
    if (!s || taken(dst, *s)) return made;
    if (match_contraction(dst, *s)) return with_transposed_weights(dst, *s).value_or(made);
    // Copy a factor that cannot be read by strides along the axes it depends on, then expand the copy.
    std::vector<Tensor> in;
    for (int side = 0; side < 2; ++side) {
      const auto factor = aligned(dst, *s, side);
      if (!factor) return made;
      if (s->at[side].valid == Dim(1) && linear(s->at[side].offset, s->symbols)) {
        in.push_back(factor->whole);
        continue;
      }
      in.push_back(prim::contiguous(factor->small).expand(factor->whole.shape()));
      ++log.fired["operand copied for a contraction"];
    }
    return prim::sum_reduce(prim::mul(in[0], in[1]), in[0].rank() - 1).edge();
  });
}

}  // namespace lc::lowering
