// Shapes as compile-time values, and shape inference for the operations on them. One constexpr function per operation
// returns the shape of the result, or the error message that the untyped operation would throw when the graph is built.
//
// It includes no standard header except <cstdint>, because every model includes this file.
#pragma once

#include <cstdint>

namespace lc::typed {

inline constexpr int kMaxRank = 8;

// An extent: a number, a name ("batch"), or `dyn`, which is known when the graph is built.
struct Dim {
  std::int64_t n = -2;  // -1: named; -2: dyn; below: invalid, the given value minus 2
  char name[16] = {};
  constexpr Dim() = default;
  constexpr Dim(int v) : Dim(static_cast<long>(v)) {}
  constexpr Dim(unsigned v) : Dim(static_cast<long>(v)) {}
  constexpr Dim(long v) : n(v < 0 ? v - 2 : v) {}
  constexpr Dim(unsigned long v) : Dim(static_cast<long>(v)) {}
  template <int N>
  constexpr Dim(const char (&s)[N]) : n(-1) {
    static_assert(N > 1 && N <= 16, "the name of a dimension has 1 to 15 characters");
    for (int i = 0; i < N; ++i) name[i] = s[i];
  }
  constexpr bool number() const { return n >= 0; }
  constexpr bool named() const { return n == -1; }
  constexpr bool negative() const { return n < -2; }
  friend constexpr bool operator==(const Dim&, const Dim&) = default;
};
inline constexpr Dim dyn{};

struct Shape {
  Dim d[kMaxRank] = {};
  int rank = 0;
  constexpr void push(Dim x) { d[rank++] = x; }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

// A message that can be a template argument, which g++ prints as a string.
struct Text {
  char s[256] = {};
  constexpr Text() = default;
  constexpr Text(const char* t) { add(t); }
  constexpr Text& add(const char* t) {
    int at = 0;
    while (s[at]) ++at;
    for (; *t && at < 255; ++t) s[at++] = *t;
    return *this;
  }
  constexpr bool empty() const { return s[0] == 0; }
  constexpr const char* data() const { return s; }
  constexpr unsigned long size() const {
    unsigned long n = 0;
    while (s[n]) ++n;
    return n;
  }
  constexpr Text& add(std::int64_t v) {
    char digits[24] = {};
    int k = 23;
    const bool negative = v < 0;
    do digits[--k] = static_cast<char>('0' + (negative ? -(v % 10) : v % 10));
    while ((v /= 10) != 0);
    if (negative) digits[--k] = '-';
    return add(digits + k);
  }
  constexpr Text& add(const Dim& d) {
    return d.number() ? add(d.n) : d.negative() ? add(d.n + 2) : add(d.named() ? d.name : "?");
  }
  constexpr Text& add(const Shape& s) {
    add("[");
    for (int i = 0; i < s.rank; ++i) {
      if (i) add(", ");
      add(s.d[i]);
    }
    return add("]");
  }
};

struct Inferred {
  Shape out;
  Text error;
  constexpr bool ok() const { return error.empty(); }
};

// Returns an error, with the part of the result's shape that is known.
template <class... Words>
constexpr Inferred refused(const Shape& out, const char* op, const Words&... words) {
  Inferred r{out, Text(op)};
  r.error.add(": ");
  (r.error.add(words), ...);
  return r;
}

constexpr Text extents(const Shape& s) {
  Text e;
  for (int i = 0; i < s.rank; ++i)
    if (s.d[i].negative() && e.empty()) e.add("a tensor of ").add(s).add(": no extent is negative");
  return e;
}

// True if the two extents differ. Numbers and names are compared now, dyn when the graph is built.
constexpr bool differ(const Dim& a, const Dim& b) { return a != dyn && b != dyn && !(a == b); }
constexpr Dim better(const Dim& a, const Dim& b) { return a == dyn ? b : a; }

// Sums and products of extents; dyn if unknown.
constexpr Dim plus(const Dim& a, std::int64_t n) {
  return n == 0 ? a : a.number() ? Dim(static_cast<long>(a.n + n)) : dyn;
}
constexpr Dim times(const Dim& a, const Dim& b) {
  if (a == Dim(1) || b == Dim(1)) return a == Dim(1) ? b : a;
  return a.number() && b.number() ? Dim(static_cast<long>(a.n * b.n)) : dyn;
}

constexpr int wrap(int axis, int rank) { return axis < 0 ? axis + rank : axis; }

constexpr Inferred infer_broadcast(const char* op, const Shape& a, const Shape& b) {
  Inferred r;
  r.out.rank = a.rank > b.rank ? a.rank : b.rank;
  for (int k = 0; k < r.out.rank; ++k) {  // right-aligned
    const int i = a.rank - 1 - k, j = b.rank - 1 - k, at = r.out.rank - 1 - k;
    const Dim x = i < 0 ? Dim(1) : a.d[i], y = j < 0 ? Dim(1) : b.d[j];
    if (x == Dim(1)) r.out.d[at] = y;
    else if (y == Dim(1)) r.out.d[at] = x;
    else {
      if (differ(x, y) && r.ok())
        r.error.add(op)
            .add(": ")
            .add(a)
            .add(" and ")
            .add(b)
            .add(" differ at axis ")
            .add(std::int64_t{at})
            .add(": ")
            .add(x)
            .add(" vs ")
            .add(y);
      r.out.d[at] = better(x, y);
    }
  }
  return r;
}

constexpr Inferred infer_matmul(const Shape& a, const Shape& b) {
  Inferred r;
  if (a.rank == 0 || b.rank == 0) {
    r.error.add("matmul: ").add(a).add(" x ").add(b).add(": both need at least one axis");
    return r;
  }
  const Dim inner_a = a.d[a.rank - 1], inner_b = b.d[b.rank == 1 ? 0 : b.rank - 2];
  if (differ(inner_a, inner_b))
    r.error.add("matmul: ")
        .add(a)
        .add(" x ")
        .add(b)
        .add(": inner dimensions differ: ")
        .add(inner_a)
        .add(" vs ")
        .add(inner_b);
  const int batch = (a.rank > b.rank ? a.rank : b.rank) - 2;
  for (int k = batch; k > 0; --k) {  // batch axes, right-aligned
    const Dim x = k + 2 > a.rank ? Dim(1) : a.d[a.rank - 2 - k], y = k + 2 > b.rank ? Dim(1) : b.d[b.rank - 2 - k];
    if (x == Dim(1) || y == Dim(1)) {
      r.out.push(x == Dim(1) ? y : x);
    } else {
      if (differ(x, y) && r.ok())
        r.error.add("matmul: ").add(a).add(" x ").add(b).add(": batch dimensions differ: ").add(x).add(" vs ").add(y);
      r.out.push(better(x, y));
    }
  }
  if (a.rank > 1) r.out.push(a.d[a.rank - 2]);
  if (b.rank > 1) r.out.push(b.d[b.rank - 1]);
  return r;
}

constexpr Inferred bad_axis(const char* op, int axis, const Shape& a) {
  Inferred r{a, {}};
  r.error.add(op).add(": axis ").add(std::int64_t{axis}).add(" is not an axis of ").add(a);
  return r;
}
constexpr bool is_axis(int axis, const Shape& a) { return axis >= -a.rank && axis < a.rank; }

// Without axes, reduces over all of them. `some` rejects empty axes, which have no maximum.
constexpr Inferred infer_reduce(const char* op, const Shape& a, const int* axes, int count, bool keep,
                                bool some = false) {
  bool gone[kMaxRank] = {};
  for (int i = 0; i < count; ++i) {
    if (!is_axis(axes[i], a)) return bad_axis(op, axes[i], a);
    if (gone[wrap(axes[i], a.rank)]) {
      Inferred twice{a, Text(op)};
      twice.error.add(": an axis is named twice");
      return twice;
    }
    gone[wrap(axes[i], a.rank)] = true;
  }
  Inferred r;
  for (int i = 0; i < a.rank; ++i) {
    if (count > 0 && !gone[i]) {
      r.out.push(a.d[i]);
      continue;
    }
    if (keep) r.out.push(1);
    if (some && a.d[i] == Dim(0) && r.ok())
      r.error.add(op).add(": axis ").add(std::int64_t{i}).add(" of ").add(a).add(" has no elements");
  }
  return r;
}

constexpr Inferred infer_along(const char* op, const Shape& a, int axis) {
  return is_axis(axis, a) ? Inferred{a, {}} : bad_axis(op, axis, a);
}

constexpr Inferred infer_flip(const Shape& a, const int* axes, int count) {
  const Inferred r = infer_reduce("flip", a, axes, count, true);
  return r.ok() ? Inferred{a, {}} : r;
}

constexpr Inferred infer_permute(const Shape& a, const int* axes, int count) {
  for (int i = 0; i < count; ++i)
    if (!is_axis(axes[i], a)) return bad_axis("permute", axes[i], a);
  Inferred r;
  bool seen[kMaxRank] = {};
  bool ok = count == a.rank;
  for (int i = 0; i < count && ok; ++i) {
    ok = !seen[wrap(axes[i], a.rank)];
    if (ok) seen[wrap(axes[i], a.rank)] = true, r.out.push(a.d[wrap(axes[i], a.rank)]);
  }
  if (!ok) {
    r.out = a;
    r.error.add("permute: the axes are not an order of all axes of ").add(a);
  }
  return r;
}

// The number of elements: a number times names, in the order in which lc::Dim prints them.
struct Count {
  std::int64_t n = 1;
  Dim names[kMaxRank] = {};
  int size = 0, open = 0;  // open: number of dyn extents
  constexpr explicit Count(const Shape& s) {
    for (int i = 0; i < s.rank; ++i) {
      if (s.d[i].number()) n *= s.d[i].n;
      else if (s.d[i] == dyn) ++open;
      else insert(s.d[i]);
    }
    if (n == 0) size = 0;
  }
  constexpr void insert(const Dim& d) {
    int at = size++;
    for (; at > 0 && before(d, names[at - 1]); --at) names[at] = names[at - 1];
    names[at] = d;
  }
  // Divides by `by`; returns false if the division is not exact.
  constexpr bool divide(const Count& by) {
    if (by.n == 0 || n % by.n != 0) return false;
    n /= by.n;
    for (int i = 0; i < by.size; ++i) {
      int k = 0;
      while (k < size && !(names[k] == by.names[i])) ++k;
      if (k == size) return false;
      for (--size; k < size; ++k) names[k] = names[k + 1];
    }
    return true;
  }
  constexpr bool same(const Count& o) const {
    bool equal = n == o.n && size == o.size;
    for (int i = 0; i < size && equal; ++i) equal = names[i] == o.names[i];
    return equal;
  }
  static constexpr bool before(const Dim& a, const Dim& b) {
    int i = 0;
    while (a.name[i] && a.name[i] == b.name[i]) ++i;
    return a.name[i] < b.name[i];
  }
};
constexpr void add(Text& t, const Count& c) {
  if (c.n != 1 || c.size == 0) t.add(c.n).add(c.size > 0 ? "*" : "");
  for (int i = 0; i < c.size; ++i) t.add(i ? "*" : "").add(c.names[i]);
}

// Infers one dyn extent of `to`, now or when the graph is built.
constexpr Inferred infer_reshape(const Shape& a, const Shape& to) {
  Inferred r{to, {}};
  Count have(a), want(to);
  if (want.open > 1) {
    r.error.add("reshape: ").add(to).add(" leaves more than one extent open");
    return r;
  }
  if (have.open > 0) return r;
  if (want.open == 1) {
    Count rest = have;
    if (!rest.divide(want) || rest.size > 1 || (rest.size == 1 && rest.n != 1)) {
      if (have.size > 0 || want.size > 0 || want.n == 0) return r;
      rest.n = have.n / want.n;  // not exact: the error message shows the rounded value
    }
    for (int i = 0; i < r.out.rank; ++i)
      if (r.out.d[i] == dyn) r.out.d[i] = rest.size == 1 ? rest.names[0] : Dim(static_cast<long>(rest.n));
    want = Count(r.out);
  }
  if (have.same(want)) return r;
  r.error.add("reshape: ").add(a).add(" has ");
  add(r.error, have);
  r.error.add(" elements, ").add(r.out).add(" has ");
  add(r.error, want);
  return r;
}

// A dyn extent of `to` keeps the extent of a.
constexpr Inferred infer_broadcast_to(const Shape& a, const Shape& to) {
  Inferred r{to, {}};
  bool ok = a.rank <= to.rank;
  for (int i = 0; i < to.rank && ok; ++i) {
    const int from = i - (to.rank - a.rank);
    if (to.d[i] == dyn) {
      ok = from >= 0;
      if (ok) r.out.d[i] = a.d[from];
    } else if (from >= 0) {
      ok = a.d[from] == Dim(1) || !differ(a.d[from], to.d[i]);
    }
  }
  if (!ok) r.error.add("broadcast_to: ").add(a).add(" does not stretch to ").add(to);
  return r;
}

constexpr Inferred infer_transpose(const Shape& a, int i, int j) {
  if (!is_axis(i, a)) return bad_axis("transpose", i, a);
  if (!is_axis(j, a)) return bad_axis("transpose", j, a);
  Inferred r{a, {}};
  r.out.d[wrap(i, a.rank)] = a.d[wrap(j, a.rank)];
  r.out.d[wrap(j, a.rank)] = a.d[wrap(i, a.rank)];
  return r;
}
constexpr Inferred infer_unsqueeze(const Shape& a, int axis) {
  if (axis < -a.rank - 1 || axis > a.rank) return bad_axis("unsqueeze", axis, a);
  const int at = axis < 0 ? axis + a.rank + 1 : axis;
  Inferred r;
  for (int i = 0; i <= a.rank; ++i) r.out.push(i == at ? Dim(1) : a.d[i < at ? i : i - 1]);
  return r;
}
constexpr Inferred infer_squeeze(const Shape& a, int axis) {
  if (!is_axis(axis, a)) return bad_axis("squeeze", axis, a);
  Inferred r;
  for (int i = 0; i < a.rank; ++i)
    if (i != wrap(axis, a.rank)) r.out.push(a.d[i]);
  if (differ(a.d[wrap(axis, a.rank)], 1))
    r.error.add("squeeze: axis ").add(std::int64_t{wrap(axis, a.rank)}).add(" of ").add(a).add(" is not 1");
  return r;
}
constexpr Inferred infer_flatten(const Shape& a, int first, int last) {
  if (a.rank == 0 && first >= -1 && first <= 0 && last >= -1 && last <= 0) return {Shape{{1}, 1}, {}};  // as in PyTorch
  if (!is_axis(first, a)) return bad_axis("flatten", first, a);
  if (!is_axis(last, a)) return bad_axis("flatten", last, a);
  first = wrap(first, a.rank), last = wrap(last, a.rank);
  Inferred r;
  if (first > last) {
    r.error.add("flatten: axis ").add(std::int64_t{first}).add(" comes after axis ").add(std::int64_t{last});
    return r;
  }
  Dim merged = 1;
  for (int i = 0; i < a.rank; ++i) {
    if (i < first || i > last) r.out.push(a.d[i]);
    else if (merged == Dim(1)) merged = a.d[i];
    else if (!(a.d[i] == Dim(1)))
      merged = merged.number() && a.d[i].number() ? Dim(static_cast<long>(merged.n * a.d[i].n)) : dyn;
    if (i == last) r.out.push(merged);
  }
  return r;
}
// Python's rules: negative indices count from the end, and indices past the end are clamped.
constexpr Inferred infer_slice(const Shape& a, int axis, std::int64_t begin, std::int64_t end, std::int64_t step) {
  if (!is_axis(axis, a)) return bad_axis("slice", axis, a);
  Inferred r{a, {}};
  Dim& d = r.out.d[wrap(axis, a.rank)];
  if (d.named()) r.error.add("slice: a symbolic extent is sliced with Dims: Tensor::slice");
  else if (step == 0) r.error.add("slice: the step is zero");
  if (!r.ok() || !d.number()) return r;
  const std::int64_t n = d.n, low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  std::int64_t b = begin < 0 ? begin + n : begin, e = end < 0 ? end + n : end;
  b = b < low ? low : b > high ? high : b;
  e = e < low ? low : e > high ? high : e;
  const std::int64_t length = step > 0 ? e - b : b - e, stride = step > 0 ? step : -step;
  d = static_cast<long>(length > 0 ? (length + stride - 1) / stride : 0);
  return r;
}
constexpr Inferred infer_pad(const Shape& a, int axis, int before, int after) {
  if (!is_axis(axis, a)) return bad_axis("pad", axis, a);
  Inferred r{a, {}};
  Dim& d = r.out.d[wrap(axis, a.rank)];
  const int cut = (before < 0 ? before : 0) + (after < 0 ? after : 0);  // negative widths cut
  if (d.number() && d.n + cut < 0)
    r.error.add("pad: cutting (")
        .add(std::int64_t{before})
        .add(", ")
        .add(std::int64_t{after})
        .add(") from ")
        .add(std::int64_t{d.n})
        .add(" elements");
  else if (before != 0 || after != 0) d = d.number() ? Dim(static_cast<long>(d.n + before + after)) : dyn;
  return r;
}

constexpr Inferred infer_concat(const Shape& a, const Shape& b, int axis) {
  if (!is_axis(axis, a)) return bad_axis("concat", axis, a);
  Inferred r{a, {}};
  if (a.rank != b.rank) {
    r.error.add("concat: ").add(a).add(" and ").add(b).add(" have different ranks");
    return r;
  }
  axis = wrap(axis, a.rank);
  for (int i = 0; i < a.rank; ++i) {
    if (i == axis) {
      r.out.d[i] = a.d[i].number() && b.d[i].number() ? Dim(static_cast<long>(a.d[i].n + b.d[i].n)) : dyn;
    } else {
      if (differ(a.d[i], b.d[i]) && r.ok())
        r.error.add("concat: ")
            .add(a)
            .add(" and ")
            .add(b)
            .add(" differ at axis ")
            .add(std::int64_t{i})
            .add(": ")
            .add(a.d[i])
            .add(" vs ")
            .add(b.d[i]);
      r.out.d[i] = better(a.d[i], b.d[i]);
    }
  }
  return r;
}

constexpr Inferred infer_index_select(const Shape& a, int axis, const Shape& index) {
  if (!is_axis(axis, a)) return bad_axis("index_select", axis, a);
  Inferred r{a, {}};
  if (index.rank != 1) r.error.add("index_select: the index has rank 1, not ").add(index);
  else r.out.d[wrap(axis, a.rank)] = index.d[0];
  return r;
}
constexpr Inferred infer_embedding(const Shape& weight, const Shape& ids) {
  Inferred r{ids, {}};
  if (weight.rank != 2) r.error.add("embedding: the weight has rank 2, not ").add(weight);
  else r.out.push(weight.d[1]);
  return r;
}

// Removes an axis by selecting one element of it.
constexpr Inferred infer_select(const Shape& a, int axis) {
  if (!is_axis(axis, a)) return bad_axis("select", axis, a);
  const int axes[] = {axis};
  return infer_reduce("select", a, axes, 1, false);
}
constexpr Inferred infer_diff(const Shape& a, int n, int axis) {
  if (!is_axis(axis, a)) return bad_axis("diff", axis, a);
  Inferred r{a, {}};
  Dim& d = r.out.d[wrap(axis, a.rank)];
  d = !d.number() ? dyn : Dim(static_cast<long>(d.n > n ? d.n - n : 0));
  return r;
}
constexpr Inferred infer_topk(const Shape& a, int k, int axis) {
  if (!is_axis(axis, a)) return bad_axis("topk", axis, a);
  Inferred r{a, {}};
  Dim& d = r.out.d[wrap(axis, a.rank)];
  if (d.number() && d.n < k)
    r.error.add("topk: k is ")
        .add(std::int64_t{k})
        .add(", axis ")
        .add(std::int64_t{wrap(axis, a.rank)})
        .add(" of ")
        .add(a)
        .add(" has fewer elements");
  d = k;
  return r;
}
constexpr Inferred infer_triangle(const char* op, const Shape& a) {
  Inferred r{a, {}};
  if (a.rank < 2) r.error.add(op).add(": needs a matrix, not ").add(a);
  return r;
}

// Checks the shape given to as<...>() against what is known.
constexpr Inferred infer_as(const Shape& a, const Shape& to) {
  Inferred r{to, {}};
  bool ok = a.rank == to.rank;
  for (int i = 0; i < a.rank && ok; ++i) ok = !differ(a.d[i], to.d[i]);
  if (!ok) r.error.add("as: a tensor of ").add(a).add(" is not a ").add(to);
  return r;
}
constexpr bool forgets(const Shape& a, const Shape& to) {
  if (a.rank != to.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (!(to.d[i] == dyn) && !(a.d[i] == to.d[i])) return false;
  return true;
}

}  // namespace lc::typed
