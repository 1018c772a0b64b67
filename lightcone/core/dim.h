// Dim: the extent of an axis, or any integer derived from extents.
//
// A Dim is a polynomial over atoms with integer coefficients. An atom is a named, bounded symbol
// (`seq`, 1 <= seq <= 4096), a loop index below an extent, or one of /, %, min, <. `/` and `%`
// round towards minus infinity, so every rewrite in dim.cpp is exact for all integers.
//
// Dims are canonical and interned: equal values are one object, a Dim is 16 bytes, copying it is
// free and == compares two words. Interned expressions live as long as the process: whoever holds a Dim holds no more
// than an address. What bounds them is how many different expressions the graphs of a process are made of: one that is
// built or compiled again adds none, and sizes are bound without any, so that running adds none either. Several threads
// may build and compile at once; they share the table, in parts with a lock each.
//
// Expressions share what they have in common, so that a few operations can make one that is astronomically long when it
// is written out (each pair of a reshape and a permute doubles it). An expression is written out, bound and replaced
// part by part: one of more than kMostParts parts, or nested deeper than kDeepest, is an Error where it is made, and so
// is a product that comes to more than kMostTerms terms.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lc {

using Bindings = std::map<std::string, std::int64_t, std::less<>>;

struct Bounds {
  std::int64_t lo, hi;
};

class Dim {
 public:
  constexpr Dim(std::int64_t v = 0) : constant_(v) {}  // implicit: shapes read {3, s, 64}
  constexpr Dim(int v) : constant_(v) {}

  static Dim symbol(std::string_view name, std::int64_t lo, std::int64_t hi);
  // The loop index of axis `axis`: a symbol "i<axis>" in [0, extent).
  static Dim index(int axis, const Dim& extent);
  static std::string index_name(int axis) { return "i" + std::to_string(axis); }

  bool is_constant() const { return sum_ == nullptr; }
  std::optional<std::int64_t> constant() const;
  std::optional<std::string> name() const;  // of a lone symbol
  Bounds bounds() const;                    // guaranteed to hold, not always tight
  std::int64_t eval(const Bindings& env) const;
  Dim substitute(const std::function<std::optional<Dim>(const std::string& symbol)>& by) const;
  std::map<std::string, Bounds> symbols() const;  // every named symbol inside, indices included
  std::string str() const;                        // long parts of it are named by a hash of what they are
  std::size_t hash() const;
  std::size_t parts() const;  // symbols and operations, each as often as it stands there; 0 of a number
  int depth() const;          // how deep /, %, min and < are nested; 0 of a polynomial of symbols

  static constexpr std::size_t kMostParts = 1 << 20, kMostTerms = 1 << 12;
  static constexpr int kDeepest = 256;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim operator/(const Dim& a, const Dim& b);
  friend Dim operator%(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  friend Dim less(const Dim& a, const Dim& b);  // 0 or 1
  friend bool operator==(const Dim& a, const Dim& b) = default;

  // The expression tree, for code generators: constant() + sum of coefficient * product(factors).
  enum class Kind : std::uint8_t { Symbol, Div, Mod, Min, Less };
  struct Atom;
  struct Term;
  struct Sum;
  std::int64_t offset() const { return constant_; }
  const std::vector<Term>& terms() const;
  static Dim from(const Atom* atom);

 private:
  static Dim make(std::int64_t constant, std::vector<Term> terms);
  static const Atom* atom(Kind kind, std::string name, Bounds bounds, Dim a, Dim b);

  std::int64_t constant_ = 0;
  const Sum* sum_ = nullptr;  // interned; null when constant
};

struct Dim::Term {
  std::vector<const Atom*> factors;  // sorted, at least one
  std::int64_t coefficient;
  friend bool operator==(const Term&, const Term&) = default;
};
struct Dim::Atom {
  Kind kind;
  std::string name;  // Symbol
  Bounds bounds;
  Dim a, b;  // operands; of an index symbol, a is its extent
  bool is_index;
  std::string text;
  std::size_t parts;
  int depth;
};
struct Dim::Sum {
  std::vector<Term> terms;  // sorted, no zero coefficients
  Bounds bounds;            // of the terms alone
  std::size_t hash, parts;
  int depth;
};

// Of hashes of several things one.
inline std::size_t mix(std::size_t h, std::size_t v) { return h ^ (v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2)); }

using Shape = std::vector<Dim>;
Dim product(const Shape& shape);
std::string str(const Shape& shape);             // "[2, seq, 64]"
std::string versus(const Dim& a, const Dim& b);  // "3 vs 4"; of symbols with one name, where they differ
std::ostream& operator<<(std::ostream& out, const Dim& d);

// Can the two extents be the same number? (Constants compare now, symbols when they are bound.)
bool provably_different(const Dim& a, const Dim& b);
bool provably_below(const Dim& a, const Dim& b);  // a < b for all values of the symbols

}  // namespace lc
#include "lightcone/macros_on.h"
