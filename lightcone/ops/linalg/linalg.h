// Linear algebra: torch.mm and its relatives, and torch.linalg.
//
// Operands promote as those of matmul() do; halves are computed in f32 and rounded once. Every axis before a matrix is
// a batch axis, and batches broadcast.
//
// Factorisations (cholesky, solve, inv, det, qr ...) take floating matrices whose extents are numbers: symbolic ones
// are an Error. They are blocked: products carry the work, and one loop (ops/loop.h) goes over the blocks, so that the
// graph does not grow with the matrix. What depends on data never throws: where torch raises an error because a matrix
// is singular or not positive definite, the result has NaN or infinities in it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lightcone/ops/ops.h"

namespace lc {

// ---- products ---------------------------------------------------------------------------------
Tensor mm(Operand a, Operand b);     // [n, k] x [k, m] -> [n, m]
Tensor bmm(Operand a, Operand b);    // [b, n, k] x [b, k, m] -> [b, n, m]
Tensor mv(Operand a, Operand v);     // [n, k] x [k] -> [n]
Tensor dot(Operand a, Operand b);    // [n] x [n] -> []
Tensor vdot(Operand a, Operand b);   // the same: nothing here is complex
Tensor inner(Operand a, Operand b);  // [.., k] x [.., k] -> the axes of a, then those of b, without the last ones
// beta * input + alpha * product. `input` broadcasts to the result; with beta = 0 it is not read, and its NaN are not
// seen. Of integers beta and alpha are whole.
Tensor addmm(Operand input, Operand a, Operand b, double beta = 1, double alpha = 1);    // mm(a, b)
Tensor addmv(Operand input, Operand a, Operand v, double beta = 1, double alpha = 1);    // mv(a, v)
Tensor addr(Operand input, Operand a, Operand b, double beta = 1, double alpha = 1);     // outer(a, b)
Tensor baddbmm(Operand input, Operand a, Operand b, double beta = 1, double alpha = 1);  // bmm(a, b)
Tensor addbmm(Operand input, Operand a, Operand b, double beta = 1, double alpha = 1);   // sum(bmm(a, b), {0})
// The product of matrices in the order of least work (of numbers; symbolic extents are multiplied from the left). The
// first and the last may be vectors: torch.linalg.multi_dot.
Tensor chain_matmul(const std::vector<Tensor>& matrices, const Tensor::At& at = Tensor::At::current());
// Sums over the last `dims` axes of a and the first of b, or over axes_a[k] with axes_b[k].
Tensor tensordot(Operand a, Operand b, int dims = 2);
Tensor tensordot(Operand a, Operand b, Axes axes_a, Axes axes_b);
// Every element of a times all of b: [m, n] and [p, q] -> [m p, n q]. The lower rank gets leading axes of 1.
Tensor kron(Operand a, Operand b);
// The vector product along an axis of 3; without an axis that is the first of 3 elements. Operands broadcast.
Tensor cross(Operand a, Operand b);
Tensor cross(Operand a, Operand b, int axis);
// [.., p, m] and [.., r, m] -> [.., p, r]: the p-norm of each row of a minus each of b. p = 0 counts differences. The
// derivative is 0 where two rows are the same. Error for p < 0.
Tensor cdist(Operand a, Operand b, double p = 2);
Tensor matrix_power(Operand a, int n);  // [.., k, k]; 0 is the identity, negative powers are those of inv(a)

// ---- norms ------------------------------------------------------------------------------------
// torch.linalg.vector_norm over `axes` (none given: all). The derivative of p > 1 is 0 where the norm is 0.
Tensor vector_norm(Operand a, double p = 2, Axes axes = {}, bool keepdim = false);
// torch.linalg.matrix_norm of the matrices that two axes span: "fro" (the root of all squares) or 1, -1, inf and -inf
// (the largest or smallest sum of magnitudes of a column, of a row), 2, -2 and "nuc" (the largest, the smallest and the
// sum of the singular values).
Tensor matrix_norm(Operand a, std::string_view ord = "fro", Axes axes = {-2, -1}, bool keepdim = false);
Tensor matrix_norm(Operand a, double ord, Axes axes = {-2, -1}, bool keepdim = false);

// ---- factorisations ---------------------------------------------------------------------------
// The lower L of A = L L^T, or the upper U of A = U^T U; only that triangle of [.., n, n] is read. The derivative is
// symmetric. What is not positive definite gives NaN.
Tensor cholesky(Operand a, bool upper = false);
// X with A X = B for a Cholesky factor: A = L L^T of a lower L, or U^T U of an upper one. [.., n, k], [.., n, n].
Tensor cholesky_solve(Operand b, Operand l, bool upper = false);
Tensor cholesky_inverse(Operand l, bool upper = false);  // A^-1

Tensor inverse(Operand a);  // [.., n, n]: linalg::inv
Tensor det(Operand a);      // [.., n, n] -> [..]; 0 of a singular matrix, whose derivative is NaN
Tensor logdet(Operand a);   // NaN of a negative determinant
struct SignLogDet {
  Tensor sign, logabsdet;
};
SignLogDet slogdet(Operand a);  // det = sign exp(logabsdet); 0 and -infinity of a singular matrix

namespace linalg {
using lc::cholesky;
using lc::det;
using lc::matrix_norm;
using lc::matrix_power;
using lc::slogdet;
using lc::vector_norm;

// X with A X = B for a triangular A [.., n, n] and B [.., n, k], or with X A = B for left = false and B [.., k, n].
// Nothing beyond the triangle is read, nor the diagonal of a unitriangular one. Zeros on the diagonal give NaN and
// infinities. torch.linalg.solve_triangular(A, B, upper=..., left=True, unitriangular=False).
Tensor solve_triangular(Operand a, Operand b, bool upper, bool left = true, bool unitriangular = false);

// X with A X = B (left) or X A = B, by factors with partial pivoting. A [.., n, n]; B [.., n, k] ([.., k, n] when not
// left), or vectors: [n], or the shape of A without its last axis. A singular A gives NaN and infinities.
Tensor solve(Operand a, Operand b, bool left = true);
Tensor inv(Operand a);  // [.., n, n]

struct Lu {
  Tensor lu;      // [.., n, n]: L below the diagonal, whose ones are not stored, and U
  Tensor pivots;  // i32 [.., n]: row k was exchanged with row pivots[k], counted from 1 as LAPACK does
};
Lu lu_factor(Operand a);                                 // square matrices
Tensor lu_solve(Operand lu, Operand pivots, Operand b);  // b [.., n, k]; torch.linalg.lu_solve(LU, pivots, B)

struct Qr {
  Tensor q, r;
};
// Q [.., m, k] with orthonormal columns and the upper R [.., k, n] of A [.., m, n], k = min(m, n): mode "reduced". By
// Householder's reflections, with LAPACK's signs: R's diagonal may be negative.
Qr qr(Operand a);
// The least squares solution of A X = B for A [.., m, n] of full rank and B [.., m, k] -> [.., n, k], by qr(); of
// m < n the shortest. Without full rank NaN, infinities or nonsense (torch's default, "gelsy", chooses a solution).
Tensor lstsq(Operand a, Operand b);

struct Eigh {
  Tensor eigenvalues, eigenvectors;
};
// A V = V diag(w) for symmetric A [.., n, n], of which one triangle is read: w [.., n] rises, the columns of V [.., n,
// n] are orthonormal, their signs anybody's. By Jacobi's rotations, which are no products of matrices: meant for tens
// of rows (docs/linear-algebra.md). The derivative of vectors whose eigenvalues are the same is infinite.
Eigh eigh(Operand a, std::string_view uplo = "L");
Tensor eigvalsh(Operand a, std::string_view uplo = "L");

struct Svd {
  Tensor u, s, vh;
};
// A = U diag(S) Vh for A [.., m, n]: S [.., k] falls, k = min(m, n); U [.., m, m] and Vh [.., n, n], or [.., m, k] and
// [.., k, n]. By one-sided Jacobi rotations, as eigh(). The derivative is that of the first k columns of U and rows of
// Vh, and infinite where singular values are the same or 0.
Svd svd(Operand a, bool full_matrices = true);
Tensor svdvals(Operand a);
// The pseudo-inverse [.., n, m] of [.., m, n]; singular values up to rtol times the largest count as 0. Without rtol:
// max(m, n) times the distance of 1 to the next number.
Tensor pinv(Operand a, std::optional<double> rtol = {});
Tensor matrix_rank(Operand a, std::optional<double> rtol = {});  // i64 [..]
Tensor cond(Operand a);                                          // the largest singular value over the smallest

inline Tensor multi_dot(const std::vector<Tensor>& m, const Tensor::At& at = Tensor::At::current()) {
  return chain_matmul(m, at);
}
Tensor vecdot(Operand a, Operand b, int axis = -1);  // the sum of a b over an axis
Tensor cross(Operand a, Operand b, int axis = -1);
}  // namespace linalg

}  // namespace lc
