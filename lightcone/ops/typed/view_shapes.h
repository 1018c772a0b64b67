// Shape inference for views, concatenation and splitting.
#pragma once

#include "lightcone/ops/typed/shape.h"

namespace lc::typed {

// Several numbers as a single template argument: split<Sizes{2, 3}, 1>(x).
struct Sizes {
  int v[16] = {};
  int count = 0;
  template <class... N>
  constexpr explicit Sizes(N... n) : v{n...}, count(sizeof...(n)) {
    static_assert(sizeof...(n) <= 16, "at most 16 numbers");
  }
  constexpr int operator[](int i) const { return v[i]; }
  constexpr const int* begin() const { return v; }
  constexpr const int* end() const { return v + count; }
};

constexpr Inferred infer_arange(std::int64_t start, std::int64_t end, std::int64_t step) {
  Inferred r;
  r.out.push(0);
  if (step == 0) return refused(r.out, "arange", "the step is zero");
  if (step > 0 ? end < start : end > start)
    return refused(r.out, "arange", "a step of ", step, " does not lead from ", start, " to ", end);
  r.out.d[0] = static_cast<long>((end - start + step - (step > 0 ? 1 : -1)) / step);
  return r;
}

// Removes every axis of extent 1. Named extents stay, because their range has other values.
constexpr Inferred infer_squeeze_all(const Shape& a) {
  Inferred r;
  for (int i = 0; i < a.rank; ++i) {
    if (a.d[i] == dyn)
      return refused(a, "squeeze", "whether axis ", i, " of ", a, " is 1 is not known now: name the axes");
    if (!(a.d[i] == Dim(1))) r.out.push(a.d[i]);
  }
  return r;
}
constexpr Shape infer_ravel(const Shape& a) {
  Shape s;
  s.push(1);
  for (int i = 0; i < a.rank; ++i) s.d[0] = times(s.d[0], a.d[i]);
  return s;
}
constexpr Shape infer_atleast(const Shape& a, int rank) {
  Shape s = a;
  if (s.rank == 0 && rank > 0) s.push(1);
  if (s.rank == 1 && rank > 1) s.push(s.d[0]), s.d[0] = 1;
  if (s.rank == 2 && rank > 2) s.push(1);
  return s;
}
// A single size may be dyn and is inferred.
constexpr Inferred infer_unflatten(const Shape& a, int axis, const Shape& sizes) {
  if (!is_axis(axis, a)) return bad_axis("unflatten", axis, a);
  axis = wrap(axis, a.rank);
  Shape parts = sizes;
  Dim known = 1;
  int open = -1;
  for (int i = 0; i < parts.rank; ++i) {
    if (parts.d[i] == dyn) open = i;
    else known = times(known, parts.d[i]);
  }
  const Dim n = a.d[axis];
  if (open >= 0 && n.number() && known.number() && known.n > 0) parts.d[open] = static_cast<long>(n.n / known.n);
  if (open >= 0 && known == Dim(1)) parts.d[open] = n;
  if (const Dim all = infer_ravel(parts).d[0]; differ(all, n) && !(all.named() != n.named())) {
    Text given("[");
    for (int i = 0; i < sizes.rank; ++i) (i ? given.add(", ") : given).add(sizes.d[i] == dyn ? Dim(-1) : sizes.d[i]);
    return refused(a, "unflatten", given.data(), "] does not make ", n, " elements");
  }
  Inferred r;
  for (int i = 0; i < a.rank; ++i) {
    if (i != axis) r.out.push(a.d[i]);
    else
      for (int k = 0; k < parts.rank; ++k) r.out.push(parts.d[k]);
  }
  return r;
}
constexpr Inferred infer_movedim(const Shape& a, const Sizes& from, const Sizes& to) {
  if (from.count != to.count) return refused(a, "movedim", from.count, " axes go to ", to.count, " places");
  for (const Sizes* axes : {&from, &to})
    if (const Inferred r = infer_reduce("movedim", a, axes->v, axes->count, true); !r.ok()) return r;
  Inferred r{a, {}};
  int order[kMaxRank] = {};
  bool moved[kMaxRank] = {}, taken[kMaxRank] = {};
  for (int k = 0; k < from.count; ++k) {
    const int source = wrap(from[k], a.rank), place = wrap(to[k], a.rank);
    order[place] = source, taken[place] = moved[source] = true;
  }
  for (int i = 0, next = 0; i < a.rank; ++i) {
    if (!taken[i]) {
      while (moved[next]) ++next;
      order[i] = next++;
    }
    r.out.d[i] = a.d[order[i]];
  }
  return r;
}
constexpr Dim infer_on_diagonal(const Dim& rows, const Dim& columns, int offset) {
  if (!rows.number() || !columns.number()) return dyn;
  const std::int64_t r = rows.n + (offset < 0 ? offset : 0), c = columns.n - (offset > 0 ? offset : 0);
  return static_cast<long>(r < 0 || c < 0 ? 0 : r < c ? r : c);
}
constexpr Inferred infer_diagonal(const Shape& a, int offset, int axis1, int axis2, const char* op = "diagonal") {
  if (!is_axis(axis1, a)) return bad_axis(op, axis1, a);
  if (!is_axis(axis2, a)) return bad_axis(op, axis2, a);
  axis1 = wrap(axis1, a.rank), axis2 = wrap(axis2, a.rank);
  if (axis1 == axis2) return refused(a, op, "the two axes are one");
  if (a.d[axis1].named() || a.d[axis2].named()) return refused(a, op, "needs extents known when the graph is built");
  Inferred r;
  for (int i = 0; i < a.rank; ++i)
    if (i != axis1 && i != axis2) r.out.push(a.d[i]);
  r.out.push(infer_on_diagonal(a.d[axis1], a.d[axis2], offset));
  return r;
}

// ---- splitting ---------------------------------------------------------------------------------------
// The pieces of an axis: all of one size, or with listed sizes.
struct Pieces {
  int count = 0;
  std::int64_t n = 0, size = 0;        // the last piece takes the rest
  int longer = 0;                      // number of first pieces with one more element
  bool listed = false, taken = false;  // taken: pieces of one element, without the axis
  int list[17] = {};
  constexpr std::int64_t extent(int k) const {
    if (listed) return list[k];
    return longer > 0 ? size + (k < longer) : k + 1 < count || taken ? size : n - size * (count - 1);
  }
  constexpr bool alike() const {
    for (int k = 1; k < count; ++k)
      if (extent(k) != extent(0)) return false;
    return true;
  }
  constexpr Shape piece(const Shape& a, int axis, int k) const {
    if (taken) return infer_select(a, axis).out;
    Shape s = a;
    s.d[wrap(axis, a.rank)] = static_cast<long>(extent(k));
    return s;
  }
};
struct Cut {
  Pieces pieces;
  Text error;
  constexpr Cut& refuse(const Inferred& r) {
    error = r.error;
    return *this;
  }
};
// Cuts an axis whose extent is a number, stored in `pieces.n`.
constexpr Cut cut_axis(const char* op, const Shape& a, int axis) {
  Cut c;
  if (!is_axis(axis, a)) return c.refuse(bad_axis(op, axis, a));
  const Dim n = a.d[wrap(axis, a.rank)];
  if (!n.number()) return c.refuse(refused(a, op, "how many pieces an axis of ", n, " has is not known now"));
  c.pieces.n = n.n;
  return c;
}
constexpr Cut infer_split(const char* op, const Shape& a, std::int64_t size, int axis) {
  Cut c = cut_axis(op, a, axis);
  Pieces& p = c.pieces;
  if (!c.error.empty()) return c;
  if (size < 1)
    return c.refuse(refused(a, op, "pieces of ", size, " need an extent known when the graph is built, not ", p.n));
  p.size = size, p.count = static_cast<int>(p.n == 0 ? 1 : (p.n + size - 1) / size);
  return c;
}
constexpr Cut infer_chunk(const Shape& a, int chunks, int axis) {
  Cut c = cut_axis("chunk", a, axis);
  if (!c.error.empty()) return c;
  if (chunks < 1) return c.refuse(refused(a, "chunk", "needs a known extent and at least one chunk"));
  return infer_split("chunk", a, c.pieces.n == 0 ? 1 : (c.pieces.n + chunks - 1) / chunks, axis);
}
constexpr Cut infer_tensor_split(const Shape& a, int sections, int axis) {
  Cut c = cut_axis("tensor_split", a, axis);
  Pieces& p = c.pieces;
  if (!c.error.empty()) return c;
  if (sections < 1) return c.refuse(refused(a, "tensor_split", sections, " sections"));
  p.size = p.n / sections, p.count = sections, p.longer = static_cast<int>(p.n % sections);
  return c;
}
constexpr Cut infer_unbind(const Shape& a, int axis) {
  Cut c = cut_axis("unbind", a, axis);
  c.pieces.size = 1, c.pieces.count = static_cast<int>(c.pieces.n), c.pieces.taken = true;
  return c;
}
// Cuts by the given sizes; the extent need not be a number.
constexpr Cut infer_split(const Shape& a, const Sizes& sizes, int axis) {
  Cut c;
  if (!is_axis(axis, a)) return c.refuse(bad_axis("split", axis, a));
  std::int64_t all = 0;
  for (const int n : sizes) {
    if (n < 0) return c.refuse(refused(a, "split", "a size is ", n));
    all += n, c.pieces.list[c.pieces.count++] = n;
  }
  c.pieces.listed = true;
  const Dim n = a.d[wrap(axis, a.rank)];
  if (differ(n, static_cast<long>(all)))
    return c.refuse(refused(a, "split", "the sizes add up to ", all, ", the axis has ", n));
  return c;
}
// Cuts before each of the indices.
constexpr Cut infer_tensor_split(const Shape& a, const Sizes& places, int axis) {
  Cut c = cut_axis("tensor_split", a, axis);
  const std::int64_t n = c.pieces.n;
  std::int64_t from = 0;
  for (int k = 0; k <= places.count; ++k) {
    std::int64_t at = k == places.count ? n : places[k] < 0 ? places[k] + n : places[k];
    at = at < 0 ? 0 : at > n ? n : at;
    c.pieces.list[k] = static_cast<int>(at > from ? at - from : 0);
    from = at;
  }
  c.pieces.listed = true, c.pieces.count = places.count + 1;
  return c;
}

// ---- padding, shifting and repeating -----------------------------------------------------------------
constexpr Inferred infer_repeat(const char* op, const Shape& a, const Sizes& counts) {
  if (counts.count < a.rank) return refused(a, op, counts.count, " counts for the axes of ", a);
  Inferred r;
  for (int i = 0; i < counts.count; ++i) {
    if (counts[i] < 0) return refused(a, op, "a count is negative");
    const int from = i - (counts.count - a.rank);
    r.out.push(times(from < 0 ? Dim(1) : a.d[from], counts[i]));
  }
  return r;
}
constexpr Inferred infer_tile(const Shape& a, const Sizes& counts) {
  Sizes all = counts;
  for (; all.count < a.rank; ++all.count) {
    for (int i = all.count; i > 0; --i) all.v[i] = all.v[i - 1];
    all.v[0] = 1;
  }
  return infer_repeat("tile", a, all);
}
constexpr Inferred infer_repeat_interleave(const Shape& a, int count, int axis) {
  if (!is_axis(axis, a)) return bad_axis("repeat_interleave", axis, a);
  if (count < 0) return refused(a, "repeat_interleave", "a count of ", count);
  Inferred r{a, {}};
  r.out.d[wrap(axis, a.rank)] = times(a.d[wrap(axis, a.rank)], count);
  return r;
}
constexpr Inferred infer_rot90(const Shape& a, int k, int from, int to) {
  const int axes[] = {from, to};
  if (const Inferred r = infer_reduce("rot90", a, axes, 2, true); !r.ok()) return r;
  return k % 2 == 0 ? Inferred{a, {}} : infer_transpose(a, from, to);
}

// ---- concatenation -----------------------------------------------------------------------------------
constexpr Shape infer_column(const Shape& a) {
  Shape s = a.rank == 0 ? infer_atleast(a, 1) : a;
  if (s.rank == 1) s.push(1);
  return s;
}
template <int Axis, class... More>
constexpr Inferred infer_joined(const char* op, const Shape& first, const More&... more) {
  Inferred all{first, {}};
  ((all = all.ok() ? infer_concat(all.out, more, Axis) : all), ...);
  if (!all.ok()) all.error = Text(op).add(all.error.s + 6);  // replaces the prefix "concat"
  return all;
}

}  // namespace lc::typed
