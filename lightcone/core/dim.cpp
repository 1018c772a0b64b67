#include "lightcone/core/dim.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <ostream>
#include <tuple>
#include <unordered_map>

#include "lightcone/base/error.h"

namespace lc {
namespace {

using i64 = std::int64_t;
constexpr i64 kMax = i64{1} << 62;

i64 floor_div(i64 a, i64 b) {
  const i64 q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
i64 floor_mod(i64 a, i64 b) { return a - floor_div(a, b) * b; }

i64 clamp(__int128 v) { return static_cast<i64>(std::clamp<__int128>(v, -__int128{kMax}, __int128{kMax})); }
Bounds add(Bounds a, Bounds b) { return {clamp(__int128{a.lo} + b.lo), clamp(__int128{a.hi} + b.hi)}; }
Bounds mul(Bounds a, Bounds b) {
  const __int128 p[] = {__int128{a.lo} * b.lo, __int128{a.lo} * b.hi, __int128{a.hi} * b.lo, __int128{a.hi} * b.hi};
  return {clamp(*std::min_element(p, p + 4)), clamp(*std::max_element(p, p + 4))};
}

i64 exact(__int128 v) {
  if (v > kMax || v < -kMax) throw Error("Dim", "a size or an offset exceeds 2^62");
  return static_cast<i64>(v);
}

// Ordering by text instead of by address makes runs reproducible on every machine. Ties (symbols of one name with
// different bounds, long texts with equal hashes) are broken below.
bool before(const Dim& a, const Dim& b);
bool before(const Dim::Atom* a, const Dim::Atom* b) {
  if (a == b) return false;
  if (const int c = a->text.compare(b->text)) return c < 0;
  const auto bounds = [](const Dim::Atom* x) { return std::tuple(x->bounds.lo, x->bounds.hi, x->kind); };
  if (bounds(a) != bounds(b)) return bounds(a) < bounds(b);
  return a->a == b->a ? before(a->b, b->b) : before(a->a, b->a);
}
bool before(const Dim::Term& a, const Dim::Term& b) {
  return std::lexicographical_compare(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
                                      [](const Dim::Atom* x, const Dim::Atom* y) { return before(x, y); });
}
bool before(const Dim& a, const Dim& b) {
  if (a.offset() != b.offset()) return a.offset() < b.offset();
  return std::lexicographical_compare(a.terms().begin(), a.terms().end(), b.terms().begin(), b.terms().end(),
                                      [](const Dim::Term& x, const Dim::Term& y) {
                                        if (x.factors != y.factors) return before(x, y);
                                        return x.coefficient < y.coefficient;
                                      });
}

// Returns the text of an operation, or a hash of it if it is too long. Texts contain their operands' texts, so hashing
// keeps them short despite sharing.
std::string named(std::string text, std::size_t parts) {
  constexpr std::size_t kLongest = 240;
  if (text.size() <= kLongest) return text;
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hash;
  for (int shift = 60; shift >= 0; shift -= 4) hash += kDigits[h >> shift & 15];
  return str_cat("(", parts, " parts #", hash, ")");
}

std::string written(Dim::Kind kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case Dim::Kind::Symbol: break;
    case Dim::Kind::Div: return "(" + a.str() + " / " + b.str() + ")";
    case Dim::Kind::Mod: return "(" + a.str() + " % " + b.str() + ")";
    case Dim::Kind::Min: return "min(" + a.str() + ", " + b.str() + ")";
    case Dim::Kind::Less: return "(" + a.str() + " < " + b.str() + ")";
  }
  return "";
}

// Interning table shard. 64 shards keep lock contention low when several threads build graphs.
struct alignas(64) Table {
  std::mutex lock;
  std::unordered_multimap<std::size_t, std::unique_ptr<const Dim::Atom>> atoms;
  std::unordered_multimap<std::size_t, std::unique_ptr<const Dim::Sum>> sums;
};
Table& table(std::size_t hash) {
  constexpr std::size_t kTables = 64;
  static auto* all = new std::array<Table, kTables>;  // never destroyed: Dims may outlive static destruction
  return (*all)[(hash ^ hash >> 32) % kTables];
}

// Returns the atom of a Dim that consists of a single atom, else null.
const Dim::Atom* lone(const Dim& d) {
  if (d.offset() != 0 || d.terms().size() != 1 || d.terms()[0].coefficient != 1) return nullptr;
  return d.terms()[0].factors.size() == 1 ? d.terms()[0].factors[0] : nullptr;
}

}  // namespace

// ---- construction -----------------------------------------------------------------------------

const Dim::Atom* Dim::atom(Kind kind, std::string name, Bounds bounds, Dim a, Dim b) {
  std::size_t h = mix(mix(static_cast<std::size_t>(kind), std::hash<std::string>{}(name)), mix(a.hash(), b.hash()));
  h = mix(mix(h, static_cast<std::size_t>(bounds.lo)), static_cast<std::size_t>(bounds.hi));
  Table& t = table(h);
  const std::lock_guard hold(t.lock);
  for (auto [it, end] = t.atoms.equal_range(h); it != end; ++it) {
    const Atom& x = *it->second;
    if (x.kind == kind && x.name == name && x.a == a && x.b == b && x.bounds.lo == bounds.lo &&
        x.bounds.hi == bounds.hi)
      return &x;
  }
  const bool leaf = kind == Kind::Symbol;
  const std::size_t parts = leaf ? 1 : 1 + a.parts() + b.parts();
  const int depth = leaf ? 0 : 1 + std::max(a.depth(), b.depth());
  if (parts > kMostParts || depth > kDeepest)
    throw Error("Dim", str_cat("an expression of sizes has ", parts, " parts, nested ", depth, " deep; it may have ",
                               kMostParts, ", nested ", kDeepest, " deep"));
  std::string text = leaf ? name : named(written(kind, a, b), parts);
  const bool is_index = leaf && !(a == Dim(0));
  auto made =
      std::make_unique<const Atom>(Atom{kind, std::move(name), bounds, a, b, is_index, std::move(text), parts, depth});
  return t.atoms.emplace(h, std::move(made))->second.get();
}

Dim Dim::from(const Atom* a) { return make(0, {{{a}, 1}}); }

Dim Dim::make(i64 constant, std::vector<Term> terms) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return before(a, b); });
  std::vector<Term> merged;
  for (Term& t : terms) {
    if (!merged.empty() && merged.back().factors == t.factors)
      merged.back().coefficient = exact(__int128{merged.back().coefficient} + t.coefficient);
    else merged.push_back(std::move(t));
  }
  std::erase_if(merged, [](const Term& t) { return t.coefficient == 0; });
  Dim d(constant);
  if (merged.empty()) return d;
  std::size_t h = merged.size(), parts = 0;
  int depth = 0;
  Bounds bounds{0, 0};
  for (const Term& t : merged) {
    Bounds b{t.coefficient, t.coefficient};
    for (const Atom* f : t.factors) {
      h = mix(h, std::hash<const void*>{}(f));
      b = mul(b, f->bounds);
      parts += f->parts, depth = std::max(depth, f->depth);
    }
    h = mix(h, static_cast<std::size_t>(t.coefficient));
    bounds = add(bounds, b);
  }
  Table& tab = table(h);
  const std::lock_guard hold(tab.lock);
  for (auto [it, end] = tab.sums.equal_range(h); it != end; ++it)
    if (it->second->terms == merged) {
      d.sum_ = it->second.get();
      return d;
    }
  auto made = std::make_unique<const Sum>(Sum{std::move(merged), bounds, h, parts, depth});
  d.sum_ = tab.sums.emplace(h, std::move(made))->second.get();
  return d;
}

