// Access: the buffer positions of a view's elements, as tables of plain numbers.
//
// Moves are applied to numbers, so that the reference does not share Dim's algebra with the compilers it checks, and
// per axis, so that a view costs as much as its axes and not as its elements: a product expanded to [128, 768, 3072] is
// read without being materialized. Position = offset + the sum over terms of table[the sum over axes of
// along[axis][index]]. Most terms depend on one axis; a padded window depends on two.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lightcone/core/view.h"

namespace lc {

class Access {
 public:
  using Integers = std::vector<std::int64_t>;

  explicit Access(Integers base);  // the whole buffer in row-major order
  Access(const View& view, const Bindings& env);
  void apply(const View& next, const Bindings& env);  // applies a further view

  const Integers& shape() const { return shape_; }
  bool follows(std::size_t axis) const;             // true if the position depends on this axis
  bool shares(std::size_t a, std::size_t b) const;  // true if one term depends on both: windows
  Integers positions() const;                       // positions of all elements in order; negative: padding

  // Fills p with positions over two axes, the other indices fixed: p[k * (to - from) + j] for each k of axis `a` and
  // each j of [from, to) of axis `b`. If b is kNone, along `a` alone.
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  void plane(std::span<const std::int64_t> index, std::size_t a, std::size_t b, std::int64_t from, std::int64_t to,
             std::int64_t* p) const;

 private:
  struct Term {
    Integers table;
    std::vector<Integers> along;  // empty: independent of this axis
    std::int64_t start = 0;       // added to the index into the table
  };
  void apply(const Move& m, const Bindings& env);
  void permute(const Move& m);
  void slice(const Move& m, const Integers& before, const Integers& to);
  void pad(const Integers& before, const Integers& to);
  void unfold(const Move& m, const Integers& to);
  void reshape(const Integers& to);
  std::optional<Term> regroup(const Term& t, const Integers& to) const;
  void fold();     // merges terms to one per axis
  void flatten();  // merges all terms into one

  Integers shape_;
  std::vector<Term> terms_;
  std::int64_t offset_ = 0;
};

std::int64_t count(std::span<const std::int64_t> shape);
std::vector<std::int64_t> numbers(const Shape& s, const Bindings& env);

}  // namespace lc
