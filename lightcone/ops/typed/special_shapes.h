// Shape inference for order statistics, counts and statistics.
#pragma once

#include "lightcone/ops/typed/shape.h"

namespace lc::typed {

constexpr Inferred infer_three(const char* op, const Shape& first, const Shape& a, const Shape& b) {
  const Inferred r = infer_broadcast(op, a, b);
  return r.ok() ? infer_broadcast(op, first, r.out) : r;
}
constexpr Inferred infer_kthvalue(const Shape& a, std::int64_t k, int axis, bool keep) {
  if (!is_axis(axis, a)) return bad_axis("kthvalue", axis, a);
  const int at = wrap(axis, a.rank);
  if (k < 1 || (a.d[at].number() && a.d[at].n < k))
    return refused(a, "kthvalue", "k is ", k, ", axis ", at, " of ", a, " has ", a.d[at], " elements");
  return infer_reduce("kthvalue", a, &axis, 1, keep);
}
// q [m] adds a first axis; without an axis, a is flattened.
constexpr Inferred infer_quantile(const char* op, const Shape& a, const Shape& q, const int* axes, int count,
                                  bool keep) {
  if (q.rank > 1) return refused(a, op, "q has rank 0 or 1, not ", q);
  const Inferred rest = infer_reduce(op, a, axes, count, keep, true);
  if (!rest.ok()) return rest;
  Inferred r;
  if (q.rank == 1) r.out.push(q.d[0]);
  for (int i = 0; i < rest.out.rank; ++i) r.out.push(rest.out.d[i]);
  return r;
}
constexpr Inferred infer_searchsorted(const Shape& sorted, const Shape& values) {
  if (sorted.rank == 0) return refused(values, "searchsorted", "needs a sorted axis, not a scalar");
  if (sorted.rank == 1) return {values, {}};
  bool same = sorted.rank == values.rank;
  for (int i = 0; i + 1 < sorted.rank && same; ++i) same = !differ(sorted.d[i], values.d[i]);
  return same ? Inferred{values, {}}
              : refused(values, "searchsorted", sorted, " and values ", values, " differ before the last axis");
}
constexpr Inferred infer_bucketize(const Shape& values, const Shape& boundaries) {
  return boundaries.rank == 1 ? Inferred{values, {}}
                              : refused(values, "bucketize", "the boundaries have rank 1, not ", boundaries);
}
constexpr Inferred infer_cov(const char* op, const Shape& a) {
  if (a.rank > 2) return refused(a, op, "needs [variables, observations] or [observations], not ", a);
  Inferred r;
  const bool one = a.rank < 2 || (a.d[0].number() && a.d[0].n == 1);  // a single variable has a scalar result
  if (!one) r.out.push(a.d[0]), r.out.push(a.d[0]);
  return r;
}
// The shape of areas between neighbours along an axis of y, for points at x if given.
constexpr Inferred infer_areas(const char* op, const Shape& y, const Shape* x, int axis) {
  if (!is_axis(axis, y)) return bad_axis(op, axis, y);
  const int at = wrap(axis, y.rank);
  const Inferred r = infer_diff(y, 1, at);
  if (!x) return r;
  Shape points = *x;
  if (x->rank == 1 && y.rank > 1) {
    if (differ(x->d[0], y.d[at])) return refused(y, op, x->d[0], " points for axis ", at, " of ", y);
    points = y;
    for (int i = 0; i < y.rank; ++i) points.d[i] = i == at ? x->d[0] : Dim(1);
  }
  const int own = at - y.rank + points.rank;
  if (own < 0 || differ(points.d[own], y.d[at])) return refused(y, op, "points ", *x, " for axis ", at, " of ", y);
  return infer_broadcast(op, infer_diff(points, 1, own).out, r.out);
}
constexpr Inferred infer_cumulative_trapezoid(const Shape& y, const Shape* x, int axis) {
  return infer_areas("cumulative_trapezoid", y, x, axis);
}
constexpr Inferred infer_trapezoid(const Shape& y, const Shape* x, int axis) {
  const Inferred r = infer_areas("trapezoid", y, x, axis);
  const int at = wrap(axis, y.rank) - y.rank;
  return r.ok() ? infer_reduce("trapezoid", r.out, &at, 1, false) : r;
}

}  // namespace lc::typed