Dim Dim::symbol(std::string_view name, i64 lo, i64 hi) {
  if (name.empty()) throw Error("Dim::symbol", "a symbol needs a name");
  if (name[0] == 'i' && name.find_first_not_of("0123456789", 1) == name.npos && name.size() > 1)
    throw Error("Dim::symbol", str_cat("'", name, "' is the name of a loop index; take another"));
  if (lo > hi) throw Error("Dim::symbol", str_cat("the bounds of '", name, "' are empty: ", lo, " > ", hi));
  if (lo == hi) return lo;
  return from(atom(Kind::Symbol, std::string(name), {lo, hi}, 0, 0));
}

Dim Dim::index(int axis, const Dim& extent) {
  if (extent == Dim(1)) return 0;
  const Bounds b{0, std::max<i64>(extent.bounds().hi - 1, 0)};
  return from(atom(Kind::Symbol, index_name(axis), b, extent == Dim(0) ? Dim(1) : extent, 0));
}

// ---- queries ----------------------------------------------------------------------------------

const std::vector<Dim::Term>& Dim::terms() const {
  static const std::vector<Term> none;
  return sum_ ? sum_->terms : none;
}

std::optional<i64> Dim::constant() const {
  if (sum_) return std::nullopt;
  return constant_;
}

std::optional<std::string> Dim::name() const {
  const Atom* a = lone(*this);
  return a && a->kind == Kind::Symbol ? std::optional(a->name) : std::nullopt;
}

