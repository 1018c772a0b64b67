#include "lightcone/codegen/interpret/indices.h"

#include <algorithm>
#include <map>

#include "lightcone/codegen/symbols.h"
#include "lightcone/core/op_eval.h"

namespace lc::codegen {
namespace {

using i64 = std::int64_t;

// Indices are computed also where nothing is read, and an extent of zero may then be a divisor: any result will do, as
// in the C text. Sums wrap.
i64 floor_div(i64 a, i64 b) {
  if (b == 0) return 0;
  const i64 q = eval::div(a, b);
  return q - (eval::mod(a, b) != 0 && (a < 0) != (b < 0));
}
i64 floor_mod(i64 a, i64 b) {
  const i64 r = eval::mod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

template <class F>
void each(i64 n, i64* to, const F& f) {
  for (i64 k = 0; k < n; ++k) to[k] = f(k);
}

bool fits_32(const i64* v, i64 n) {
  i64 all = 0;
  for (i64 k = 0; k < n; ++k) all |= v[k];
  return all >= 0 && all <= INT32_MAX;
}

// Divides in 32 bits if all numbers fit and the divisor is the same in all lanes: a 64-bit division would take longer
// than all the rest.
void divide(bool remainder, const i64* a, const i64* b, bool same, i64 n, i64* to) {
  if (same && b[0] > 0 && b[0] <= INT32_MAX && fits_32(a, n)) {
    const auto d = static_cast<std::uint32_t>(b[0]);
    if (remainder) each(n, to, [=](i64 k) { return static_cast<i64>(static_cast<std::uint32_t>(a[k]) % d); });
    else each(n, to, [=](i64 k) { return static_cast<i64>(static_cast<std::uint32_t>(a[k]) / d); });
  } else if (remainder) {
    each(n, to, [=](i64 k) { return floor_mod(a[k], b[k]); });
  } else {
    each(n, to, [=](i64 k) { return floor_div(a[k], b[k]); });
  }
}

}  // namespace

Indices::Indices(const Kernel& k, const LoopPositions& place, const i64* n) : k_(k), place_(place) {
  for (std::size_t s = 0; s < k.sizes.size(); ++s) sizes_[k.sizes[s]] = n[s];
}

int Indices::loop_of(const Dim::Atom& symbol) const {
  for (std::size_t l = 0; l < k_.loops.size(); ++l)
    if (k_.loops[l].symbol == symbol.name) return static_cast<int>(l);
  return -1;
}

int Indices::deepest(const Dim::Atom* a) const {
  if (a->kind == Dim::Kind::Symbol) return loop_of(*a);
  int found = -1;
  for (const Dim* d : {&a->a, &a->b})
    for (const Dim::Term& t : d->terms())
      for (const Dim::Atom* f : t.factors) found = deeper(found, deepest(f));
  return found;
}

i64 Indices::number(const Dim& d) const {
  if (d.is_constant()) return d.offset();
  try {
    return d.eval(sizes_);
  } catch (const Error&) {
    return 0;
  }
}

Offset Indices::known(const Dim& d) const {
  Offset o{d.offset(), {}, {}, -1};
  if (d.is_constant()) return o;
  o.along.resize(k_.loops.size());
  for (const Dim::Term& t : d.terms()) {
    Offset::Rest rest{t.coefficient, {}};
    for (const Dim::Atom* f : t.factors) {
      const int loop = deepest(f);
      if (loop < 0) rest.coefficient = eval::mul(rest.coefficient, number(Dim::from(f)));
      else rest.factors.push_back(f), o.deepest = deeper(o.deepest, loop);
    }
    if (rest.factors.empty()) o.base = eval::add(o.base, rest.coefficient);
    else if (rest.factors.size() == 1 && rest.factors[0]->kind == Dim::Kind::Symbol)
      o.along[loop_of(*rest.factors[0])] += rest.coefficient;
    else o.rest.push_back(std::move(rest));
  }
  return o;
}

i64 Indices::first(const Offset& o, int loop) const {
  i64 v = o.base;
  for (int l = o.constant() ? -1 : loop; l >= 0; l = place_.loops[l].parent) {
    const auto n = static_cast<std::size_t>(l);
    v = eval::add(v, eval::mul(o.along[n], place_.loops[n].first));
  }
  return v;
}

int Indices::axes_of(const Offset& o, int loop, int apart, i64 more, Axis* axes) const {
  const int depth = place_.depth(loop);
  check(depth < kMaxDepth, "a nest of more than 63 loops");
  int at = depth, border = -1;
  for (int l = loop; l >= 0; l = place_.loops[l].parent) {
    const LoopPositions::At& p = place_.loops[l];
    axes[--at] = {p.chunk, o.constant() ? 0 : o.along[l]};
    if (l == apart) border = at;
    if (border < 0) continue;
    axes[at].step += more;
    more *= p.chunk;
  }
  int n = 0;
  for (int a = 0; a < depth; ++a) {  // an axis that continues where its inner axis ends is merged with it
    const bool joins = n > 0 && a != border + 1 && axes[n - 1].step == axes[a].step * axes[a].count;
    if (axes[a].count == 1) border = a == border + 1 ? a : border;
    else if (joins) axes[n - 1] = {axes[n - 1].count * axes[a].count, axes[a].step};
    else axes[n++] = axes[a];
  }
  if (n == 0) axes[n++] = {1, 0};
  return n;
}

i64* Indices::scratch(int loop) {
  if (used_ == scratch_.size()) scratch_.emplace_back();
  std::vector<i64>& s = scratch_[used_++];
  if (s.size() < static_cast<std::size_t>(place_.lanes(loop))) s.resize(static_cast<std::size_t>(place_.lanes(loop)));
  return s.data();
}

// Repeats a value for all lanes of the inner loops.
const i64* Indices::repeated(const i64* outer, int from, int loop) {
  const i64 n = place_.lanes(from), times = place_.lanes(loop) / n;
  i64* to = scratch(loop);
  for (i64 k = 0; k < n; ++k) std::fill_n(to + k * times, times, outer[k]);
  return to;
}

const i64* Indices::factor(const Dim::Atom* a, int loop) {
  if (!operands_.contains(a)) {
    const bool symbol = a->kind == Dim::Kind::Symbol;
    operands_[a] = {known(symbol ? Dim::from(a) : a->a), known(symbol ? Dim(0) : a->b)};
  }
  const auto& [x, y] = operands_.at(a);
  if (const int own = deeper(x.deepest, y.deepest); own != loop) return repeated(factor(a, own), own, loop);
  const i64 n = place_.lanes(loop);
  const i64* p = lanes(x, loop);
  if (a->kind == Dim::Kind::Symbol) return p;
  const i64* q = lanes(y, loop);
  i64* to = scratch(loop);
  switch (a->kind) {
    case Dim::Kind::Div: divide(false, p, q, y.constant(), n, to); break;
    case Dim::Kind::Mod: divide(true, p, q, y.constant(), n, to); break;
    case Dim::Kind::Min: each(n, to, [=](i64 k) { return std::min(p[k], q[k]); }); break;
    default: each(n, to, [=](i64 k) { return i64{p[k] < q[k]}; });
  }
  return to;
}

const i64* Indices::lanes(const Offset& o, int loop) {
  if (o.deepest != loop) return repeated(o.deepest < 0 ? &o.base : lanes(o, o.deepest), o.deepest, loop);
  i64* to = scratch(loop);
  runs(o, loop, -1, 0, [&](i64 lane, i64 count, i64 at, i64 step) {
    for (i64 k = 0; k < count; ++k) to[lane + k] = at + k * step;
  });
  const i64 n = place_.lanes(loop);
  for (const Offset::Rest& r : o.rest) {
    if (r.factors.size() == 1) {
      const i64* f = factor(r.factors[0], loop);
      each(n, to, [=, c = r.coefficient](i64 k) { return eval::add(to[k], eval::mul(c, f[k])); });
      continue;
    }
    i64* product = scratch(loop);
    std::fill_n(product, n, r.coefficient);
    for (const Dim::Atom* a : r.factors) {
      const i64* f = factor(a, loop);
      each(n, product, [=](i64 k) { return eval::mul(product[k], f[k]); });
    }
    each(n, to, [=](i64 k) { return eval::add(to[k], product[k]); });
  }
  return to;
}

}  // namespace lc::codegen
