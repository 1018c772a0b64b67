// Eigenvalues of symmetric matrices, and singular values, by Jacobi rotations.
//
// A step rotates all pairs of columns (k, k + half) at once. Then the columns move like the players of a round-robin
// tournament, so that a sweep of n - 1 steps meets every pair and restores the order (R. P. Brent and F. T. Luk, "The
// solution of singular-value and symmetric eigenvalue problems on multiprocessor arrays", 1985). Sweeps repeat until
// all rotations vanish, typically six to ten times.
#include <algorithm>
#include <cmath>

#include "lightcone/composites/composites.h"
#include "lightcone/ops/linalg/blocks.h"

namespace lc {
using namespace detail;
using namespace blocks;

namespace {

constexpr std::int64_t kMostSweeps = 20;  // for matrices that do not converge, e.g. with NaN

double epsilon(DType t) { return t == DType::F64 ? 0x1p-52 : 0x1p-23; }

// Cosine and sine of the smaller rotation that diagonalises [app apq; apq aqq]; the identity where `still`.
struct Rotation {
  Tensor c, s;
};
Rotation rotation(const Tensor& app, const Tensor& aqq, const Tensor& apq, const Tensor& still) {
  const Tensor tau = (aqq - app) / (where(still, 1.0, apq) * 2.0);
  const Tensor size = reciprocal(abs(tau) + sqrt(tau * tau + 1.0));
  const Tensor t = where(still, 0.0, where(lt(tau, 0.0), size * -1.0, size));
  const Tensor c = rsqrt(t * t + 1.0);
  return {c, t * c};
}

// Rotates pairs of rows (axis 1) or columns (axis 2) of t [b, m, n] by r [b, half].
Tensor rotated(const Tensor& t, const Rotation& r, int axis) {
  const Dim half = t.extent(axis) / 2;
  const Tensor p = t.slice(axis, 0, half), q = t.slice(axis, half, half * 2);
  const Tensor c = r.c.unsqueeze(3 - axis), s = r.s.unsqueeze(3 - axis);
  return concat({p * c - q * s, p * s + q * c}, axis);
}

// The next round of the tournament: the first column stays, the others rotate.
Tensor moved(const Tensor& t, int axis) {
  const std::int64_t n = *t.extent(axis).constant(), half = n / 2;
  if (half < 2) return t;
  const auto part = [&](std::int64_t from, std::int64_t to) { return t.slice(axis, from, to); };
  std::vector<Tensor> parts{part(0, 1), part(half, half + 1)};
  if (half > 2) parts.push_back(part(1, half - 1));
  parts.insert(parts.end(), {part(half + 1, n), part(half - 1, half)});
  return concat(parts, axis);
}

// Runs `step` for every round of a sweep, and sweeps while `go_on(state)`.
std::vector<Tensor> sweeps(const ScanBody& step, const WhileCondition& go_on, std::vector<Tensor> state,
                           std::int64_t n) {
  const auto sweep = [&](const std::vector<Tensor>& s) { return loop(step, s, {}, n - 1).state; };
  return while_loop(go_on, sweep, std::move(state), kMostSweeps);
}

// A matrix divided by its largest magnitude, so that squares neither overflow nor underflow. `poison` is 0, or NaN if
// the matrix is not finite.
struct Scaled {
  Tensor t, by, poison;  // by and poison [b, 1, 1]
};
Scaled scaled(const Tensor& t) {
  const Tensor most = amax(abs(t), {1, 2}, true), by = where(gt(most, 0.0), most, 1.0);
  return {t / by, by, sum(t * 0.0, {1, 2}, true)};
}

Tensor sum_of_squares(const Tensor& t) { return sum(t * t, {1, 2}); }
Tensor columns_of(const Tensor& t, const Tensor& order) {  // permutes columns of t [b, m, n] by order [b, n]
  return prim::gather(t, order.unsqueeze(1).expand(t.shape()), 2);
}

struct Eigen {
  Tensor values, vectors;
};
// Eigenvalues [b, n], ascending, and eigenvectors [b, n, n] of symmetric a [b, n, n].
Eigen eigen(const Tensor& a, std::int64_t n) {
  if (n == 0) return {a.reshape({a.extent(0), 0}), a};
  const Scaled m = scaled(a);
  Tensor x = m.t;
  const std::int64_t even = n + n % 2, half = even / 2;
  if (even != n) {  // adds a row and column whose eigenvalue exceeds all others; it is dropped at the end
    const Tensor last = mask(x.pad(1, 0, 1).pad(2, 0, 1),
                             less(Dim(n - 1), Dim::index(1, even)) * less(Dim(n - 1), Dim::index(2, even)));
    const Tensor above = amax(sum(abs(x), {2}, true), {1}, true) * 1.5 + 1.0;
    x = where(last, above, x.pad(1, 0, 1).pad(2, 0, 1));
  }
  const Tensor allowed = sum_of_squares(m.t) * (epsilon(a.dtype()) * epsilon(a.dtype()) * static_cast<double>(n));
  const auto step = [&](const std::vector<Tensor>& s, const std::vector<Tensor>&) -> Scanned {
    const auto block = [&](std::int64_t i, std::int64_t j) {
      return diagonal(s[0].slice(1, i, i + half).slice(2, j, j + half), 0, 1, 2);
    };
    const Tensor apq = block(0, half);
    const Rotation r = rotation(block(0, 0), block(half, half), apq, eq(apq, 0.0));
    const Tensor next = rotated(rotated(s[0], r, 2), r, 1);
    return {.state = {moved(moved(next, 1), 2), moved(rotated(s[1], r, 2), 2)}, .ys = {}};
  };
  const auto go_on = [&](const std::vector<Tensor>& s) {
    const Tensor on = mask(
        s[0], less(Dim::index(1, even), Dim::index(2, even) + 1) * less(Dim::index(2, even), Dim::index(1, even) + 1));
    return any(gt(sum_of_squares(where(on, 0.0, s[0])), allowed));
  };
  const std::vector<Tensor> done = sweeps(step, go_on, {x, identity(x, even)}, even);
  const Tensor found = diagonal(done[0], 0, 1, 2), order = argsort(found, 1);
  const Tensor values = prim::gather(found, order, 1).slice(1, 0, n), vectors = columns_of(done[1], order);
  return {values * m.by.squeeze(2) + m.poison.squeeze(2), vectors.slice(1, 0, n).slice(2, 0, n) + m.poison};
}

// The SVD of a [b, m, n], m >= n: U [b, m, n] or, if full, [b, m, m]; S [b, n] descending; V [b, n, n]. One-sided
// Jacobi: columns are rotated until they are orthogonal (M. R. Hestenes, "Inversion of matrices by biorthogonalization
// and related results", 1958).
struct Singular {
  Tensor u, s, v;
};
Singular singular(const Tensor& a, std::int64_t m, std::int64_t n, bool full) {
  const Dim batch = a.extent(0);
  if (n == 0) return {full ? identity(a, m) : a, a.reshape({batch, 0}), a.reshape({batch, 0, 0})};
  const Scaled x = scaled(a);
  const std::int64_t even = n + n % 2, half = even / 2;
  // If the product of two norms is below the rounding error of the largest, their angle is meaningless.
  const Tensor least = sum_of_squares(x.t).unsqueeze(1) * epsilon(a.dtype()) + 1e-37;
  const auto step = [&](const std::vector<Tensor>& s, const std::vector<Tensor>&) -> Scanned {
    const Tensor p = s[0].slice(2, 0, half), q = s[0].slice(2, half, even);
    const Tensor pp = sum(p * p, {1}), qq = sum(q * q, {1}), pq = sum(p * q, {1});
    const Tensor angle = abs(pq) / maximum(sqrt(pp) * sqrt(qq), least.expand(pp.shape()));
    const Rotation r = rotation(pp, qq, pq, eq(pq, 0.0));
    return {.state = {moved(rotated(s[0], r, 2), 2), moved(rotated(s[1], r, 2), 2), maximum(s[2], amax(angle, {1}))},
            .ys = {}};
  };
  const double enough = epsilon(a.dtype()) * std::sqrt(static_cast<double>(m));
  const auto go_on = [&](const std::vector<Tensor>& s) { return any(gt(s[2], enough)); };
  // the largest angle is reset to 0 before each sweep
  const auto sweep = [&](const std::vector<Tensor>& s) {
    return loop(step, {s[0], s[1], s[2] * 0.0}, {}, even - 1).state;
  };
  const Tensor begun = x.t.pad(2, 0, even - n);
  const std::vector<Tensor> done =
      while_loop(go_on, sweep, {begun, identity(a, even), full_like(x.by.reshape({batch}), 1)}, kMostSweeps);
  // The column added for an even count sorts last, after columns of length 0.
  const Tensor lengths = sqrt(sum(done[0] * done[0], {1}));
  const Tensor added = even == n ? lengths * 0.0 : abs(done[1].slice(1, n, even).squeeze(1));
  const Tensor order = argsort(where(gt(added, 0.5), -1.0, lengths), 1, true);
  const Tensor s = prim::gather(lengths, order, 1).slice(1, 0, n),
               v = columns_of(done[1], order).slice(1, 0, n).slice(2, 0, n);
  // U is the columns divided by their lengths, completed to a basis where these are 0, by QR of orthogonal columns.
  const Tensor g = columns_of(done[0], order).slice(2, 0, n), wide = full ? g.pad(2, 0, m - n) : g;
  const linalg::Qr f = linalg::qr(Operand(wide));
  const Tensor u =
      f.q * where(lt(diagonal(f.r, 0, 1, 2), 0.0), -1.0, full_like(a.slice(1, 0, 1).slice(2, 0, 1), 1).squeeze(2))
                .unsqueeze(1);
  return {u + x.poison, s * x.by.squeeze(2) + x.poison.squeeze(2), v + x.poison};
}

// 1 / (b_j - a_i) off the diagonal, and 0 on it; a and b are [b, n].
Tensor one_over_differences(const Tensor& a, const Tensor& b) {
  const Tensor d = b.unsqueeze(1) - a.unsqueeze(2);
  const Tensor on = identity(d, *a.extent(1).constant());
  return (1.0 - on) / (d + on);
}

Tensor skew(const Tensor& t) { return t - mirrored(t); }
Tensor diagonal_of(const Tensor& t) {  // [b, n] to a diagonal matrix [b, n, n]
  return identity(t, *t.extent(1).constant()) * t.unsqueeze(1);
}

// PyTorch's eigh_backward(), after C. Mike Giles, "Collected matrix derivative results for forward and reverse mode
// algorithmic differentiation", 2008.
Tensor vjp_of_eigen(const Eigen& y, const Eigen& g) {
  const Tensor turning = skew(matmul(mirrored(y.vectors), g.vectors)) * 0.5;
  const Tensor inside = turning * one_over_differences(y.values, y.values) + diagonal_of(g.values);
  return matmul(matmul(y.vectors, inside), mirrored(y.vectors));
}
// The derivative of A = U S V^T for its first k columns (J. Townsend, "Differentiating the singular value
// decomposition", 2016).
Tensor vjp_of_singular(const Singular& y, const Singular& g) {
  const Tensor e = one_over_differences(y.s * y.s, y.s * y.s), columns = y.s.unsqueeze(1), rows = y.s.unsqueeze(2);
  const Tensor left = skew(matmul(mirrored(y.u), g.u)) * e * columns,
               right = rows * skew(matmul(mirrored(y.v), g.v)) * e;
  Tensor result = matmul(matmul(y.u, left + right + diagonal_of(g.s)), mirrored(y.v));
  // the components of U and V outside the spaces spanned by A = U S V^T
  const auto beside = [](const Tensor& basis, const Tensor& t) {
    return t - matmul(basis, matmul(mirrored(basis), t));
  };
  result = result + matmul(beside(y.u, g.u / columns), mirrored(y.v));
  return result + matmul(y.u, mirrored(beside(y.v, g.v / columns)));
}

// Concatenates several results into [b, ..], because they share one derivative.
Tensor joined(const std::vector<Tensor>& parts) {
  std::vector<Tensor> flat;
  for (const Tensor& t : parts)
    flat.push_back(t.reshape({t.extent(0), *product(t.shape()).constant() / *t.extent(0).constant()}));
  return prim::contiguous(concat(flat, 1));
}
std::vector<Tensor> parted(const Tensor& both, const std::vector<Shape>& shapes) {
  std::vector<Tensor> parts;
  std::int64_t at = 0;
  for (Shape s : shapes) {
    const std::int64_t n = *product(s).constant();
    s.insert(s.begin(), both.extent(0));
    parts.push_back(both.slice(1, at, at + n).reshape(s));
    at += n;
  }
  return parts;
}

}  // namespace

namespace linalg {

Eigh eigh(Operand a, std::string_view uplo) {
  const OpScope scope("eigh", a.at);
  if (uplo != "L" && uplo != "U") throw Error("eigh", str_cat("the triangle is \"L\" or \"U\", not \"", uplo, "\""));
  if (const DType half = a->dtype(); is_narrow(half)) {
    const Eigh wide = eigh(Operand(prim::cast(a, DType::F32), a.at), uplo);
    return {prim::cast(wide.eigenvalues, half), prim::cast(wide.eigenvectors, half)};
  }
  const Matrix given = square(a, "eigh");
  if (given.t.extent(0) == Dim(0)) return {with_batch(given.t.reshape({0, given.rows}), given.batch), a.tensor};
  const Tensor lower = uplo == "L" ? given.t : mirrored(given.t);
  const Eigen found = eigen(tril(lower) + mirrored(tril(lower, -1)), given.rows);
  const std::vector<Shape> shapes{{given.rows}, {given.rows, given.rows}};
  const Tensor both = joined({found.values, found.vectors});
  with_vjp(both, {given.t}, [shapes](const VjpCall& c) -> std::vector<Tensor> {
    const auto y = parted(c.y(), shapes), g = parted(c.g(), shapes);
    return {vjp_of_eigen({y[0], y[1]}, {g[0], g[1]})};
  });
  const auto parts = parted(both, shapes);
  return {with_batch(parts[0], given.batch), with_batch(parts[1], given.batch)};
}
Tensor eigvalsh(Operand a, std::string_view uplo) { return eigh(a, uplo).eigenvalues; }

Svd svd(Operand a, bool full_matrices) {
  const OpScope scope("svd", a.at);
  if (const DType half = a->dtype(); is_narrow(half)) {
    const Svd wide = svd(Operand(prim::cast(a, DType::F32), a.at), full_matrices);
    return {prim::cast(wide.u, half), prim::cast(wide.s, half), prim::cast(wide.vh, half)};
  }
  const Matrix given = matrix(a, "svd");
  const std::int64_t m = given.rows, n = given.columns, k = std::min(m, n);
  const std::int64_t mu = full_matrices ? m : k, nv = full_matrices ? n : k;
  if (given.t.extent(0) == Dim(0))
    return {with_batch(full(a->graph(), {0, m, mu}, 0, a->dtype()), given.batch),
            with_batch(full(a->graph(), {0, k}, 0, a->dtype()), given.batch),
            with_batch(full(a->graph(), {0, nv, n}, 0, a->dtype()), given.batch)};
  Singular f = singular(m >= n ? given.t : mirrored(given.t), std::max(m, n), k, full_matrices);
  if (m < n) std::swap(f.u, f.v);
  const std::vector<Shape> shapes{{m, mu}, {k}, {n, nv}};
  const Tensor all = joined({f.u, f.s, f.v});
  with_vjp(all, {given.t}, [shapes, k](const VjpCall& c) -> std::vector<Tensor> {
    const auto of = [&](const Tensor& t) {
      const auto parts = parted(t, shapes);
      return Singular{parts[0].slice(2, 0, k), parts[1], parts[2].slice(2, 0, k)};
    };
    return {vjp_of_singular(of(c.y()), of(c.g()))};
  });
  const auto parts = parted(all, shapes);
  return {with_batch(parts[0], given.batch), with_batch(parts[1], given.batch),
          with_batch(mirrored(parts[2]), given.batch)};
}
Tensor svdvals(Operand a) { return svd(a, false).s; }

namespace {
// The threshold for nonzero singular values, as in PyTorch: rtol times the largest, [.., 1].
Tensor threshold(const Tensor& s, const Operand& a, std::optional<double> rtol) {
  const double most = static_cast<double>(std::max(*a->extent(-1).constant(), *a->extent(-2).constant()));
  const double by = rtol.value_or(most * epsilon(a->dtype()));
  return s.extent(-1) == Dim(0) ? s : s.slice(-1, 0, 1) * by;
}
}  // namespace

Tensor pinv(Operand a, std::optional<double> rtol) {
  const OpScope scope("pinv", a.at);
  LC_RETURN_IF_HALF(a, pinv(a, rtol));
  const Svd f = svd(a, false);
  const Tensor s = f.s, limit = threshold(s, a, rtol).expand(s.shape());
  const Tensor inverse = where(gt(s, limit), reciprocal(where(gt(s, limit), s, 1.0)), s * 0.0);
  const Tensor y = prim::contiguous(matmul(mirrored(f.vh) * inverse.unsqueeze(-2), mirrored(f.u)));
  // G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
  // variables separate", 1973
  return with_vjp(y, {a}, [](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor x = c.x(), p = c.y(), pt = mirrored(p), gt = mirrored(c.g());
    const Tensor left = matmul(gt, matmul(p, pt)), right = matmul(matmul(pt, p), gt);
    const Tensor through = matmul(matmul(pt, c.g()), pt);
    return {left - matmul(x, matmul(p, left)) + right - matmul(matmul(right, p), x) - through};
  });
}

Tensor matrix_rank(Operand a, std::optional<double> rtol) {
  const OpScope scope("matrix_rank", a.at);
  const Tensor wide = is_narrow(a->dtype()) ? prim::cast(a, DType::F32) : a.tensor, s = svdvals(Operand(wide, a.at));
  return sum(to(gt(s, threshold(s, Operand(wide, a.at), rtol).expand(s.shape())), DType::I64), {-1});
}

Tensor cond(Operand a) {
  const OpScope scope("cond", a.at);
  LC_RETURN_IF_HALF(a, cond(a));
  const Tensor s = svdvals(a);
  if (s.extent(-1) == Dim(0)) throw Error("cond", str_cat(str(a->shape()), " has no singular value"));
  return (s.slice(-1, 0, 1) / s.slice(-1, -1, s.extent(-1))).squeeze(-1);
}

}  // namespace linalg

}  // namespace lc