Bounds Dim::bounds() const {
  const Bounds c{constant_, constant_};
  return sum_ ? add(c, sum_->bounds) : c;
}

std::size_t Dim::parts() const { return sum_ ? sum_->parts : 0; }
int Dim::depth() const { return sum_ ? sum_->depth : 0; }
std::size_t Dim::hash() const { return mix(static_cast<std::size_t>(constant_), sum_ ? sum_->hash : 0); }

i64 Dim::eval(const Bindings& env) const {
  i64 v = constant_;
  for (const Term& t : terms()) {
    i64 p = t.coefficient;
    for (const Atom* f : t.factors) {
      switch (f->kind) {
        case Kind::Symbol: {
          const auto it = env.find(f->name);
          if (it == env.end()) throw Error("Dim", str_cat("the size '", f->name, "' has no value yet: bind it"));
          p = exact(__int128{p} * it->second);
          break;
        }
        case Kind::Div:
        case Kind::Mod: {
          const i64 n = f->a.eval(env), d = f->b.eval(env);
          if (d == 0) throw Error("Dim", "division by zero in " + f->text);
          p = exact(__int128{p} * (f->kind == Kind::Div ? floor_div(n, d) : floor_mod(n, d)));
          break;
        }
        case Kind::Min: p = exact(__int128{p} * std::min(f->a.eval(env), f->b.eval(env))); break;
        case Kind::Less: p = f->a.eval(env) < f->b.eval(env) ? p : 0; break;
      }
    }
    v = exact(__int128{v} + p);
  }
  return v;
}

Dim Dim::substitute(const std::function<std::optional<Dim>(const std::string&)>& by) const {
  if (!sum_) return *this;
  Dim v = constant_;
  for (const Term& t : terms()) {
    Dim p = t.coefficient;
    for (const Atom* f : t.factors) {
      switch (f->kind) {
        case Kind::Symbol: p = p * by(f->name).value_or(from(f)); break;
        case Kind::Div: p = p * (f->a.substitute(by) / f->b.substitute(by)); break;
        case Kind::Mod: p = p * (f->a.substitute(by) % f->b.substitute(by)); break;
        case Kind::Min: p = p * min(f->a.substitute(by), f->b.substitute(by)); break;
        case Kind::Less: p = p * less(f->a.substitute(by), f->b.substitute(by)); break;
      }
    }
    v = v + p;
  }
  return v;
}

std::map<std::string, Bounds> Dim::symbols() const {
  std::map<std::string, Bounds> found;
  for (const Term& t : terms())
    for (const Atom* f : t.factors) {
      if (f->kind == Kind::Symbol) found.emplace(f->name, f->bounds);
      if (f->kind != Kind::Symbol || f->is_index) {
        found.merge(f->a.symbols());
        found.merge(f->b.symbols());
      }
    }
  return found;
}

std::string Dim::str() const {
  std::string s;
  for (const Term& t : terms()) {
    std::string p;
    for (const Atom* f : t.factors) p += (p.empty() ? "" : "*") + f->text;
    if (t.coefficient == -1) p = "-" + p;
    else if (t.coefficient != 1) p = std::to_string(t.coefficient) + "*" + p;
    s += (s.empty() ? "" : " + ") + p;
  }
  if (constant_ != 0 || s.empty()) s += (s.empty() ? "" : " + ") + std::to_string(constant_);
  return terms().size() + (constant_ != 0) > 1 ? "(" + s + ")" : s;
}

// ---- arithmetic -------------------------------------------------------------------------------

