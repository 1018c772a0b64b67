#include "lightcone/readers/known_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "lightcone/composites/composites.h"
#include "lightcone/core/op_eval.h"

namespace lc::readers {
namespace {

using Maybe = std::optional<KnownElement>;

constexpr std::int64_t kMostOfQuestion = 1 << 18;  // elements that one question may evaluate
constexpr std::size_t kMostKept = 1 << 17;         // elements that are remembered from question to question
constexpr int kDeepest = 1000;                     // operations in a chain

// A float as an integer; out of range it is unknown.
Maybe whole_of(double v) {
  if (!(std::fabs(v) < 0x1p62)) return std::nullopt;
  return KnownElement{.whole = static_cast<std::int64_t>(v)};
}

double rounded(double v, DType t) {
  if (t == DType::F64) return v;
  std::array<std::byte, 8> bytes{};
  store_f64(bytes.data(), t, 0, v);
  return load_f64(bytes.data(), t, 0);
}
KnownElement number(double v, DType t) { return {.real = rounded(v, t)}; }

// A float that is known as an expression becomes a number if it has no symbols.
KnownElement settled(KnownElement e, DType t) {
  if (!is_float(t) || e.real) return e;
  if (const auto c = e.whole.constant()) return number(static_cast<double>(*c) / static_cast<double>(e.per), t);
  return e;
}

// Writes a float as a quotient of an expression and a power of two, if it is one.
Maybe quotient(const KnownElement& e) {
  if (!e.real) return e;
  double v = *e.real;
  std::int64_t per = 1;
  while (v != std::floor(v) && per < (1 << 20)) v *= 2, per *= 2;
  if (v != std::floor(v) || std::fabs(v) > 0x1p40) return std::nullopt;
  return KnownElement{.whole = static_cast<std::int64_t>(v), .per = per};
}

// Arithmetic of quotients. Integers have `per` 1 and stay exact as long as no value wraps, which expressions of extents
// do not.
Maybe arithmetic(Op op, KnownElement a, KnownElement b, bool floats) {
  const auto positive = [](const Dim& d) { return d.bounds().lo >= 0; };
  if (op == Op::Div) {
    if (!floats) {  // integers divide towards zero, and expressions towards minus infinity
      if (!positive(a.whole) || b.whole.bounds().lo <= 0) return std::nullopt;
      return KnownElement{.whole = a.whole / b.whole};
    }
    const auto by = b.whole.constant();
    if (!by || *by <= 0) return std::nullopt;
    return KnownElement{.whole = a.whole * Dim(b.per), .per = a.per * *by};
  }
  if (op == Op::Mul) return KnownElement{.whole = a.whole * b.whole, .per = a.per * b.per};
  const Dim x = a.whole * Dim(b.per), y = b.whole * Dim(a.per);
  const std::int64_t per = a.per * b.per;
  switch (op) {
    case Op::Add: return KnownElement{.whole = x + y, .per = per};
    case Op::Mod:
      if (!positive(x) || y.bounds().lo <= 0) return std::nullopt;
      return KnownElement{.whole = x % y, .per = per};
    case Op::Maximum: return KnownElement{.whole = max(x, y), .per = per};
    case Op::Minimum: return KnownElement{.whole = min(x, y), .per = per};
    case Op::LessThan: return KnownElement{.whole = less(x, y)};
    case Op::Equal: {
      if (x == y) return KnownElement{.whole = 1};
      if (provably_different(x, y)) return KnownElement{.whole = 0};
      return KnownElement{.whole = Dim(1) - less(x, y) - less(y, x)};
    }
    default: return std::nullopt;
  }
}

// The integer below, or the nearest one, ties to even.
Dim rounded(const KnownElement& e, bool to_nearest) {
  if (e.per == 1) return e.whole;
  if (!to_nearest) return e.whole / Dim(e.per);
  const Dim twice = e.whole * Dim(2) + Dim(e.per), by(2 * e.per), up = twice / by;
  return e.per % 2 == 0 ? up - less(twice % by, Dim(1)) * (up % Dim(2)) : up;
}

// Removes common factors of an expression's denominator, and refuses one that grows without end.
Maybe reduced(Maybe e) {
  if (!e || e->real || e->per == 1) return e;
  while (e->per % 2 == 0) {
    bool even = e->whole.offset() % 2 == 0;
    for (const Dim::Term& t : e->whole.terms()) even = even && t.coefficient % 2 == 0;
    if (!even) break;
    e->whole = e->whole / Dim(2), e->per /= 2;
  }
  return e->per > (1 << 20) ? std::nullopt : e;
}

// Converts an element between types, as Contiguous does.
Maybe cast(const KnownElement& e, DType from, DType to) {
  if (to == DType::Bool) {
    if (e.real) return KnownElement{.whole = *e.real != 0};
    if (const auto c = e.whole.constant()) return KnownElement{.whole = *c != 0};
    if (e.whole.bounds().lo > 0) return KnownElement{.whole = 1};
    return from == DType::Bool ? Maybe(e) : std::nullopt;
  }
  if (is_float(to)) {
    if (e.real) return number(*e.real, to);
    return settled(e, to);
  }
  if (e.real) {
    return whole_of(*e.real);
  }
  if (e.per == 1) return KnownElement{.whole = e.whole};
  if (e.whole.bounds().lo < 0) return std::nullopt;  // floats are cut towards zero
  return KnownElement{.whole = e.whole / Dim(e.per)};
}

// The same bits as a number of another type.
Maybe same_bits(const KnownElement& e, DType from, DType to) {
  const auto c = e.whole.constant();
  if (!e.real && (!c || is_float(from))) return std::nullopt;
  const Element r = bitcast({.f = e.real.value_or(0), .i = c.value_or(0)}, from, to);
  return is_float(to) ? number(r.f, to) : KnownElement{.whole = r.i};
}

Maybe elementwise(Op op, DType from, DType to, std::span<const KnownElement> in) {
  if (op == Op::Where) {
    if (const auto c = in[0].whole.constant()) return in[*c ? 1 : 2];
    if (in[1].real || in[2].real || in[1].per != in[2].per) return std::nullopt;
    return KnownElement{.whole = in[0].whole * in[1].whole + (Dim(1) - in[0].whole) * in[2].whole, .per = in[1].per};
  }
  if (is_float(from) && std::ranges::all_of(in, [](const KnownElement& e) { return e.real.has_value(); })) {
    const auto f = eval_of(op).f;
    if (!f) return std::nullopt;
    std::array<double, 3> v{};
    for (std::size_t k = 0; k < in.size(); ++k) v[k] = *in[k].real;
    const double r = f(v[0], v[1], v[2]);
    if (!is_float(to)) return whole_of(r);
    return number(r, to);
  }
  if (!is_float(from) && std::ranges::all_of(in, [](const KnownElement& e) { return e.whole.is_constant(); })) {
    const auto f = on_integers(op, from);
    if (!f) return std::nullopt;
    std::array<std::int64_t, 3> v{};
    for (std::size_t k = 0; k < in.size(); ++k) v[k] = *in[k].whole.constant();
    std::array<std::byte, 8> wrapped{};
    store_i64(wrapped.data(), to, 0, f(v[0], v[1], v[2]));
    return KnownElement{.whole = load_i64(wrapped.data(), to, 0)};
  }
  if (op == Op::Recip) {
    const auto a = quotient(in[0]);
    const auto c = a ? a->whole.constant() : std::nullopt;
    return c && *c > 0 ? Maybe(KnownElement{.whole = a->per, .per = *c}) : std::nullopt;
  }
  if (op == Op::Floor || op == Op::Round) {
    const auto a = quotient(in[0]);
    return a ? Maybe(settled({.whole = rounded(*a, op == Op::Round)}, to)) : std::nullopt;
  }
  if (op == Op::BitAnd && from == DType::Bool) return KnownElement{.whole = in[0].whole * in[1].whole};
  if (op == Op::BitOr && from == DType::Bool) return KnownElement{.whole = max(in[0].whole, in[1].whole)};
  if (in.size() != 2) return std::nullopt;
  const auto a = quotient(in[0]), b = quotient(in[1]);
  if (!a || !b) return std::nullopt;
  const auto r = reduced(arithmetic(op, *a, *b, is_float(from)));
  return r ? Maybe(settled(*r, to)) : std::nullopt;
}

std::optional<std::int64_t> constant(const Dim& d) { return d.constant(); }

}  // namespace

KnownValues::Maybe KnownValues::at(const Graph& g, const Edge& e, const Index& index) {
  if (e.view.identity()) return at(g, e.node, index);
  const std::vector<Dim> dims(index.begin(), index.end());
  const View::Position p = e.view.locate(dims);
  const auto valid = constant(p.valid);
  if (!valid) return std::nullopt;
  const DType t = g[e.node].dtype;
  if (!*valid) return is_float(t) ? number(0, t) : KnownElement{};
  Index from;
  for (const Dim& d : p.index) {
    const auto c = constant(d);
    if (!c) return std::nullopt;
    from.push_back(*c);
  }
  return at(g, e.node, from);
}

KnownValues::Maybe KnownValues::at(const Graph& g, NodeId id, const Index& index) {
  const auto [place, is_new] = known_.try_emplace({id, index});
  if (!is_new) return place->second;
  if (++steps_; --budget_ < 0 || depth_ >= kDeepest) {
    known_.erase(place);
    return std::nullopt;
  }
  ++depth_;
  Maybe r = compute(g, g[id], index);
  --depth_;
  if (budget_ < 0) known_.erase({id, index});
  else known_[{id, index}] = r;
  return r;
}

KnownValues::Maybe KnownValues::compute(const Graph& g, const Node& n, const Index& index) {
  switch (info(n.op).kind) {
    case Kind::Leaf:
      if (n.op == Op::Input) return input(n, index);
      if (n.op == Op::Constant) {
        if (is_float(n.dtype)) return number(n.value, n.dtype);
        return whole_of(n.value);
      } else {
        const Dim d = n.index.substitute([&](const std::string& symbol) -> std::optional<Dim> {
          for (std::size_t k = 0; k < index.size(); ++k)
            if (symbol == Dim::index_name(static_cast<int>(k))) return Dim(index[k]);
          return std::nullopt;
        });
        return settled({.whole = d}, n.dtype);
      }
    case Kind::Copy: {
      const auto e = at(g, n.in[0], index);
      return e ? cast(*e, g[n.in[0].node].dtype, n.dtype) : std::nullopt;
    }
    case Kind::Elementwise: {
      if (n.op == Op::Bitcast) {
        const auto e = at(g, n.in[0], index);
        return e ? same_bits(*e, g[n.in[0].node].dtype, n.dtype) : std::nullopt;
      }
      std::vector<KnownElement> in;
      for (const Edge& e : n.in) {
        const auto v = at(g, e, index);
        if (!v) return std::nullopt;
        in.push_back(*v);
        if (n.op == Op::Where && in.size() == 1)  // the side that is not taken may depend on data
          if (const auto c = constant(v->whole)) return at(g, n.in[*c ? 1 : 2], index);
      }
      return elementwise(n.op, g[n.in[0].node].dtype, n.dtype, in);
    }
    case Kind::Reduce: return reduce(g, n, index);
    case Kind::Composite:
      if (is(n, builtin::index_in_range())) return at(g, n.in[0], index);
      if (is(n, builtin::scatter())) return scattered(g, n, index);
      return is(n, builtin::gather()) ? gathered(g, n, index) : std::nullopt;
    default: return std::nullopt;
  }
}

KnownValues::Maybe KnownValues::reduce(const Graph& g, const Node& n, const Index& index) {
  const auto axis = static_cast<std::size_t>(n.axis);
  const auto length = constant(n.in[0].view.shape()[axis]);
  if (!length || *length > kMostElements) return std::nullopt;
  Maybe r;
  Index from = index;
  from.insert(from.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  for (; from[axis] < *length; ++from[axis]) {
    const auto e = at(g, n.in[0], from);
    if (!e) return std::nullopt;
    const std::array both = {r ? *r : *e, *e};
    r = r ? elementwise(n.op == Op::SumReduce ? Op::Add : Op::Maximum, n.dtype, n.dtype, both) : e;
    if (!r) return std::nullopt;
  }
  if (r) return r;
  if (n.op != Op::SumReduce) return std::nullopt;
  return is_float(n.dtype) ? number(0, n.dtype) : KnownElement{};
}

KnownValues::Maybe KnownValues::gathered(const Graph& g, const Node& n, const Index& index) {
  const auto axis = static_cast<std::size_t>(n.attributes.integer("axis"));
  const auto chosen = at(g, n.in[1], index);
  const auto k = chosen ? constant(chosen->whole) : std::nullopt;
  const auto length = constant(n.in[0].view.shape()[axis]);
  if (!k || !length) return std::nullopt;
  if (*k < 0 || *k >= *length) return is_float(n.dtype) ? number(0, n.dtype) : KnownElement{};
  Index from = index;
  from[axis] = *k;
  return at(g, n.in[0], from);
}

// The last value that is written here, or the base's.
KnownValues::Maybe KnownValues::scattered(const Graph& g, const Node& n, const Index& index) {
  const auto axis = static_cast<std::size_t>(n.attributes.integer("axis"));
  const auto length = constant(n.in[1].view.shape()[axis]);
  if (!length || *length > kMostElements) return std::nullopt;
  Index from = index;
  for (std::int64_t k = *length; k-- > 0;) {
    from[axis] = k;
    const auto place = at(g, n.in[1], from);
    const auto to = place ? constant(place->whole) : std::nullopt;
    if (!to) return std::nullopt;
    if (*to == index[axis]) return at(g, n.in[2], from);
  }
  return at(g, n.in[0], index);
}

KnownValues::Maybe KnownValues::input(const Node& n, const Index& index) const {
  const auto data = data_(n.name);
  if (!data || data->shape.size() != index.size()) return std::nullopt;
  std::int64_t k = 0;
  for (std::size_t a = 0; a < index.size(); ++a) k = k * data->shape[a] + index[a];
  const auto element = static_cast<std::size_t>(k);
  if ((element + 1) * size_of(data->dtype) > data->bytes.size()) return std::nullopt;
  if (is_float(data->dtype)) return number(load_f64(data->bytes.data(), data->dtype, element), data->dtype);
  return KnownElement{.whole = load_i64(data->bytes.data(), data->dtype, element)};
}

std::optional<std::vector<KnownElement>> KnownValues::elements(const Tensor& t) {
  if (!t.defined()) return std::nullopt;
  Index shape;
  std::int64_t n = 1;
  for (const Dim& d : t.shape()) {
    const auto c = constant(d);
    if (!c || *c > kMostElements) return std::nullopt;
    shape.push_back(*c);
    n *= *c;
    if (n > kMostElements) return std::nullopt;
  }
  if (graph_ != &t.impl() || known_.size() > kMostKept) known_.clear(), graph_ = &t.impl();
  budget_ = std::min(kMostOfQuestion, kMostSteps - steps_), depth_ = 0;
  std::vector<KnownElement> r;
  Index index(shape.size(), 0);
  for (std::int64_t k = 0; k < n; ++k) {
    const auto e = at(t.graph(), t.edge(), index);
    if (!e) return std::nullopt;
    r.push_back(*e);
    for (std::size_t a = shape.size(); a-- > 0;) {
      if (++index[a] < shape[a]) break;
      index[a] = 0;
    }
  }
  return r;
}

std::optional<std::vector<Dim>> KnownValues::integers(const Tensor& t) {
  if (!t.defined() || is_float(t.dtype())) return std::nullopt;
  const auto all = elements(t);
  if (!all) return std::nullopt;
  std::vector<Dim> r;
  for (const KnownElement& e : *all) r.push_back(e.whole);
  return r;
}

std::optional<std::vector<double>> KnownValues::numbers(const Tensor& t) {
  const auto all = elements(t);
  if (!all) return std::nullopt;
  std::vector<double> r;
  for (const KnownElement& e : *all) {
    const auto c = e.whole.constant();
    if (!e.real && !c) return std::nullopt;
    r.push_back(e.real ? *e.real : static_cast<double>(*c) / static_cast<double>(e.per));
  }
  return r;
}

}  // namespace lc::readers
