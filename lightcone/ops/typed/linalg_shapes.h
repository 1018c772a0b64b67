// Shape inference for products, norms and factorisations.
#pragma once

#include "lightcone/ops/typed/shape.h"

namespace lc::typed {

// ---- products ----------------------------------------------------------------------------------------
constexpr Inferred infer_product(const char* op, const Shape& a, int rank_a, const Shape& b, int rank_b) {
  if (a.rank != rank_a || b.rank != rank_b)
    return refused(a, op, a, " x ", b, ": the ranks are ", rank_a, " and ", rank_b);
  if (rank_a == 3 && differ(a.d[0], b.d[0]))
    return refused(a, op, a, " x ", b, ": batches differ: ", a.d[0], " vs ", b.d[0]);
  Inferred r = infer_matmul(a, b);
  if (!r.ok()) r.error = Text(op).add(r.error.s + 6);  // replaces the prefix "matmul"
  return r;
}
constexpr Inferred infer_outer(const char* op, const Shape& a, const Shape& b) {
  if (a.rank != 1 || b.rank != 1) return refused(a, op, a, " and ", b, ": both have rank 1");
  Inferred r;
  r.out.push(a.d[0]), r.out.push(b.d[0]);
  return r;
}
constexpr Inferred without_batch(Inferred r) {
  if (!r.ok()) return r;
  const int first = 0;
  return infer_reduce("addbmm", r.out, &first, 1, false);
}
// Requires that input broadcasts to the product.
constexpr Inferred infer_added(const char* op, const Shape& input, const Inferred& product) {
  if (!product.ok()) return product;
  const Shape& s = product.out;
  const Inferred both = infer_broadcast(op, input, s);
  if (!both.ok()) return both;
  bool fits = input.rank <= s.rank;
  for (int k = 1; fits && k <= input.rank; ++k)
    fits = input.d[input.rank - k] == Dim(1) || !differ(input.d[input.rank - k], s.d[s.rank - k]);
  return fits ? product : refused(s, op, "an input ", input, " does not stretch to ", s);
}
constexpr Inferred infer_chain(const Shape* m, int count) {
  const bool row = count > 1 && m[0].rank == 1, column = count > 1 && m[count - 1].rank == 1;
  Inferred r;
  Dim inner;
  Shape before;
  for (int k = 0; k < count; ++k) {
    Shape s = m[k];
    if (k == 0 && row) s = infer_unsqueeze(s, 0).out;
    if (k == count - 1 && column) s = infer_unsqueeze(s, 1).out;
    if (s.rank != 2) return refused(r.out, "chain_matmul", "needs matrices, not ", s);
    if (k > 0 && differ(inner, s.d[0]))
      return refused(r.out, "chain_matmul", before, " x ", s, ": inner dimensions differ: ", inner, " vs ", s.d[0]);
    if (k == 0 && !row) r.out.push(s.d[0]);
    if (k == count - 1 && !column) r.out.push(s.d[1]);
    before = s, inner = s.d[1];
  }
  return r;
}
constexpr Inferred infer_tensordot(const char* op, const Shape& a, const Shape& b, const int* axes_a, const int* axes_b,
                                   int count) {
  bool of_a[kMaxRank] = {}, of_b[kMaxRank] = {};
  for (int k = 0; k < count; ++k) {
    if (!is_axis(axes_a[k], a)) return bad_axis(op, axes_a[k], a);
    if (of_a[wrap(axes_a[k], a.rank)]) return refused(a, op, "an axis is named twice");
    of_a[wrap(axes_a[k], a.rank)] = true;
  }
  for (int k = 0; k < count; ++k) {
    if (!is_axis(axes_b[k], b)) return bad_axis(op, axes_b[k], b);
    if (of_b[wrap(axes_b[k], b.rank)]) return refused(a, op, "an axis is named twice");
    of_b[wrap(axes_b[k], b.rank)] = true;
  }
  for (int k = 0; k < count; ++k) {
    const int i = wrap(axes_a[k], a.rank), j = wrap(axes_b[k], b.rank);
    if (differ(a.d[i], b.d[j]))
      return refused(a, op, "axis ", i, " of ", a, " and axis ", j, " of ", b, " differ: ", a.d[i], " vs ", b.d[j]);
  }
  if (a.rank + b.rank - 2 * count > kMaxRank) return refused(a, op, "a typed tensor has at most 8 axes");
  Inferred r;
  for (int i = 0; i < a.rank; ++i)
    if (!of_a[i]) r.out.push(a.d[i]);
  for (int i = 0; i < b.rank; ++i)
    if (!of_b[i]) r.out.push(b.d[i]);
  return r;
}
constexpr Inferred infer_tensordot(const Shape& a, const Shape& b, int dims) {
  if (dims < 0 || dims > a.rank || dims > b.rank) return refused(a, "tensordot", dims, " axes of ", a, " and ", b);
  int x[kMaxRank] = {}, y[kMaxRank] = {};
  for (int i = 0; i < dims; ++i) x[i] = a.rank - dims + i, y[i] = i;
  return infer_tensordot("tensordot", a, b, x, y, dims);
}
constexpr Inferred infer_inner(const Shape& a, const Shape& b) {
  if (a.rank == 0 || b.rank == 0) return infer_broadcast("inner", a, b);
  const int last[] = {-1};
  return infer_tensordot("inner", a, b, last, last, 1);
}
constexpr Shape infer_kron(const Shape& a, const Shape& b) {
  Shape s = a.rank > b.rank ? a : b;
  for (int k = 1; k <= s.rank; ++k)
    s.d[s.rank - k] = times(k <= a.rank ? a.d[a.rank - k] : Dim(1), k <= b.rank ? b.d[b.rank - k] : Dim(1));
  return s;
}
constexpr Inferred infer_cross(const Shape& a, const Shape& b, int axis) {
  const Inferred r = infer_broadcast("cross", a, b);
  if (!r.ok()) return r;
  if (!is_axis(axis, r.out)) return bad_axis("cross", axis, r.out);
  const int at = wrap(axis, r.out.rank);
  return differ(r.out.d[at], 3)
             ? refused(r.out, "cross", "axis ", at, " of ", r.out, " has ", r.out.d[at], " elements, not 3")
             : r;
}
constexpr Inferred infer_cross(const Shape& a, const Shape& b) {
  const Inferred r = infer_broadcast("cross", a, b);
  if (!r.ok()) return r;
  for (int i = 0; i < r.out.rank; ++i)
    if (!differ(r.out.d[i], 3)) return r;
  return refused(r.out, "cross", "no axis of ", r.out, " has 3 elements");
}
constexpr Inferred infer_vecdot(const Shape& a, const Shape& b, int axis) {
  const Inferred r = infer_broadcast("vecdot", a, b);
  return r.ok() ? infer_reduce("vecdot", r.out, &axis, 1, false) : r;
}
constexpr Inferred infer_cdist(const Shape& a, const Shape& b) {
  if (a.rank < 2 || b.rank < 2 || differ(a.d[a.rank - 1], b.d[b.rank - 1]))
    return refused(a, "cdist", a, " and ", b, " are not [.., p, m] and [.., r, m]");
  const Inferred r = infer_broadcast("cdist", infer_unsqueeze(a, -2).out, infer_unsqueeze(b, b.rank - 2).out);
  const int last = -1;
  return r.ok() ? infer_reduce("cdist", r.out, &last, 1, false) : r;
}
constexpr Inferred infer_matrix_norm(const Shape& a, int axis1, int axis2, bool keep) {
  const int axes[] = {axis1, axis2};
  for (const int x : axes)
    if (!is_axis(x, a)) return bad_axis("matrix_norm", x, a);
  if (wrap(axis1, a.rank) == wrap(axis2, a.rank)) return refused(a, "matrix_norm", "the two axes are one");
  return infer_reduce("matrix_norm", a, axes, 2, keep);
}

// ---- factorisations ----------------------------------------------------------------------------------
constexpr Inferred infer_matrix(const char* op, const Shape& a) {
  if (a.rank < 2) return refused(a, op, "needs a matrix, not ", a);
  for (int i = 0; i < a.rank; ++i)
    if (a.d[i].named())
      return refused(a, op, "needs extents that are known when the graph is built, not ", a, ": ", a.d[i],
                     " is a symbol, and the blocks are counted");
  return {a, {}};
}
constexpr Inferred infer_square(const char* op, const Shape& a, int less_axes = 0) {
  Inferred r = infer_matrix(op, a);
  if (!r.ok()) return r;
  if (differ(a.d[a.rank - 1], a.d[a.rank - 2])) return refused(a, op, "needs a square matrix, not ", a);
  r.out.rank -= less_axes;
  return r;
}
// Accepts symbolic extents, because it only multiplies.
constexpr Inferred infer_matrix_power(const Shape& a) {
  if (a.rank < 2 || differ(a.d[a.rank - 1], a.d[a.rank - 2]))
    return refused(a, "matrix_power", "needs a square matrix, not ", a);
  return {a, {}};
}
constexpr Inferred infer_trace(const Shape& a) {
  return a.rank == 2 ? Inferred{} : refused(a, "trace", "needs a matrix, not ", a);
}
constexpr Inferred infer_batches(const char* op, const Shape& a, const Shape& b, const Dim& rows, const Dim& columns) {
  Shape x = a, y = b;
  x.rank -= 2, y.rank -= 2;
  Inferred r = infer_broadcast(op, x, y);
  r.out.push(rows), r.out.push(columns);
  return r;
}
// Solves A X = B for A [.., n, n] and B [.., n, k], or X A = B for B [.., k, n].
constexpr Inferred infer_solve(const char* op, const Shape& a, const Shape& b, bool left) {
  if (a.rank < 2 || b.rank < 2) return refused(b, op, "needs matrices, not ", a, " and ", b);
  if (!left) {
    Inferred r = infer_solve(op, infer_transpose(a, -1, -2).out, infer_transpose(b, -1, -2).out, true);
    if (r.ok()) r.out = infer_transpose(r.out, -1, -2).out;
    return r;
  }
  const Dim n = a.d[a.rank - 1], rows = b.d[b.rank - 2], k = b.d[b.rank - 1];
  if (differ(n, a.d[a.rank - 2])) return refused(b, op, "needs a square matrix, not ", a);
  if (differ(n, rows)) return refused(b, op, a, " and ", b, ": their rows differ: ", a.d[a.rank - 2], " vs ", rows);
  const Inferred r = infer_batches(op, a, b, better(n, rows), k);
  if (!r.ok()) return r;
  const Inferred known = infer_matrix(op, infer_batches(op, a, b, n, n).out);
  if (!known.ok()) return known;
  const Inferred right = infer_matrix(op, r.out);
  return right.ok() ? r : right;
}
// B may be a vector, or one vector per matrix.
constexpr Inferred infer_solve_vectors(const Shape& a, const Shape& b, bool left) {
  bool vectors = b.rank == 1;
  if (!vectors && a.rank == b.rank + 1) {
    vectors = true;
    for (int i = 0; i < b.rank; ++i) vectors = vectors && !differ(a.d[i], b.d[i]);
  }
  if (!vectors) return infer_solve("solve", a, b, left);
  if (!left) return refused(b, "solve", "X A = B of a vector B: give it two axes, or solve with the transposed matrix");
  Inferred r = infer_solve_vectors(a, infer_unsqueeze(b, -1).out, true);
  if (r.ok()) --r.out.rank;
  return r;
}
constexpr Inferred infer_lstsq(const Shape& a, const Shape& b) {
  if (a.rank < 2 || b.rank < 2) return refused(b, "lstsq", "needs matrices, not ", a, " and ", b);
  const Dim m = a.d[a.rank - 2], rows = b.d[b.rank - 2];
  if (differ(m, rows)) return refused(b, "lstsq", a, " and ", b, ": their rows differ: ", m, " vs ", rows);
  const Inferred known = infer_matrix("lstsq", a);
  return known.ok() ? infer_batches("lstsq", a, b, a.d[a.rank - 1], b.d[b.rank - 1]) : known;
}
// Q is [.., m, k] and R [.., k, n], with k = min(m, n).
constexpr Inferred infer_qr(const Shape& a, bool is_q) {
  Inferred r = infer_matrix("qr", a);
  if (!r.ok()) return r;
  const Dim m = a.d[a.rank - 2], n = a.d[a.rank - 1];
  const Dim k = m.number() && n.number() ? Dim(static_cast<long>(m.n < n.n ? m.n : n.n)) : dyn;
  r.out.d[a.rank - (is_q ? 1 : 2)] = k;
  return r;
}

// The parts of the SVD of [.., m, n]: U [.., m, k or m], S [.., k], Vh [.., k or n, n].
enum class SvdPart { U, S, Vh };
constexpr Inferred infer_svd(const char* op, const Shape& a, SvdPart part, bool full) {
  Inferred r = infer_matrix(op, a);
  if (!r.ok()) return r;
  const Dim m = a.d[a.rank - 2], n = a.d[a.rank - 1], k = infer_qr(a, true).out.d[a.rank - 1];
  if (part == SvdPart::U) r.out.d[a.rank - 1] = full ? m : k;
  if (part == SvdPart::Vh) r.out.d[a.rank - 2] = full ? n : k;
  if (part == SvdPart::S) r.out.d[a.rank - 2] = k, --r.out.rank;
  return r;
}
constexpr Inferred infer_batch_of(const char* op, const Shape& a) {
  Inferred r = infer_matrix(op, a);
  if (r.ok()) r.out.rank -= 2;
  return r;
}
constexpr Inferred infer_pinv(const Shape& a) {
  Inferred r = infer_matrix("pinv", a);
  return r.ok() ? infer_transpose(r.out, -1, -2) : r;
}

// ---- einsum ------------------------------------------------------------------------------------------
// The terms of an equation and its result, without spaces.
struct Equation {
  static constexpr int kMost = 8;
  Text terms[kMost], output;
  int count = 1;
  bool has_output = false;
  constexpr explicit Equation(const Text& text) {
    for (const char* c = text.s; *c; ++c) {
      const char one[] = {*c, 0};
      if (*c == ' ') continue;
      if (!has_output && c[0] == '-' && c[1] == '>') has_output = true, ++c;
      else if (!has_output && *c == ',') ++count;
      else if (has_output) output.add(one);
      else if (count <= kMost) terms[count - 1].add(one);
    }
  }
  // Returns a character that is not a letter, or 0.
  constexpr char foreign() const {
    for (int t = 0; t <= count && t <= kMost; ++t)
      for (const char* c = t < count && t < kMost ? terms[t].s : output.s; *c; ++c)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z'))) return *c;
    return 0;
  }
};
// Supports letters, commas and an arrow; an ellipsis needs the untyped einsum().
constexpr Inferred infer_einsum(const Text& text, const Shape* operands, int count) {
  const Equation e(text);
  const Text begin = Text("'").add(text.s).add("': ");
  const auto refuse = [&](const auto&... words) { return refused(Shape{}, "einsum", begin.s, words...); };
  if (const char c = e.foreign(); c == '.') {
    return refuse("with an ellipsis the untyped einsum() knows the shape");
  } else if (c != 0) {
    const char one[] = {c, 0};
    return refuse("letters, commas, one ... an operand and an arrow are understood, not '", one, "'");
  }
  if (e.count != count) return refuse("names ", e.count, " operands, ", count, " were given");
  if (count > Equation::kMost) return refuse("at most 8 operands");
  Dim extents[128];
  int seen[128] = {};
  for (int t = 0; t < count; ++t) {
    const Shape& s = operands[t];
    if (static_cast<int>(e.terms[t].size()) != s.rank)
      return refuse("'", e.terms[t].s, "' does not name the axes of ", s);
    for (int i = 0; i < s.rank; ++i) {
      const char one[] = {e.terms[t].s[i], 0};
      Dim& n = extents[static_cast<int>(one[0])];
      if (seen[static_cast<int>(one[0])]++ == 0 || n == Dim(1)) n = s.d[i];
      else if (s.d[i] == Dim(1)) continue;
      else if (differ(n, s.d[i])) return refuse("'", one, "' is both ", n, " and ", s.d[i]);
      else n = better(n, s.d[i]);
    }
  }
  Inferred r;
  int written[128] = {};
  for (const char* c = e.output.s; *c; ++c) {
    const char one[] = {*c, 0};
    if (seen[static_cast<int>(*c)] == 0) return refuse("'", one, "' of the result is in no operand");
    for (const char* d = e.output.s; *d; ++d) written[static_cast<int>(*c)] += *d == *c;
    if (written[static_cast<int>(*c)] > 1) return refuse("'", one, "' is twice in the result");
    r.out.push(extents[static_cast<int>(*c)]);
  }
  for (int letter = 0; letter < 128 && !e.has_output; ++letter)  // implicit output: letters that occur once, sorted
    if (seen[letter] == 1) r.out.push(extents[letter]);
  return r;
}

}  // namespace lc::typed
