// Triangular systems and what is symmetric.
#include "lightcone/composites/composites.h"
#include "lightcone/ops/linalg/blocks.h"

namespace lc {
using namespace detail;
using namespace blocks;

namespace blocks {

// Brings [.., n, n] and [.., n, k] to one batch shape and floating type; extents must be known.
Pair matched(const Operand& a, const Operand& b, const char* op) {
  if (a->rank() < 2 || b->rank() < 2)
    throw Error(op, str_cat("needs matrices, not ", str(a->shape()), " and ", str(b->shape())));
  if (!(a->extent(-1) == a->extent(-2))) throw Error(op, "needs a square matrix, not " + str(a->shape()));
  if (!(a->extent(-1) == b->extent(-2)))
    throw Error(op, str_cat(str(a->shape()), " and ", str(b->shape()), ": their rows differ: ", a->extent(-2), " vs ",
                            b->extent(-2)));
  const DType type = promote(a->dtype(), b->dtype());
  Shape x = a->shape(), y = b->shape();
  const Shape ends{x.back(), y.back()};
  const Dim n = x.back();
  x.resize(x.size() - 2), y.resize(y.size() - 2);
  Shape batch = broadcast(x, y, op), whole = batch;
  whole.insert(whole.end(), {n, ends[0]});
  const Tensor left = expand_to(prim::cast(a, type), whole);
  whole.back() = ends[1];
  return {left, expand_to(prim::cast(b, type), whole)};
}

}  // namespace blocks

namespace {

Tensor triangle(const Tensor& t, bool upper, bool strict = false) {
  return upper ? triu(t, strict ? 1 : 0) : tril(t, strict ? -1 : 0);
}

// Solves A X = B for matched operands; the derivative calls this function again.
Tensor solved(const Tensor& a, const Tensor& b, bool upper, bool unit) {
  const Matrix m = square(a, "solve_triangular"), right = matrix(b, "solve_triangular");
  const Tensor x =
      upper ? solve_upper(triangle(m.t, true), right.t, unit) : solve_lower(triangle(m.t, false), right.t, unit);
  const Tensor y = prim::contiguous(with_batch(x, m.batch));
  return with_vjp(y, {a, b}, [upper, unit](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor db = solved(mirrored(c.in[0]), c.g(), !upper, unit);
    if (!c.wanted[0]) return {Tensor(), db};
    return {triangle(neg(matmul(db, mirrored(c.y()))), upper, unit), db};
  });
}

}  // namespace

namespace linalg {

Tensor solve_triangular(Operand a, Operand b, bool upper, bool left, bool unitriangular) {
  const OpScope scope("solve_triangular", a.at);
  LC_RETURN_IF_EITHER_HALF(a, b, solve_triangular(a, b, upper, left, unitriangular));
  if (!left) {
    if (a->rank() < 2 || b->rank() < 2)
      throw Error("solve_triangular", str_cat("needs matrices, not ", str(a->shape()), " and ", str(b->shape())));
    return mirrored(solve_triangular(mirrored(a), mirrored(b), !upper, true, unitriangular));
  }
  const Pair p = matched(a, b, "solve_triangular");
  return solved(p.a, p.b, upper, unitriangular);
}

}  // namespace linalg

namespace {

// Computes U of A = U^T U and inv(U^T) for [b, n, n] with n <= kBlock: elimination turns [A, I] into [U, inv(U^T)] row
// by row, in place.
Pair cholesky_of_block(const Tensor& a) {
  const std::int64_t n = *a.extent(1).constant(), width = 2 * n;
  const Dim batch = a.extent(0), i = Dim::index(1, n), j = Dim::index(2, width);
  const Tensor one = a.graph().index({batch, n, width}, less(i + n, j + 1) * less(j, i + n + 1), a.dtype());
  const Tensor place = a.graph().index({batch, n, 1}, i, DType::I32);
  const auto step = [&](const std::vector<Tensor>& s, const std::vector<Tensor>& x) -> Scanned {
    const auto at = [&](const Shape& shape) { return x[0].reshape({1, 1, 1}).expand(shape); };
    const Tensor top = prim::gather(s[0], at({batch, 1, width}), 1);
    const Tensor pivot = prim::recip(prim::sqrt(prim::gather(top, at({batch, 1, 1}), 2)));
    const Tensor row = prim::mul(top, pivot.expand(top.shape()));
    const Tensor by = prim::mul(prim::gather(s[0], at({batch, n, 1}), 2), pivot.expand({batch, n, 1}));
    const Shape to = s[0].shape();
    const Tensor rest = prim::add(s[0], neg(prim::mul(by.expand(to), row.expand(to))));
    const Tensor is_below = prim::less_than(at(place.shape()), place), is_own = prim::equal(place, at(place.shape()));
    return {.state = {prim::where(is_below.expand(to), rest, prim::where(is_own.expand(to), row.expand(to), s[0]))},
            .ys = {}};
  };
  const Tensor steps = a.graph().index({n}, Dim::index(0, n), DType::I32);
  const Tensor rows = loop(step, {prim::add(a.pad(2, 0, n), one)}, {steps}, n).state[0];
  return {triu(rows.slice(2, 0, n)), tril(rows.slice(2, n, width))};
}

// Computes the lower factor of [b, n, n]; both triangles must be valid.
Tensor cholesky_of(const Tensor& a) {
  const std::int64_t n = *a.extent(1).constant();
  const Dim batch = a.extent(0);
  if (n == 0 || batch == Dim(0)) return a;
  const Blocks blocks(n);
  const std::int64_t size = blocks.size, whole = blocks.padded();
  const Tensor t = padded(a, whole);
  if (blocks.count == 1) return mirrored(cholesky_of_block(t).a).slice(1, 0, n).slice(2, 0, n);
  const auto step = [&](const std::vector<Tensor>& s, const std::vector<Tensor>&) -> Scanned {
    const Pair first = cholesky_of_block(s[0].slice(1, 0, size).slice(2, 0, size));
    const Tensor below = matmul(s[0].slice(1, size, whole).slice(2, 0, size), mirrored(first.b));
    const Tensor rest =
        prim::add(s[0].slice(1, size, whole).slice(2, size, whole), neg(matmul(below, mirrored(below))));
    return {.state = {rest.pad(1, 0, size).pad(2, 0, size)}, .ys = {concat({mirrored(first.a), below}, 1)}};
  };
  // [count, b, whole, size]: each block's columns, shifted so that they start at the diagonal
  const Tensor panels = loop(step, {t}, {}, blocks.count).ys[0];
  const Dim row = Dim::index(2, whole), block = Dim::index(0, blocks.count);
  const Tensor placed = prim::gather(panels, t.graph().index(panels.shape(), row - block * Dim(size)), 2);
  return tril(placed.permute({1, 2, 0, 3}).reshape({batch, whole, whole})).slice(1, 0, n).slice(2, 0, n);
}

// I. Murray, "Differentiation of the Cholesky decomposition" (2016): L^-T P L^-1, where P is the lower half of L^T G
// with a halved diagonal; symmetrised as in PyTorch.
std::vector<Tensor> vjp_of_cholesky(const VjpCall& c) {
  const Tensor l = c.y(), m = tril(matmul(mirrored(l), c.g()));
  const int r = l.rank();
  const Dim i = Dim::index(r - 2, l.extent(-2)), j = Dim::index(r - 1, l.extent(-1));
  const Tensor half = prim::where(mask(m, less(i, j + 1) * less(j, i + 1)), prim::mul(m, number_like(m, 0.5)), m);
  const Tensor left = linalg::solve_triangular(mirrored(l), half, true);
  const Tensor d = linalg::solve_triangular(l, left, false, false);
  return {prim::mul(prim::add(d, mirrored(d)), number_like(d, 0.5))};
}

}  // namespace

Tensor cholesky(Operand a, bool upper) {
  const OpScope scope("cholesky", a.at);
  LC_RETURN_IF_HALF(a, cholesky(a, upper));
  if (upper) return mirrored(cholesky(mirrored(a)));
  const Matrix m = square(a, "cholesky");
  const Tensor both = prim::add(tril(m.t), mirrored(tril(m.t, -1)));
  const Tensor y = prim::contiguous(with_batch(cholesky_of(both), m.batch));
  return with_vjp(y, {a}, vjp_of_cholesky);
}

Tensor cholesky_solve(Operand b, Operand l, bool upper) {
  const OpScope scope("cholesky_solve", b.at);
  LC_RETURN_IF_EITHER_HALF(b, l, cholesky_solve(b, l, upper));
  const Tensor first = linalg::solve_triangular(upper ? mirrored(l) : l.tensor, b, false);
  return linalg::solve_triangular(upper ? l.tensor : mirrored(l), first, true);
}

Tensor cholesky_inverse(Operand l, bool upper) {
  const OpScope scope("cholesky_inverse", l.at);
  LC_RETURN_IF_HALF(l, cholesky_inverse(l, upper));
  const Matrix m = square(l, "cholesky_inverse");
  const Tensor one = with_batch(blocks::identity(m.t, m.rows), m.batch);
  return cholesky_solve(one, l, upper);
}

}  // namespace lc
