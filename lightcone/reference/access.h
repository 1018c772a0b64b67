// Access: where the elements of a view lie in the buffer behind it, as tables of plain numbers.
//
// Each move is applied to numbers, so that the judge does not share Dim's algebra with the compilers it judges, and
// to one axis at a time, so that a view costs what its axes cost and not what its elements do: a product expanded to
// [128, 768, 3072] is read without being laid out. Position = offset + the sum over the terms of
// table[the sum over the axes of along[axis][index]]; most terms follow one axis, a padded window follows two.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lightcone/core/view.h"

namespace lc {

class Access {
 public:
  using IntList = std::vector<std::int64_t>;

  explicit Access(IntList base);  // the whole buffer, row by row
  Access(const View& view, const Bindings& env);
  void apply(const View& next, const Bindings& env);  // a view of what this one shows

  const IntList& shape() const { return shape_; }
  bool follows(std::size_t axis) const;             // does the position depend on this axis?
  bool shares(std::size_t a, std::size_t b) const;  // one term follows both: windows
  IntList positions() const;                        // of all elements in order; below zero: padding is read

  // The positions over two axes, the others given: p[k * (to - from) + j] for each k of axis `a` and each j of
  // [from, to) of axis `b`; kNone for b: along `a` alone.
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  void plane(std::span<const std::int64_t> index, std::size_t a, std::size_t b, std::int64_t from, std::int64_t to,
             std::int64_t* p) const;

 private:
  struct Term {
    IntList table;
    std::vector<IntList> along;  // empty: this axis does not matter
    std::int64_t start = 0;      // added to the index into the table
  };
  void apply(const Move& m, const Bindings& env);
  void permute(const Move& m);
  void slice(const Move& m, const IntList& before, const IntList& to);
  void pad(const IntList& before, const IntList& to);
  void unfold(const Move& m, const IntList& to);
  void reshape(const IntList& to);
  std::optional<Term> regroup(const Term& t, const IntList& to) const;
  void fold();     // one term for an axis
  void flatten();  // one term for everything

  IntList shape_;
  std::vector<Term> terms_;
  std::int64_t offset_ = 0;
};

std::int64_t count(std::span<const std::int64_t> shape);
std::vector<std::int64_t> numbers(const Shape& s, const Bindings& env);

}  // namespace lc