namespace {

// An upper bound of a Dim, as a Dim without loop indices: i -> extent - 1, x % b -> b - 1.
Dim upper(const Dim& d) {
  Dim v = d.offset();
  for (const Dim::Term& t : d.terms()) {
    if (std::ranges::any_of(t.factors, [](const Dim::Atom* f) { return f->bounds.lo < 0; })) return d.bounds().hi;
    if (t.coefficient < 0) continue;  // the smallest product of non-negative factors is 0
    Dim p = t.coefficient;
    for (const Dim::Atom* f : t.factors) {
      Dim top = f->bounds.hi;
      if (f->kind == Dim::Kind::Symbol) top = f->is_index ? f->a - 1 : Dim::symbol(f->name, f->bounds.lo, f->bounds.hi);
      else if (f->kind == Dim::Kind::Mod && f->b.bounds().lo >= 0) top = f->b - 1;
      p = p * top;
    }
    v = v + p;
  }
  return v;
}

}  // namespace

bool provably_below(const Dim& a, const Dim& b) try {
  if ((b - a).bounds().lo > 0) return true;
  return !a.is_constant() && (b - upper(a)).bounds().lo > 0;
} catch (const Error&) {  // a bound above 2^62 proves nothing
  return false;
}

bool provably_different(const Dim& a, const Dim& b) {
  const Bounds d = (a - b).bounds();
  return d.lo > 0 || d.hi < 0;
}

namespace {

// k*c*(x/c) + k*(x%c) == k*x,  and  k*c*((x/c) % n) + k*(x%c) == k*(x % (c*n))
std::optional<Dim> recombined(const Dim& r) {
  for (const auto& m : r.terms()) {
    if (m.factors.size() != 1 || m.factors[0]->kind != Dim::Kind::Mod) continue;
    const Dim x = m.factors[0]->a, c = m.factors[0]->b;
    if (!c.is_constant()) continue;
    const Dim quotient = x / c;
    for (const auto& t : r.terms()) {
      if (t.factors.size() != 1 || t.coefficient != m.coefficient * *c.constant()) continue;
      const Dim::Atom* f = t.factors[0];
      const Dim k = m.coefficient;
      const Dim mod = x % c;
      if (f == lone(quotient)) return r - k * mod - k * c * quotient + k * x;
      if (f->kind == Dim::Kind::Mod && f->a == quotient && f->b.is_constant() && f->b.offset() > 0)
        return r - k * mod - k * c * (quotient % f->b) + k * (x % (c * f->b));
    }
  }
  return std::nullopt;
}

}  // namespace

Dim operator+(const Dim& a, const Dim& b) {
  const i64 constant = exact(__int128{a.constant_} + b.constant_);
  if (!a.sum_ && !b.sum_) return constant;
  if (!a.sum_ || !b.sum_) {
    Dim r = a.sum_ ? a : b;
    r.constant_ = constant;
    return r;
  }
  std::vector<Dim::Term> terms = a.terms();
  terms.insert(terms.end(), b.terms().begin(), b.terms().end());
  const Dim r = Dim::make(constant, std::move(terms));
  if (const auto better = recombined(r)) return *better;
  return r;
}

