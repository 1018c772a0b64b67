#include "lightcone/lowering/factors.h"

#include <optional>

#include "lightcone/codegen/symbols.h"

namespace lc::lowering {

using i64 = std::int64_t;

namespace {

// Returns the position of a factor in `symbols`, or nullopt if it is not one of them.
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

// A symbol may occur once in a term, and not inside of /, %, min or <.
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

bool worthwhile(const Factors& s) {
  const auto k = s.symbols.back().name();
  return k && (has_own_axis(s, 0) || has_own_axis(s, 1)) && s.at[0].offset.symbols().contains(*k) &&
         s.at[1].offset.symbols().contains(*k);
}

bool of_bytes(const Graph& g, const Edge& e) {
  const Node& n = g[e.node];
  return n.op == Op::Contiguous && n.in[0].view.identity() && g[n.in[0].node].dtype == DType::I8;
}

// Returns true if every element of the node is a number of type `t`.
bool holds(const Graph& g, NodeId id, DType t) {
  const Node& n = g[id];
  if (n.dtype == t) return true;
  return n.op == Op::Contiguous && (n.dtype == DType::F32 || n.dtype == DType::F64) && holds(g, n.in[0].node, t);
}

bool casts(const Node& n) { return n.op == Op::Contiguous && n.in[0].view.identity(); }
}  // namespace

bool has_own_axis(const Factors& f, int side) {
  const auto mine = f.at[side].offset.symbols(), other = f.at[1 - side].offset.symbols();
  for (std::size_t i = 0; i + 1 < f.symbols.size(); ++i)
    if (const auto name = f.symbols[i].name(); name && mine.contains(*name) && !other.contains(*name)) return true;
  return false;
}

std::optional<Factors> before_rounding(const Graph& g, const Factors& f, DType to) {
  Factors wide = f;
  for (Edge& e : wide.edge) {
    if (g[e.node].dtype != DType::F32 || !holds(g, e.node, to)) return std::nullopt;
    const Node& widened = g[e.node];
    if (!casts(widened) || g[widened.in[0].node].dtype != to) continue;
    const Node& rounded = g[widened.in[0].node];
    if (casts(rounded) && g[rounded.in[0].node].dtype == DType::F32) e.node = rounded.in[0].node;
  }
  return wide;
}

std::optional<NodeId> widened_bf16(const Graph& g, NodeId id) {
  if (!casts(g[id]) || g[id].dtype != DType::F32 || g[g[id].in[0].node].dtype != DType::BF16) return std::nullopt;
  return g[id].in[0].node;
}

bool exact_bytes(const Graph& g, const Node& sum) {
  constexpr i64 kMost = i64{1} << 16;
  const Node& mul = g[sum.in[0].node];
  return of_bytes(g, mul.in[0]) && of_bytes(g, mul.in[1]) && sum.in[0].view.shape()[sum.axis].bounds().hi <= kMost;
}

std::optional<Factors> factors(const Graph& g, NodeId id) {
  const Node& sum = g[id];
  if (sum.op != Op::SumReduce || (sum.dtype != DType::F32 && sum.dtype != DType::I32)) return std::nullopt;
  if (g[sum.in[0].node].op != Op::Mul) return std::nullopt;
  if (sum.dtype == DType::I32 && !exact_bytes(g, sum)) return std::nullopt;
  return factors_of_any_type(g, id);
}

std::optional<Factors> factors_of_any_type(const Graph& g, NodeId id) {
  const Node& sum = g[id];
  if (sum.op != Op::SumReduce || sum.shape.empty()) return std::nullopt;
  const Node& mul = g[sum.in[0].node];
  if (mul.op != Op::Mul) return std::nullopt;
  Factors s{.sum = id, .symbols = {}, .at = {}, .edge = {}};
  s.symbols = index_symbols(sum.shape);
  const Dim k = Dim::index(codegen::kSummed[0], sum.in[0].view.shape()[sum.axis]);
  std::vector<Dim> index = s.symbols;
  index.insert(index.begin() + sum.axis, k);
  s.symbols.push_back(k);
  const View::Position inner = sum.in[0].view.locate(index);
  if (!(inner.valid == Dim(1))) return std::nullopt;
  const std::vector<Dim> mul_index = unravel(inner.offset, mul.shape);
  for (int side = 0; side < 2; ++side) {
    s.edge[side] = mul.in[side];
    s.at[side] = s.edge[side].view.locate(mul_index);
  }
  if (!worthwhile(s)) return std::nullopt;
  return s;
}

}  // namespace lc::lowering
