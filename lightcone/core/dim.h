// Dim: the extent of an axis, or any integer derived from extents.
//
// A Dim is a polynomial over atoms with integer coefficients. An atom is a named, bounded symbol
// (`seq`, 1 <= seq <= 4096), a loop index below an extent, or one of /, %, min, <. `/` and `%`
// round towards minus infinity, so every rewrite in dim.cpp is exact for all integers.
//
// Dims are canonical and interned: equal values are one object, a Dim is 16 bytes, copying is free and == compares two
// words. Interned expressions live until the process exits; a Dim holds only a pointer. Memory is bounded by the number
// of distinct expressions: building or compiling a graph again adds none, and neither does running, because sizes are
// bound without interning. Threads may build and compile concurrently; the table is sharded, with one lock per shard.
//
// Expressions share subexpressions, so a few operations can create one that is exponentially long when written out
// (each pair of a reshape and a permute doubles it). Printing, binding and substitution visit every part. So an
// expression of more than kMostParts parts or nested deeper than kDeepest throws Error when it is made, and so does a
// product of more than kMostTerms terms.
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
  std::optional<std::string> name() const;  // set if this is a single symbol
  Bounds bounds() const;                    // always valid, not always tight
  std::int64_t eval(const Bindings& env) const;
  Dim substitute(const std::function<std::optional<Dim>(const std::string& symbol)>& by) const;
  std::map<std::string, Bounds> symbols() const;  // every named symbol, including loop indices
  std::string str() const;                        // long parts are replaced by a hash
  std::size_t hash() const;
  std::size_t parts() const;  // symbols and operations with multiplicity; 0 for a number
  int depth() const;          // nesting depth of /, %, min and <; 0 for a polynomial of symbols

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

  // The expression tree for code generators: offset() + sum of coefficient * product(factors).
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
  std::string name;  // only for Symbol
  Bounds bounds;
  Dim a, b;  // operands; for an index symbol, a is its extent
  bool is_index;
  std::string text;
  std::size_t parts;
  int depth;
};
struct Dim::Sum {
  std::vector<Term> terms;  // sorted, no zero coefficients
  Bounds bounds;            // bounds of the terms without the constant
  std::size_t hash, parts;
  int depth;
};

// Combines two hashes (boost::hash_combine).
inline std::size_t mix(std::size_t h, std::size_t v) { return h ^ (v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2)); }

using Shape = std::vector<Dim>;
Dim product(const Shape& shape);
std::string str(const Shape& shape);             // "[2, seq, 64]"
std::string versus(const Dim& a, const Dim& b);  // "3 vs 4"; includes bounds if both texts are equal
std::ostream& operator<<(std::ostream& out, const Dim& d);

// True if the two extents differ for all values of their symbols.
bool provably_different(const Dim& a, const Dim& b);
bool provably_below(const Dim& a, const Dim& b);  // a < b for all values of the symbols

}  // namespace lc
#include "lightcone/macros_on.h"
