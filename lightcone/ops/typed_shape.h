// Shapes as compile-time values, and the rules of the operations on them. One constexpr function an
// operation gives the shape of its result or the sentence that says what is wrong: the sentence the
// untyped operation throws when the graph is built.
//
// No standard header but <cstdint>: this is included by every model.
#pragma once

#include <cstdint>

namespace lc::typed {

inline constexpr int kMaxRank = 8;

// A number, a name ("batch"), or `dyn`: known when the graph is built.
struct Dim {
  std::int64_t n = -2;  // -1: named; -2: dyn
  char name[16] = {};
  constexpr Dim() = default;
  constexpr Dim(int v) : n(v) {}
  constexpr Dim(long v) : n(v) {}
  template <int N>
  constexpr Dim(const char (&s)[N]) : n(-1) {
    static_assert(N > 1 && N <= 16, "the name of a dimension has 1 to 15 characters");
    for (int i = 0; i < N; ++i) name[i] = s[i];
  }
  constexpr bool number() const { return n >= 0; }
  constexpr bool named() const { return n == -1; }
  friend constexpr bool operator==(const Dim&, const Dim&) = default;
};
inline constexpr Dim dyn{};

struct Shape {
  Dim d[kMaxRank] = {};
  int rank = 0;
  constexpr void push(Dim x) { d[rank++] = x; }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

// A sentence that can be a template argument: g++ prints it as a string.
struct Text {
  char s[200] = {};
  constexpr Text() = default;
  constexpr Text(const char* t) { add(t); }
  constexpr Text& add(const char* t) {
    int at = 0;
    while (s[at]) ++at;
    for (; *t && at < 199; ++t) s[at++] = *t;
    return *this;
  }
  constexpr Text& add(std::int64_t v) {
    char digits[24] = {};
    int k = 23;
    const bool negative = v < 0;
    do digits[--k] = static_cast<char>('0' + (negative ? -(v % 10) : v % 10)); while ((v /= 10) != 0);
    if (negative) digits[--k] = '-';
    return add(digits + k);
  }
  constexpr Text& add(const Dim& d) { return d.number() ? add(d.n) : add(d.named() ? d.name : "?"); }
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
  constexpr bool ok() const { return error.s[0] == 0; }
};

// Can the two be the same? Numbers and names are compared now; dyn waits for the build.
constexpr bool differ(const Dim& a, const Dim& b) { return a != dyn && b != dyn && !(a == b); }
constexpr Dim better(const Dim& a, const Dim& b) { return a == dyn ? b : a; }

constexpr int wrap(int axis, int rank) { return axis < 0 ? axis + rank : axis; }

constexpr Inferred infer_broadcast(const char* op, const Shape& a, const Shape& b) {
  Inferred r;
  r.out.rank = a.rank > b.rank ? a.rank : b.rank;
  for (int k = 0; k < r.out.rank; ++k) {  // from the right
    const int i = a.rank - 1 - k, j = b.rank - 1 - k, at = r.out.rank - 1 - k;
    const Dim x = i < 0 ? Dim(1) : a.d[i], y = j < 0 ? Dim(1) : b.d[j];
    if (x == Dim(1)) r.out.d[at] = y;
    else if (y == Dim(1)) r.out.d[at] = x;
    else {
      if (differ(x, y) && r.ok()) r.error.add(op).add(": ").add(a).add(" and ").add(b).add(" differ at axis ").add(std::int64_t{at}).add(": ").add(x).add(" vs ").add(y);
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
  if (differ(inner_a, inner_b)) r.error.add("matmul: ").add(a).add(" x ").add(b).add(": inner dimensions differ: ").add(inner_a).add(" vs ").add(inner_b);
  Shape batch_a, batch_b;
  for (int i = 0; i + 2 < a.rank; ++i) batch_a.push(a.d[i]);
  for (int i = 0; i + 2 < b.rank; ++i) batch_b.push(b.d[i]);
  const Inferred batch = infer_broadcast("matmul", batch_a, batch_b);
  r.out = batch.out;
  if (r.ok()) r.error = batch.error;
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

// Without axes: all of them.
constexpr Inferred infer_reduce(const char* op, const Shape& a, const int* axes, int count, bool keep) {
  bool gone[kMaxRank] = {};
  for (int i = 0; i < count; ++i) {
    if (!is_axis(axes[i], a)) return bad_axis(op, axes[i], a);
    gone[wrap(axes[i], a.rank)] = true;
  }
  Inferred r;
  for (int i = 0; i < a.rank; ++i) {
    if (count > 0 && !gone[i]) r.out.push(a.d[i]);
    else if (keep) r.out.push(1);
  }
  return r;
}

constexpr Inferred infer_along(const char* op, const Shape& a, int axis) { return is_axis(axis, a) ? Inferred{a, {}} : bad_axis(op, axis, a); }

constexpr Inferred infer_permute(const Shape& a, const int* axes, int count) {
  Inferred r;
  bool seen[kMaxRank] = {};
  bool ok = count == a.rank;
  for (int i = 0; i < count && ok; ++i) {
    ok = is_axis(axes[i], a) && !seen[wrap(axes[i], a.rank)];
    if (ok) seen[wrap(axes[i], a.rank)] = true, r.out.push(a.d[wrap(axes[i], a.rank)]);
  }
  if (!ok) {
    r.out = a;
    r.error.add("permute: the axes are not an order of all axes of ").add(a);
  }
  return r;
}

// Names may be moved, not made or lost; with dyn the build decides.
constexpr Inferred infer_reshape(const Shape& a, const Shape& to) {
  Inferred r{to, {}};
  std::int64_t have = 1, want = 1;
  int names = 0;
  for (int i = 0; i < a.rank; ++i) {
    if (a.d[i] == dyn) return r;
    if (a.d[i].number()) have *= a.d[i].n;
    else ++names;
  }
  bool matched[kMaxRank] = {};
  for (int i = 0; i < to.rank; ++i) {
    if (to.d[i] == dyn) return r;
    if (to.d[i].number()) {
      want *= to.d[i].n;
      continue;
    }
    for (int k = 0; k < a.rank; ++k)
      if (!matched[k] && a.d[k] == to.d[i]) {
        matched[k] = true, --names;
        break;
      } else if (k + 1 == a.rank) {
        r.error.add("reshape: ").add(a).add(" has no extent ").add(to.d[i]).add(" for ").add(to);
        return r;
      }
  }
  if (names != 0) r.error.add("reshape: ").add(to).add(" loses a named extent of ").add(a);
  else if (have != want) r.error.add("reshape: ").add(a).add(" has ").add(have).add(" elements, ").add(to).add(" has ").add(want);
  return r;
}

constexpr Inferred infer_broadcast_to(const Shape& a, const Shape& to) {
  Inferred r{to, {}};
  bool ok = a.rank <= to.rank;
  for (int k = 0; k < a.rank && ok; ++k) {
    const Dim x = a.d[a.rank - 1 - k], y = to.d[to.rank - 1 - k];
    ok = x == Dim(1) || !differ(x, y);
  }
  if (!ok) r.error.add("broadcast_to: ").add(a).add(" does not stretch to ").add(to);
  return r;
}

constexpr Inferred infer_concat(const Shape& a, const Shape& b, int axis) {
  Inferred r{a, {}};
  if (a.rank != b.rank) {
    r.error.add("concat: ").add(a).add(" and ").add(b).add(" have different ranks");
    return r;
  }
  if (!is_axis(axis, a)) return bad_axis("concat", axis, a);
  axis = wrap(axis, a.rank);
  for (int i = 0; i < a.rank; ++i) {
    if (i == axis) {
      r.out.d[i] = a.d[i].number() && b.d[i].number() ? Dim(static_cast<long>(a.d[i].n + b.d[i].n)) : dyn;
    } else {
      if (differ(a.d[i], b.d[i]) && r.ok())
        r.error.add("concat: ").add(a).add(" and ").add(b).add(" differ at axis ").add(std::int64_t{i}).add(": ").add(a.d[i]).add(" vs ").add(b.d[i]);
      r.out.d[i] = better(a.d[i], b.d[i]);
    }
  }
  return r;
}

constexpr Inferred infer_linear(const Shape& x, const Shape& w) {
  Inferred r{x, {}};
  if (w.rank != 2) {
    r.error.add("linear: the weight has rank 2, not ").add(w);
    return r;
  }
  if (x.rank == 0 || differ(x.d[x.rank - 1], w.d[1])) r.error.add("linear: ").add(x).add(" with a weight ").add(w).add(": the last axis must be ").add(w.d[1]);
  if (x.rank > 0) r.out.d[x.rank - 1] = w.d[0];
  return r;
}

constexpr Inferred infer_conv2d(const Shape& x, const Shape& w, int stride, int padding, int groups) {
  Inferred r;
  if (x.rank != 4 || w.rank != 4) {
    r.error.add("conv: a weight ").add(w).add(" does not fit ").add(x);
    return r;
  }
  r.out.push(x.d[0]), r.out.push(w.d[0]);
  const bool known = w.d[1].number() && x.d[1].number();
  if (known && w.d[1].n * groups != x.d[1].n) r.error.add("conv: a weight ").add(w).add(" in ").add(std::int64_t{groups}).add(" groups does not fit ").add(x);
  Shape padded = x;
  for (int i = 2; i < 4; ++i)
    if (x.d[i].number()) padded.d[i] = static_cast<long>(x.d[i].n + 2 * padding);
  for (int i = 2; i < 4; ++i) {
    if (!padded.d[i].number() || !w.d[i].number()) {
      r.out.push(dyn);
      continue;
    }
    if (padded.d[i].n < w.d[i].n && r.ok()) r.error.add("conv: filter ").add(w).add(" is larger than the padded image ").add(padded);
    r.out.push(static_cast<long>((padded.d[i].n - w.d[i].n) / stride + 1));
  }
  return r;
}

constexpr Inferred infer_attention(const Shape& q, const Shape& k, const Shape& v) {
  Inferred r{q, {}};
  bool ok = q.rank == k.rank && k.rank == v.rank && q.rank >= 3;
  for (int i = 0; ok && i < q.rank; ++i) {
    const int from_end = q.rank - i;
    if (from_end == 3) ok = !(q.d[i].number() && k.d[i].number()) || (k.d[i].n > 0 && q.d[i].n % k.d[i].n == 0);
    else if (from_end == 1) ok = !differ(q.d[i], k.d[i]);
    else if (from_end > 3) ok = !differ(q.d[i], k.d[i]);
    if (from_end <= 3 && from_end > 1) ok = ok && !differ(k.d[i], v.d[i]);
  }
  if (!ok) r.error.add("scaled_dot_product_attention: queries ").add(q).add(", keys ").add(k).add(" and values ").add(v).add(" do not fit");
  else r.out.d[q.rank - 1] = v.d[v.rank - 1];
  return r;
}

// What as<...>() says it is, against what is known.
constexpr Inferred infer_as(const Shape& a, const Shape& to) {
  Inferred r{to, {}};
  bool ok = a.rank == to.rank;
  for (int i = 0; i < a.rank && ok; ++i) ok = !(a.d[i].number() && to.d[i].number() && a.d[i].n != to.d[i].n);
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
