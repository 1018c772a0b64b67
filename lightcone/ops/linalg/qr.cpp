// QR by Householder reflections, and least squares.
//
// A block of reflections is I - V T V^T with an upper triangular T (R. Schreiber and C. Van Loan, "A storage-efficient
// WY representation for products of Householder transformations", 1989): T = inv(I + D U) D of the reflections'
// qr_factors D and the upper half U of V^T V.
#include "lightcone/composites/composites.h"

#include <algorithm>
#include "lightcone/ops/linalg/blocks.h"

namespace lc {
using namespace detail;
using namespace blocks;

namespace {

// Applies reflections to the columns [first, first + size) of a matrix, held in `panel` [b, m, size], one after the
// other, like LAPACK's geqr2: R is on and above the diagonal, the vectors below it; their first elements, 1, are not
// stored.
struct Reflected {
  Tensor packed, tau;  // [b, m, size], [b, size]
};
Reflected reflect(const Tensor& panel, const Tensor& first) {
  const Dim batch = panel.extent(0), m = panel.extent(1), size = panel.extent(2);
  const Tensor row = place(panel, 1, {batch, m, 1}), column = place(panel, 2, {batch, 1, size});
  const auto step = [&](const std::vector<Tensor>& s, const std::vector<Tensor>& x) -> Scanned {
    const Tensor here = prim::add(x[0], first);
    const Tensor own = prim::gather(s[0], whole_of(x[0], {batch, m, 1}), 2), none = full_like(own, 0);
    const Tensor is_here = same(row, here), is_below = above(row, here);
    const Tensor low = prim::where(is_below, own, none);
    const auto sum = [](const Tensor& t) { return prim::sum_reduce(t, 1).unsqueeze(1); };  // [b, 1, .]
    const Tensor squares = sum(prim::mul(low, low)), alpha = sum(prim::where(is_here, own, none));
    const Tensor zero = full_like(alpha, 0), nothing = prim::equal(squares, zero);
    const Tensor length = prim::sqrt(prim::add(prim::mul(alpha, alpha), squares));
    const Tensor beta = prim::where(prim::less_than(alpha, zero), length, neg(length));
    const Tensor tau = prim::where(nothing, zero, prim::div(prim::add(beta, neg(alpha)), beta));
    const Tensor by = prim::where(nothing, zero, prim::recip(prim::add(alpha, neg(beta))));
    const Tensor v = prim::where(is_here, full_like(own, 1), prim::mul(low, by.expand(low.shape())));
    const Shape to = s[0].shape();
    const Tensor along = prim::mul(sum(prim::mul(v.expand(to), s[0])), tau.expand({batch, 1, size}));
    const Tensor rest = prim::add(s[0], neg(prim::mul(v.expand(to), along.expand(to))));
    const Tensor kept =
        prim::where(is_here, prim::where(nothing, alpha, beta).expand(own.shape()), prim::where(is_below, v, own));
    const Tensor next = prim::where(above(column, x[0]).expand(to), rest,
                                    prim::where(same(column, x[0]).expand(to), kept.expand(to), s[0]));
    return {.state = {next}, .ys = {tau.reshape({batch})}};
  };
  const std::int64_t steps = *size.constant();
  const Scanned r = loop(step, {panel}, {place(panel, 0, {steps})}, steps);
  return {r.state[0], r.ys[0].permute({1, 0})};
}

// Computes T for the vectors v [b, m, size] with factors tau [b, size].
Tensor triangle_of(const Tensor& v, const Tensor& tau) {
  const Tensor products = triu(matmul(mirrored(v), v), 1), d = tau.unsqueeze(2).expand(products.shape());
  const Tensor inverse = mirrored(inverse_of_lower(mirrored(prim::mul(d, products)), true));
  return prim::mul(inverse, tau.unsqueeze(1).expand(inverse.shape()));
}

// Computes Q [b, m, k] and R [b, k, n] of [b, m, n].
linalg::Qr qr_factors(const Tensor& a) {
  const std::int64_t m = *a.extent(1).constant(), n = *a.extent(2).constant(), k = std::min(m, n);
  const Dim batch = a.extent(0);
  const Shape of_q{batch, m, k};
  const Dim i = Dim::index(1, m), j = Dim::index(2, k);
  const Tensor start = a.graph().index(of_q, less(i, j + 1) * less(j, i + 1), a.dtype());
  if (k == 0 || batch == Dim(0)) return {start, a.slice(1, 0, k)};
  const Blocks blocks(k);
  const std::int64_t size = blocks.size, width = std::max(n, blocks.padded());
  const Shape columns{batch, m, size}, whole{batch, m, width};
  const auto step = [&](const std::vector<Tensor>& s, const std::vector<Tensor>& x) -> Scanned {
    const Tensor first = x[0], last = lc::detail::add(first, static_cast<double>(size - 1));
    const Tensor row = place(a, 1, columns), own = place(a, 2, columns);
    const Tensor diagonal = prim::add(own, whole_of(first, columns));
    const Reflected p = reflect(prim::gather(s[0], diagonal, 2), first);
    const Tensor v =
        prim::where(prim::less_than(diagonal, row), p.packed, prim::cast(prim::equal(diagonal, row), a.dtype()));
    const Tensor t = triangle_of(v, p.tau);
    const Tensor rest = prim::add(s[0], neg(matmul(v, matmul(mirrored(t), matmul(mirrored(v), s[0])))));
    const Tensor column = place(a, 2, whole);
    const Tensor placed = prim::gather(p.packed, prim::add(column, neg(whole_of(first, whole))), 2);
    const Tensor next = prim::where(above(column, last), rest,
                                    prim::where(prim::less_than(column, whole_of(first, whole)), s[0], placed));
    return {.state = {next}, .ys = {v, t}};
  };
  const Tensor firsts = a.graph().index({blocks.count}, Dim::index(0, blocks.count) * Dim(size), DType::I32);
  const Scanned r = loop(step, {a.pad(2, 0, width - n)}, {firsts}, blocks.count);
  const auto back = [](const std::vector<Tensor>& s, const std::vector<Tensor>& x) -> Scanned {
    return {.state = {prim::add(s[0], neg(matmul(x[0], matmul(x[1], matmul(mirrored(x[0]), s[0])))))}, .ys = {}};
  };
  const Tensor q = loop(back, {start}, {r.ys[0], r.ys[1]}, blocks.count, true).state[0];
  return {q, triu(r.state[0].slice(1, 0, k).slice(2, 0, n))};
}

// Splits [b, m k + k n] into Q and R, which are one tensor because they share one derivative.
linalg::Qr parted(const Tensor& both, std::int64_t m, std::int64_t n) {
  const std::int64_t k = std::min(m, n);
  const Dim batch = both.extent(0);
  return {both.slice(1, 0, m * k).reshape({batch, m, k}), both.slice(1, m * k, m * k + k * n).reshape({batch, k, n})};
}

// S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2010); for m < n applied to
// the first m columns.
Tensor vjp_of_qr(const Tensor& q, const Tensor& r, const Tensor& gq, const Tensor& gr, std::int64_t m, std::int64_t n) {
  const Tensor inside = prim::add(matmul(gr, mirrored(r)), neg(matmul(mirrored(q), gq)));
  if (m >= n) {
    const Tensor upper = triu(inside), symmetric = prim::add(upper, mirrored(triu(inside, 1)));
    return linalg::solve_triangular(mirrored(r), prim::add(gq, matmul(q, symmetric)), false, false);
  }
  const Tensor skew = tril(prim::add(mirrored(inside), neg(inside)), -1);
  const Tensor first = linalg::solve_triangular(mirrored(r.slice(2, 0, m)), matmul(q, skew), false, false);
  return prim::add(first.pad(2, 0, n - m), matmul(q, gr));
}

}  // namespace

namespace linalg {

Qr qr(Operand a) {
  const OpScope scope("qr", a.at);
  if (const DType half = a->dtype(); is_narrow(half)) {
    const Qr wide = qr(Operand(prim::cast(a, DType::F32), a.at));
    return {prim::cast(wide.q, half), prim::cast(wide.r, half)};
  }
  const Matrix given = matrix(a, "qr");
  const std::int64_t m = given.rows, n = given.columns, k = std::min(m, n);
  const Qr f = qr_factors(given.t);
  const Dim batch = given.t.extent(0);
  const Tensor both = prim::contiguous(concat({f.q.reshape({batch, m * k}), f.r.reshape({batch, k * n})}, 1));
  with_vjp(both, {given.t}, [m, n](const VjpCall& c) -> std::vector<Tensor> {
    const Qr y = parted(c.y(), m, n), g = parted(c.g(), m, n);
    return {vjp_of_qr(y.q, y.r, g.q, triu(g.r), m, n)};
  });
  const Qr parts = parted(both, m, n);
  return {with_batch(parts.q, given.batch), with_batch(parts.r, given.batch)};
}

Tensor lstsq(Operand a, Operand b) {
  const OpScope scope("lstsq", a.at);
  LC_RETURN_IF_EITHER_HALF(a, b, lstsq(a, b));
  if (a->rank() < 2 || b->rank() < 2)
    throw Error("lstsq", str_cat("needs matrices, not ", str(a->shape()), " and ", str(b->shape())));
  if (!(a->extent(-2) == b->extent(-2)))
    throw Error("lstsq", str_cat(str(a->shape()), " and ", str(b->shape()), ": their rows differ: ", a->extent(-2),
                                 " vs ", b->extent(-2)));
  const Matrix m = matrix(a, "lstsq");
  if (m.rows >= m.columns) {
    const Qr f = qr(a);
    return solve_triangular(f.r, matmul(mirrored(f.q), b), true);
  }
  const Qr f = qr(mirrored(a));
  return matmul(f.q, solve_triangular(mirrored(f.r), b, false));
}

}  // namespace linalg
}  // namespace lc
