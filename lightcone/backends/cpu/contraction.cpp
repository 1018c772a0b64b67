// SumReduce(Mul(a, b)) is a contraction; which of its axes are rows, columns, batch or summed is
// read off the strides of the two operands. The same analysis finds matrix products, batched
// ones, vector products and attention scores.
#include <algorithm>
#include <optional>

#include "lightcone/backends/cpu/conv.h"
#include "lightcone/backends/cpu/dense_unit.h"
#include "lightcone/backends/cpu/lower.h"
#include "lightcone/backends/cpu/packed_weights.h"
#include "lightcone/backends/cpu/sides.h"
#include "lightcone/core/tensor.h"

namespace lc::host {

using i64 = std::int64_t;

namespace {

// Where a factor stands among the loop symbols; none for a factor that is no symbol or another one.
std::optional<std::size_t> place_of(const Dim::Atom& f, const std::vector<Dim>& symbols) {
  if (f.kind != Dim::Kind::Symbol) return std::nullopt;
  for (std::size_t i = 0; i < symbols.size(); ++i)
    if (!symbols[i].is_constant() && symbols[i].terms()[0].factors[0]->name == f.name) return i;
  return std::nullopt;
}

bool mentions(const Dim& d, const std::vector<Dim>& symbols) {
  for (const Dim::Term& t : d.terms())
    for (const Dim::Atom* f : t.factors)
      if (place_of(*f, symbols) ||
          (f->kind != Dim::Kind::Symbol && (mentions(f->a, symbols) || mentions(f->b, symbols))))
        return true;
  return false;
}

}  // namespace

// A symbol may stand once in a term, and not inside of /, %, min or <.
std::optional<Linear> linear(const Dim& d, const std::vector<Dim>& symbols) {
  Linear l{d.offset(), std::vector<Dim>(symbols.size(), 0)};
  for (const Dim::Term& t : d.terms()) {
    Dim rest = t.coefficient;
    std::optional<std::size_t> symbol;
    for (const Dim::Atom* f : t.factors) {
      if (const auto place = place_of(*f, symbols)) {
        if (symbol) return std::nullopt;
        symbol = place;
      } else {
        if (mentions(f->a, symbols) || mentions(f->b, symbols)) return std::nullopt;
        rest = rest * Dim::from(f);
      }
    }
    Dim& sum = symbol ? l.strides[*symbol] : l.offset;
    sum = sum + rest;
  }
  return l;
}

namespace {

bool worthwhile(const Sides& s) {
  const auto in0 = s.at[0].offset.symbols(), in1 = s.at[1].offset.symbols();
  bool only0 = false, only1 = false;
  for (std::size_t i = 0; i + 1 < s.symbols.size(); ++i) {
    const auto name = s.symbols[i].name();
    if (!name) continue;
    only0 = only0 || (in0.contains(*name) && !in1.contains(*name));
    only1 = only1 || (in1.contains(*name) && !in0.contains(*name));
  }
  const auto k = s.symbols.back().name();
  return k && (only0 || only1) && in0.contains(*k) && in1.contains(*k);
}

bool of_bytes(const Graph& g, const Edge& e) {
  const Node& n = g[e.node];
  return n.op == Op::Contiguous && n.in[0].view.identity() && g[n.in[0].node].dtype == DType::I8;
}
// Signed bytes on both sides, and so few that 32 bits hold any sum of their products.
bool exact_bytes(const Graph& g, const Node& sum) {
  constexpr i64 kMost = i64{1} << 16;
  const Node& mul = g[sum.in[0].node];
  return of_bytes(g, mul.in[0]) && of_bytes(g, mul.in[1]) &&
         sum.in[0].view.shape()[static_cast<std::size_t>(sum.axis)].bounds().hi <= kMost;
}

}  // namespace

std::optional<Sides> sides(const Graph& g, NodeId id) {
  const Node& sum = g[id];
  if (sum.op != Op::SumReduce || (sum.dtype != DType::F32 && sum.dtype != DType::I32)) return std::nullopt;
  const Node& mul = g[sum.in[0].node];
  if (mul.op != Op::Mul || sum.shape.empty()) return std::nullopt;
  if (sum.dtype == DType::I32 && !exact_bytes(g, sum)) return std::nullopt;
  Sides s{.sum = id, .symbols = {}, .at = {}, .edge = {}};
  s.symbols = index_symbols(sum.shape);
  const Dim k = Dim::index(100, sum.in[0].view.shape()[static_cast<std::size_t>(sum.axis)]);
  std::vector<Dim> index = s.symbols;
  index.insert(index.begin() + sum.axis, k);
  s.symbols.push_back(k);
  const View::Position inner = sum.in[0].view.locate(index);
  if (!(inner.valid == Dim(1))) return std::nullopt;
  const std::vector<Dim> mul_index = unravel(inner.offset, mul.shape);
  for (int side = 0; side < 2; ++side) {
    s.edge[side] = mul.in[static_cast<std::size_t>(side)];
    s.at[side] = s.edge[side].view.locate(mul_index);
  }
  if (!worthwhile(s)) return std::nullopt;
  return s;
}

namespace {
Dim sum_extent(const Graph& g, NodeId id) { return g[id].in[0].view.shape()[static_cast<std::size_t>(g[id].axis)]; }

// The operand as it lies in memory: through a cast or a dequantisation when the kernel can read
// the narrow type itself.
struct Stored {
  Edge edge;
  WeightType type = WeightType::F32;
};
Stored look_through(const Graph& g, const Edge& e) {
  const Node& n = g[e.node];
  if (n.op == Op::Contiguous && n.in[0].view.identity()) {
    const DType t = g[n.in[0].node].dtype;
    if (is_half(t))
      return {{n.in[0].node, e.view}, t == DType::F16 ? WeightType::F16 : WeightType::BF16};
  }
  if (n.op == Op::Dequantize && n.in[0].view.identity())
    return {{n.in[0].node, View()}, weight_type(static_cast<QuantFormat>(n.mode))};
  return {e, WeightType::F32};
}

}  // namespace

std::optional<Contraction> match_contraction(const Graph& g, const Sides& s) {
  const NodeId id = s.sum;
  for (const auto& p : s.at)
    if (!(p.valid == Dim(1))) return std::nullopt;
  const std::size_t rank = s.symbols.size() - 1;
  std::optional<Linear> l[2] = {linear(s.at[0].offset, s.symbols), linear(s.at[1].offset, s.symbols)};
  if (!l[0] || !l[1]) return std::nullopt;
  // the columns of C: the innermost output axis that is not of extent one
  std::size_t last = rank;
  while (last > 0 && !s.symbols[last - 1].name()) --last;
  if (last == 0) return std::nullopt;
  const bool last0 = !(l[0]->strides[last - 1] == Dim(0)), last1 = !(l[1]->strides[last - 1] == Dim(0));
  if (last0 == last1) return std::nullopt;  // both have it: no matrix kernel writes that order
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
  }
  if (w.type != WeightType::F32 && k_stride == Dim(1)) {
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

const DenseUnit* choose_unit(WeightType t, Precision p) {
  const Isa isa = detect_isa();
  if (t == WeightType::I8) return dense_unit(Arithmetic::Int8Exact, isa);
  if (p != Precision::Medium) return dense_unit(p == Precision::High ? Arithmetic::Split2 : Arithmetic::Split3, isa);
  if (block_format(t)) return dense_unit(int8_format(t).arithmetic, isa);
  return t == WeightType::BF16 || bf16_is_fast(isa) ? dense_unit(Arithmetic::Bf16, isa) : nullptr;
}

WeightType Contraction::kept() const {
  return type == WeightType::F32 && unit && unit->arithmetic == Arithmetic::Bf16 ? WeightType::BF16 : type;
}

bool packable(const Graph& g, const Contraction& c) {
  const Node& b = g[c.b_node];
  const Contraction::Axis& columns = c.axes.back();
  if (packed_layout(c.type).block == 0 || b.op != Op::Input || b.mode != kParameter) return false;
  bool whole = c.b_offset == Dim(0) && c.k.extent.is_constant() && columns.extent.is_constant();
  whole = whole && (c.type == WeightType::F32 ? product(b.shape) == columns.extent * c.k.extent
                                              : b.shape.size() == 2 && b.shape[0] == columns.extent);
  for (std::size_t i = 0; i + 1 < c.axes.size(); ++i) whole = whole && c.axes[i].b == Dim(0);
  if (!whole) return false;
  const i64 n = *columns.extent.constant(), largest = 1 << 20;  // of what a few rows may fill up to sixteen
  whole = n % PackedLayout::rows == 0 || n >= 64 || packed_bytes(c.type, n, *c.k.extent.constant()) <= largest;
  return whole && ((columns.b == c.k.extent && c.k.b == Dim(1)) || transposed(c));
}
bool transposed(const Contraction& c) {
  return c.type == WeightType::F32 && c.axes.back().b == Dim(1) && c.k.b == c.axes.back().extent;
}

Graph prepare_contractions(const Graph& g, PassLog& log) {
  return copy_graph(g, [&](Graph& dst, NodeId, Node n) {
    const NodeId id = dst.add(n);
    const Edge made{id, View(dst[id].shape)};
    const auto s = sides(dst, id);
    if (!s || match_convolution(dst, *s) || match_contraction(dst, *s)) return made;
    // copy what cannot be read by strides, along the axes it really has, and expand it again
    const Node sum = dst[id];
    Shape full = sum.shape;
    full.push_back(sum.in[0].view.shape()[static_cast<std::size_t>(sum.axis)]);
    std::vector<Tensor> in;
    for (int side = 0; side < 2; ++side) {
      const Node& mul = dst[sum.in[0].node];
      // the operand in the order (output axes, summed axis)
      Tensor t(dst, s->edge[side]);
      Tensor seen = t;
      const View& v = sum.in[0].view;
      if (!v.identity() && !(v.base() == mul.shape)) return made;
      seen = t.with(t.view().then(v));
      std::vector<int> order;
      for (int i = 0; i <= static_cast<int>(sum.shape.size()); ++i)
        if (i != sum.axis) order.push_back(i);
      order.push_back(sum.axis);
      seen = seen.permute(order);
      if (s->at[side].valid == Dim(1) && linear(s->at[side].offset, s->symbols)) {
        in.push_back(seen);
        continue;
      }
      const auto used = s->at[side].offset.symbols(), valid = s->at[side].valid.symbols();
      Tensor small = seen;
      for (std::size_t i = 0; i < full.size(); ++i) {
        const auto name = s->symbols[i].name();
        const bool some = small.extent(static_cast<int>(i)).bounds().lo > 0;  // an empty axis has no first element
        if (some && name && !used.contains(*name) && !valid.contains(*name))
          small = small.slice(static_cast<int>(i), 0, 1);
      }
      in.push_back(prim::contiguous(small).expand(full));
      ++log.fired["operand copied for a contraction"];
    }
    return prim::sum_reduce(prim::mul(in[0], in[1]), static_cast<int>(full.size()) - 1).edge();
  });
}

}  // namespace lc::host