Dim operator*(const Dim& a, const Dim& b) {
  if (!a.sum_ && !b.sum_) return exact(__int128{a.constant_} * b.constant_);
  const auto terms_of = [](const Dim& d) { return d.terms().size() + (d.offset() != 0); };
  if (terms_of(a) * terms_of(b) > Dim::kMostTerms && !a.is_constant() && !b.is_constant())
    throw Error("Dim", str_cat("a product of sizes has more than ", Dim::kMostTerms, " terms"));
  std::vector<Dim::Term> terms;
  for (const auto& x : a.terms())
    for (const auto& y : b.terms()) {
      Dim::Term t{{}, exact(__int128{x.coefficient} * y.coefficient)};
      t.factors.reserve(x.factors.size() + y.factors.size());
      std::merge(x.factors.begin(), x.factors.end(), y.factors.begin(), y.factors.end(), std::back_inserter(t.factors),
                 [](const Dim::Atom* p, const Dim::Atom* q) { return before(p, q); });
      const auto repeats = [](const Dim::Atom* p, const Dim::Atom* q) { return p == q && p->kind == Dim::Kind::Less; };
      t.factors.erase(std::unique(t.factors.begin(), t.factors.end(), repeats), t.factors.end());  // 0 or 1, squared
      terms.push_back(std::move(t));
    }
  for (const auto& x : a.terms())
    if (b.constant_) terms.push_back({x.factors, exact(__int128{x.coefficient} * b.constant_)});
  for (const auto& y : b.terms())
    if (a.constant_) terms.push_back({y.factors, exact(__int128{y.coefficient} * a.constant_)});
  return Dim::make(exact(__int128{a.constant_} * b.constant_), std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

namespace {

// Returns t / by if it is a product of factors with a coefficient of at most `most`.
std::optional<Dim> over(const Dim::Term& t, const Dim::Term& by, i64 most) {
  if (t.coefficient % by.coefficient != 0 || std::abs(t.coefficient / by.coefficient) > most) return std::nullopt;
  Dim q = t.coefficient / by.coefficient;
  std::vector<const Dim::Atom*> left = t.factors;
  for (const Dim::Atom* f : by.factors) {
    const auto it = std::find(left.begin(), left.end(), f);
    if (it == left.end()) return std::nullopt;
    left.erase(it);
  }
  for (const Dim::Atom* f : left) q = q * Dim::from(f);
  return q;
}

// Returns {a / b, a % b} by long division if the remainder is provably in [0, b). Used if b is symbolic. Name order
// must not matter, so each term of b leads in turn: with b = now + past, i*b + now ends as {i, now} if `past` leads,
// but as {i + 1, -past} if `now` does.
std::optional<std::pair<Dim, Dim>> divide(const Dim& a, const Dim& b) {
  constexpr int kRounds = 8;  // one per power of the leading term in a; a term of b that cannot lead would loop forever
  i64 largest = std::abs(b.offset());
  for (const Dim::Term& t : b.terms()) largest = std::max(largest, std::abs(t.coefficient));
  for (const Dim::Term& lead : b.terms()) {
    Dim whole = 0, rest = a, q = 1;
    for (int round = 0; round < kRounds && !(q == Dim(0)); ++round) {
      q = 0;
      for (const Dim::Term& t : rest.terms()) q = q + over(t, lead, kMax / 4 / largest).value_or(0);
      whole = whole + q;
      rest = rest - q * b;
      if (rest.bounds().lo >= 0 && provably_below(rest, b)) return std::pair(whole, rest);
    }
  }
  return std::nullopt;
}

// Division by 0 is an error, so rewrites need to hold only for nonzero divisors.
Bounds of_divisor(const Bounds& b) { return b.lo == 0 ? Bounds{1, std::max<i64>(b.hi, 1)} : b; }

}  // namespace

Dim operator/(const Dim& a, const Dim& b) {
  if (b == Dim(0)) throw Error("Dim", "division by zero");
  if (b == Dim(1)) return a;
  const Bounds ab = a.bounds(), bb = of_divisor(b.bounds());
  if (bb.lo > 0 && ab.lo >= 0 && provably_below(a, b)) return 0;
  if (const auto c = b.constant(); c && *c > 0) {
    // (c*A + r) / c == A + r/c, and (g*A + k) / (g*c) == (A + k/g) / c for floor division
    Dim whole = floor_div(a.constant_, *c), rest = floor_mod(a.constant_, *c);
    std::vector<Dim::Term> in, out;
    i64 g = *c;
    for (const auto& t : a.terms()) {
      if (t.coefficient % *c == 0) {
        in.push_back({t.factors, t.coefficient / *c});
      } else {
        out.push_back(t);
        g = std::gcd(g, t.coefficient);
      }
    }
    whole = Dim::make(whole.constant_, std::move(in));
    if (out.empty()) return whole;
    for (auto& t : out) t.coefficient /= g;
    rest = Dim::make(floor_div(rest.constant_, g), std::move(out));
    const i64 d = *c / g;
    if (d == 1) return whole + rest;
    const Bounds rb = rest.bounds();
    if (rb.lo >= 0 && rb.hi < d) return whole;
    if (const Dim::Atom* f = lone(rest)) {
      const auto n = f->b.constant();
      if (f->kind == Dim::Kind::Div && n && *n > 0) return whole + f->a / (f->b * Dim(d));
      if (f->kind == Dim::Kind::Mod && n && *n > 0 && *n % d == 0) return whole + (f->a / Dim(d)) % Dim(*n / d);
    }
    if (rb.hi <= 0) return whole - (Dim(d - 1) - rest) / Dim(d);  // one form of what rounds up
    const Bounds q{floor_div(rb.lo, d), floor_div(rb.hi, d)};
    return whole + Dim::from(Dim::atom(Dim::Kind::Div, "", q, rest, d));
  }
  if (!b.is_constant() && bb.lo > 0)
    if (const auto d = divide(a, b)) return d->first;
  Bounds q{-kMax, kMax};
  if (ab.lo >= 0 && bb.lo > 0) q = {ab.lo / bb.hi, ab.hi / bb.lo};
  return Dim::from(Dim::atom(Dim::Kind::Div, "", q, a, b));
}

Dim operator%(const Dim& a, const Dim& b) {
  if (b == Dim(0)) throw Error("Dim", "division by zero");
  const Bounds ab = a.bounds(), bb = of_divisor(b.bounds());
  if (bb.lo > 0 && ab.lo >= 0 && provably_below(a, b)) return a;
  if (const auto c = b.constant(); c && *c > 0) {
    // (c*A + r) % c == r % c, and (g*A + k) % (g*c) == g*((A + k/g) % c) + k%g
    std::vector<Dim::Term> out;
    i64 g = *c;
    for (const auto& t : a.terms()) {
      if (t.coefficient % *c == 0) continue;
      const i64 k = floor_mod(t.coefficient, *c);
      // keep a small negative coefficient: its bounds are tighter
      out.push_back({t.factors, t.coefficient < 0 && t.coefficient > -*c ? t.coefficient : k});
      g = std::gcd(g, out.back().coefficient);
    }
    const i64 k = floor_mod(a.constant_, *c);
    if (out.empty()) return k;
    for (auto& t : out) t.coefficient /= g;
    const Dim rest = Dim::make(floor_div(k, g), std::move(out));
    const i64 d = *c / g;
    if (d == 1) return Dim(floor_mod(k, g));
    Dim inner = rest;
    const Bounds rb = rest.bounds();
    if (rb.lo < 0 || rb.hi >= d) {
      const Dim::Atom* f = lone(rest);
      if (f && f->kind == Dim::Kind::Mod && f->b.constant() && *f->b.constant() > 0 && *f->b.constant() % d == 0)
        inner = f->a % Dim(d);
      else inner = Dim::from(Dim::atom(Dim::Kind::Mod, "", {0, d - 1}, rest, d));
    }
    return inner * Dim(g) + Dim(floor_mod(k, g));
  }
  if (!b.is_constant() && bb.lo > 0)
    if (const auto d = divide(a, b)) return d->second;
  const Bounds r = bb.lo > 0 ? Bounds{0, bb.hi - 1} : Bounds{-kMax, kMax};
  return Dim::from(Dim::atom(Dim::Kind::Mod, "", r, a, b));
}

Dim min(const Dim& a, const Dim& b) {
  const Bounds d = (a - b).bounds();
  if (d.hi <= 0) return a;
  if (d.lo >= 0) return b;
  const Bounds ab = a.bounds(), bb = b.bounds();
  const Bounds r{std::min(ab.lo, bb.lo), std::min(ab.hi, bb.hi)};
  const bool swap = b.str() < a.str();
  return Dim::from(Dim::atom(Dim::Kind::Min, "", r, swap ? b : a, swap ? a : b));
}

Dim max(const Dim& a, const Dim& b) { return Dim(0) - min(Dim(0) - a, Dim(0) - b); }

Dim less(const Dim& a, const Dim& b) {
  const Dim d = a - b;
  if (d.bounds().lo >= 0) return 0;
  if (d.bounds().hi < 0 || provably_below(a, b)) return 1;
  return Dim::from(Dim::atom(Dim::Kind::Less, "", {0, 1}, d, 0));
}

// ---- shapes -----------------------------------------------------------------------------------

Dim product(const Shape& s) {
  Dim p = 1;
  for (const Dim& d : s) p = p * d;
  return p;
}

std::string versus(const Dim& a, const Dim& b) {
  const auto text = [same = a.str() == b.str()](const Dim& d) {
    return same ? str_cat(d, " in [", d.bounds().lo, ", ", d.bounds().hi, "]") : d.str();
  };
  return str_cat(text(a), " vs ", text(b));
}
std::string str(const Shape& s) {
  std::string r = "[";
  for (std::size_t i = 0; i < s.size(); ++i) r += (i ? ", " : "") + s[i].str();
  return r + "]";
}

std::ostream& operator<<(std::ostream& out, const Dim& d) { return out << d.str(); }

}  // namespace lc
