// Shape inference for reading and writing by index.
#pragma once

#include "lightcone/ops/typed/view_shapes.h"

namespace lc::typed {

constexpr bool shorter(const Dim& a, const Dim& b) { return a.number() && b.number() && a.n < b.n; }

constexpr Inferred infer_gather(const Shape& a, int axis, const Shape& index) {
  if (!is_axis(axis, a)) return bad_axis("gather", axis, a);
  if (index.rank != a.rank) return refused(index, "gather", a, " and ", index, " have different ranks");
  for (int i = 0; i < a.rank; ++i)
    if (i != wrap(axis, a.rank) && shorter(a.d[i], index.d[i]))
      return refused(index, "gather", "an index ", index, " leaves ", a, " at axis ", i);
  return {index, {}};
}
// src covers the index, which fits into a except along the axis.
constexpr Inferred infer_scatter(const char* op, const Shape& a, int axis, const Shape& index, const Shape& src) {
  if (!is_axis(axis, a)) return bad_axis(op, axis, a);
  if (index.rank != a.rank || src.rank != a.rank)
    return refused(a, op, a, ", index ", index, " and source ", src, " have different ranks");
  for (int i = 0; i < a.rank; ++i) {
    if (shorter(src.d[i], index.d[i])) return refused(a, op, "a source ", src, " is smaller than its index ", index);
    if (i != wrap(axis, a.rank) && shorter(a.d[i], index.d[i]))
      return refused(a, op, "an index ", index, " leaves ", a);
  }
  return {a, {}};
}
// Writes whole slices: index is [m], src like a with m along the axis.
constexpr Inferred infer_index_write(const char* op, const Shape& a, int axis, const Shape& index, const Shape& src) {
  if (!is_axis(axis, a)) return bad_axis(op, axis, a);
  if (index.rank != 1) return refused(a, op, "the index has rank 1, not ", index);
  const int at = wrap(axis, a.rank);
  if (src.rank != a.rank || differ(src.d[at], index.d[0]))
    return refused(a, op, "a source ", src, " does not fit ", index.d[0], " places of axis ", at, " of ", a);
  for (int i = 0; i < a.rank; ++i)
    if (i != at && shorter(a.d[i], src.d[i])) return refused(a, op, "an index ", src, " leaves ", a);
  return {a, {}};
}
constexpr Inferred infer_index_fill(const Shape& a, int axis, const Shape& index) {
  if (!is_axis(axis, a)) return bad_axis("index_fill", axis, a);
  return index.rank > 1 ? refused(a, "index_fill", "the index has rank 1, not ", index) : Inferred{a, {}};
}
constexpr Inferred infer_take_along_dim(const Shape& a, const Shape& index, int axis) {
  if (!is_axis(axis, a)) return bad_axis("take_along_dim", axis, a);
  if (index.rank != a.rank) return refused(index, "take_along_dim", a, " and indices ", index, " have different ranks");
  const int at = wrap(axis, a.rank);
  Shape x = a, y = index;
  x.d[at] = y.d[at] = 1;
  Inferred r = infer_broadcast("take_along_dim", x, y);
  r.out.d[at] = index.d[at];
  return r;
}
constexpr Inferred infer_put(const Shape& a, const Shape& index, const Shape& source) {
  const Dim have = infer_ravel(source).d[0], want = infer_ravel(index).d[0];
  return have.number() && want.number() && have.n != want.n
             ? refused(a, "put", "a source ", source, " for ", want, " indices")
             : Inferred{a, {}};
}

// ---- diagonals and slices ----------------------------------------------------------------------------
constexpr Inferred infer_diag_embed(const Shape& a, int offset, int axis1, int axis2, const char* op = "diag_embed") {
  if (a.rank == 0) return refused(a, op, "a scalar is no diagonal");
  Inferred r{a, {}};
  const Dim n = plus(a.d[a.rank - 1], offset < 0 ? -offset : offset);
  r.out.d[a.rank - 1] = n;
  r.out.push(n);
  if (!is_axis(axis1, r.out)) return bad_axis(op, axis1, r.out);
  if (!is_axis(axis2, r.out)) return bad_axis(op, axis2, r.out);
  axis1 = wrap(axis1, r.out.rank), axis2 = wrap(axis2, r.out.rank);
  if (axis1 == axis2) return refused(a, op, "the two axes are one");
  for (int i = 0, next = 0; i < r.out.rank; ++i) r.out.d[i] = i == axis1 || i == axis2 ? n : a.d[next++];
  return r;
}
constexpr Inferred infer_diag(const Shape& a, int offset) {
  if (a.rank == 1) return infer_diag_embed(a, offset, -2, -1, "diag");
  if (a.rank == 2) return infer_diagonal(a, offset, 0, 1, "diag");
  return refused(a, "diag", "needs a vector or a matrix, not ", a);
}
// Requires that src has the shape `want` of the corresponding read.
constexpr Inferred infer_source(const char* op, const Shape& a, const Shape& src, const Inferred& want) {
  if (!want.ok()) return want;
  bool same = src.rank == want.out.rank;
  for (int i = 0; i < src.rank && same; ++i) same = !differ(src.d[i], want.out.d[i]);
  return same ? Inferred{a, {}} : refused(a, op, "a source ", src, ", not ", want.out);
}
constexpr Inferred infer_select_scatter(const Shape& a, const Shape& src, int axis) {
  if (!is_axis(axis, a)) return bad_axis("select_scatter", axis, a);
  return infer_source("select_scatter", a, src, infer_select(a, axis));
}
constexpr Inferred infer_slice_scatter(const Shape& a, const Shape& src, int axis, std::int64_t begin, std::int64_t end,
                                       std::int64_t step) {
  if (!is_axis(axis, a)) return bad_axis("slice_scatter", axis, a);
  const Dim n = a.d[wrap(axis, a.rank)];
  if (n.named())
    return refused(a, "slice_scatter", "needs an axis whose extent is known when the graph is built, not ", n);
  if (step < 1) return refused(a, "slice_scatter", "a step of ", step);
  return infer_source("slice_scatter", a, src, infer_slice(a, axis, begin, end, step));
}
// Returns the number of matrix elements on and below a diagonal.
constexpr std::int64_t on_and_below(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t n = i + offset + 1;
    count += n < 0 ? 0 : n > columns ? columns : n;
  }
  return count;
}

}  // namespace lc::typed
