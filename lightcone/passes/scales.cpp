#include "lightcone/passes/scales.h"

#include "lightcone/composites/composites.h"

namespace lc {
namespace {

// Returns true for bytes of a parameter that are cast to f32.
bool widened_bytes(const Graph& g, const Node& n) {
  if (n.op != Op::Contiguous || n.dtype != DType::F32) return false;
  const Node& stored = g[n.in[0].node];
  return stored.op == Op::Input && stored.parameter && (stored.dtype == DType::I8 || stored.dtype == DType::U8);
}

// A product bytes * scale of which `through` reads a view.
struct Scaled {
  Tensor bytes, scale;  // f32, in the view's shape
};
std::optional<Scaled> scaled_bytes(Graph& g, const Edge& through) {
  const Node& product = g[through.node];
  if (product.op != Op::Mul || product.dtype != DType::F32) return std::nullopt;
  const auto seen = [&](std::size_t side) {
    const Tensor t(g, product.in[side]);
    return t.with(t.view().then(through.view));
  };
  for (const std::size_t side : {0, 1})
    if (widened_bytes(g, g[product.in[side].node])) return Scaled{seen(side), seen(1 - side)};
  return std::nullopt;
}

// The operand of a cast, in the view that an edge has of the cast.
Tensor before_cast(Graph& g, const Tensor& wide) {
  const Tensor stored(g, wide.node().in[0]);
  return stored.with(stored.view().then(wide.view()));
}

// gather(bytes * scale, i) = gather(bytes, i) * gather(scale, i): a table is not dequantised to read a few of its rows.
std::optional<Tensor> gather_bytes(const Match& m) {
  const Node& n = m.root.node();
  if (!is(n, builtin::gather())) return std::nullopt;
  const auto table = scaled_bytes(m.graph, n.in[0]);
  if (!table) return std::nullopt;
  const Tensor index(m.graph, n.in[1]);
  const int axis = static_cast<int>(n.attributes.integer("axis"));
  const Tensor bytes = prim::gather(before_cast(m.graph, table->bytes), index, axis);
  return prim::mul(prim::cast(bytes, DType::F32), prim::gather(table->scale, index, axis));
}

// Returns true if elements along the axis are one number in memory.
bool constant_along(const Tensor& t, int axis) {
  const View::Position p = t.view().locate(index_symbols(t.shape()));
  return p.valid == Dim(1) && !p.offset.symbols().contains(Dim::index_name(axis));
}

// sum_k a * (bytes * scale) = scale * sum_k a * bytes, where the scale is that of a column.
std::optional<Tensor> scale_after_sum(const Match& m) {
  const Node& sum = m.root.node();
  const Edge& e = sum.in[0];
  const Node& product = m.graph[e.node];
  if (product.op != Op::Mul || product.dtype != DType::F32 || !e.view.identity()) return std::nullopt;
  if (product.shape[static_cast<std::size_t>(sum.axis)].bounds().lo < 1) return std::nullopt;
  for (const std::size_t side : {1, 0}) {
    const auto w = scaled_bytes(m.graph, product.in[side]);
    if (!w || !constant_along(w->scale, sum.axis)) continue;
    const Tensor other(m.graph, product.in[1 - side]);
    const Tensor all = side == 1 ? prim::mul(other, w->bytes) : prim::mul(w->bytes, other);
    return prim::mul(prim::sum_reduce(all, sum.axis), w->scale.slice(sum.axis, 0, 1).squeeze(sum.axis));
  }
  return std::nullopt;
}

}  // namespace

std::vector<Rule> scale_rules() {
  return {{"gather bytes", op(Op::Composite, {}), gather_bytes},
          {"scale after a sum", op(Op::SumReduce, {any()}), scale_after_sum}};
}

}  // namespace lc
