#include "lightcone/stablehlo/read/iota_patterns.h"

#include <algorithm>

#include "lightcone/composites/composites.h"
#include "lightcone/core/op_eval.h"

namespace lc::stablehlo {
namespace {

// Products of two smaller numbers fit in 64 bits.
constexpr std::int64_t kFar = std::int64_t{1} << 31;

bool fits(const Progression& p, DType t) {
  const std::int64_t highest = t == DType::U64 ? kFar : std::min(kFar, info(t).highest);
  const std::int64_t lowest = std::max(-kFar, info(t).lowest);
  const auto [least, most] = std::minmax(p.first, p.last);
  return least >= lowest && most <= highest;
}

// A relation that holds at both ends of two such sequences holds between them.
bool never_above(const Progression& a, const Progression& b) { return a.first <= b.first && a.last <= b.last; }
bool always_below(const Progression& a, const Progression& b) { return a.first < b.first && a.last < b.last; }

std::optional<Progression> leaf(const Node& n) {
  if (n.op == Op::Constant && std::abs(n.value) <= static_cast<double>(kFar)) {
    const auto v = static_cast<std::int64_t>(n.value);
    return Progression{v, v};
  }
  const auto v = n.op == Op::Index ? n.index.constant() : std::nullopt;
  if (!v) return std::nullopt;
  return Progression{*v, *v};
}

std::optional<Progression> elementwise(const Node& n, const std::vector<Progression>& in) {
  if (std::ranges::all_of(in, &Progression::constant))
    if (const auto f = on_integers(n.op, n.dtype)) {
      const auto value = [&](std::size_t k) { return k < in.size() ? in[k].first : 0; };
      const std::int64_t v = f(value(0), value(1), value(2));
      return Progression{v, v};
    }
  switch (n.op) {
    case Op::Add: return Progression{in[0].first + in[1].first, in[0].last + in[1].last};
    case Op::Mul:
      if (!in[0].constant() && !in[1].constant()) return std::nullopt;
      return Progression{in[0].first * in[1].first, in[0].last * in[1].last};
    case Op::Minimum:
    case Op::Maximum:
      if (never_above(in[0], in[1])) return in[n.op == Op::Minimum ? 0 : 1];
      if (never_above(in[1], in[0])) return in[n.op == Op::Minimum ? 1 : 0];
      return std::nullopt;
    case Op::LessThan:
      if (always_below(in[0], in[1])) return Progression{1, 1};
      if (never_above(in[1], in[0])) return Progression{0, 0};
      return std::nullopt;
    case Op::Where:
      if (!in[0].constant()) return std::nullopt;
      return in[in[0].first ? 1 : 2];
    default: return std::nullopt;
  }
}

}  // namespace

Progressions::Progressions(const Graph& body, std::map<NodeId, Progression> given)
    : g_(body), known_(std::move(given)) {
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (is_float(g_[id].dtype) || known_.contains(id)) continue;
    if (const auto p = computed(g_[id]); p && fits(*p, g_[id].dtype)) known_[id] = *p;
  }
}

std::optional<Progression> Progressions::of(const Edge& e) const {
  const auto p = known_.find(e.node);
  const bool padded = std::ranges::any_of(e.view.moves(), [](const Move& m) { return m.kind == MoveKind::Pad; });
  if (p == known_.end() || padded || !fits(p->second, g_[e.node].dtype)) return std::nullopt;
  return p->second;
}

std::optional<Progression> Progressions::computed(const Node& n) const {
  if (info(n.op).kind == Kind::Leaf) return leaf(n);
  const bool copy = info(n.op).kind == Kind::Copy || is(n, builtin::index_in_range());
  if (!copy && info(n.op).kind != Kind::Elementwise) return std::nullopt;
  std::vector<Progression> in;
  for (const Edge& e : n.in) {
    const auto p = of(e);
    if (!p) return std::nullopt;
    in.push_back(*p);
  }
  if (copy) return in[0];
  return elementwise(n, in);
}

}  // namespace lc::stablehlo
