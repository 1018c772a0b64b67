// Linear algebra: torch.mm and related functions, and torch.linalg.
//
// Operands promote as in matmul(); 16-bit floats are computed in f32 and rounded once. All axes before those of the
// matrix are batch axes, and batches broadcast.
//
// Factorisations (cholesky, solve, inv, det, qr ...) take floating matrices whose extents are numbers; symbolic extents
// throw Error. They are blocked: matrix products do the work in one loop (ops/loop.h) over the blocks, so that the
// graph does not grow with the matrix. Data never causes an Error: if a matrix is singular or not positive definite,
// where PyTorch raises an error, the result contains NaN or infinities.
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
Tensor vdot(Operand a, Operand b);   // same as dot(): tensors are real
Tensor inner(Operand a, Operand b);  // [.., k] x [.., k] -> leading axes of a, then of b
// addmm() to addbmm() compute beta * input + alpha * product. `input` broadcasts to the result; with beta = 0 it is not
// read, so its NaNs do not propagate. Throws Error for integers if beta or alpha is not whole.
Tensor addmm(Operand input, Operand a, Operand b, double beta = 1, double alpha = 1);    // mm(a, b)
Tensor addmv(Operand input, Operand a, Operand v, double beta = 1, double alpha = 1);    // mv(a, v)
Tensor addr(Operand input, Operand a, Operand b, double beta = 1, double alpha = 1);     // outer(a, b)
Tensor baddbmm(Operand input, Operand a, Operand b, double beta = 1, double alpha = 1);  // bmm(a, b)
Tensor addbmm(Operand input, Operand a, Operand b, double beta = 1, double alpha = 1);   // sum(bmm(a, b), {0})
// Multiplies matrices in the cheapest order (torch.linalg.multi_dot); with symbolic extents, from left to right. The
// first and the last may be vectors.
Tensor chain_matmul(const std::vector<Tensor>& matrices, const Tensor::At& at = Tensor::At::current());
// Sums over the last `dims` axes of a and the first of b, or over axes_a[k] with axes_b[k] (torch.tensordot).
Tensor tensordot(Operand a, Operand b, int dims = 2);
Tensor tensordot(Operand a, Operand b, Axes axes_a, Axes axes_b);
// The Kronecker product: [m, n] and [p, q] -> [m p, n q]. The lower rank gets leading axes of extent 1.
Tensor kron(Operand a, Operand b);
// The cross product along an axis of extent 3, by default the first such axis. Operands broadcast.
Tensor cross(Operand a, Operand b);
Tensor cross(Operand a, Operand b, int axis);
// [.., p, m] and [.., r, m] -> [.., p, r]: the p-norm of each row of a minus each row of b; p = 0 counts differences.
// The derivative is 0 for equal rows. Throws Error if p < 0.
Tensor cdist(Operand a, Operand b, double p = 2);
Tensor matrix_power(Operand a, int n);  // [.., k, k]; 0 gives the identity, negative n powers of inv(a)

// ---- norms ------------------------------------------------------------------------------------

// torch.linalg.vector_norm over `axes` (default: all). For p > 1 the derivative is 0 where the norm is 0.
Tensor vector_norm(Operand a, double p = 2, Axes axes = {}, bool keepdim = false);
// torch.linalg.matrix_norm of the matrices spanned by two axes: "fro" (root of the sum of squares); 1 and -1 (largest,
// smallest absolute column sum); inf and -inf (largest, smallest absolute row sum); 2, -2 and "nuc" (largest, smallest
// and sum of the singular values).
Tensor matrix_norm(Operand a, std::string_view ord = "fro", Axes axes = {-2, -1}, bool keepdim = false);
Tensor matrix_norm(Operand a, double ord, Axes axes = {-2, -1}, bool keepdim = false);

// ---- factorisations ---------------------------------------------------------------------------

// The lower L of A = L L^T, or the upper U of A = U^T U. Reads only that triangle of [.., n, n]. The derivative is
// symmetric. A matrix that is not positive definite gives NaN.
Tensor cholesky(Operand a, bool upper = false);
// Solves A X = B given a Cholesky factor: A = L L^T for a lower L, or U^T U for an upper U; b [.., n, k], l [.., n, n].
Tensor cholesky_solve(Operand b, Operand l, bool upper = false);
Tensor cholesky_inverse(Operand l, bool upper = false);  // inv(A)

Tensor inverse(Operand a);  // [.., n, n]: linalg::inv
Tensor det(Operand a);      // [.., n, n] -> [..]; 0 if singular, with derivative NaN
Tensor logdet(Operand a);   // NaN for a negative determinant
struct SignLogDet {
  Tensor sign, logabsdet;
};
SignLogDet slogdet(Operand a);  // det = sign exp(logabsdet); 0 and -infinity if singular

namespace linalg {
using lc::cholesky;
using lc::det;
using lc::matrix_norm;
using lc::matrix_power;
using lc::slogdet;
using lc::vector_norm;

// Solves A X = B for a triangular A [.., n, n] and B [.., n, k], or X A = B for left = false and B [.., k, n]. Reads
// only the triangle, without the diagonal if unitriangular. Zeros on the diagonal give NaN and infinities.
// torch.linalg.solve_triangular(A, B, upper=..., left=True, unitriangular=False).
Tensor solve_triangular(Operand a, Operand b, bool upper, bool left = true, bool unitriangular = false);

// Solves A X = B (left) or X A = B by LU with partial pivoting. A is [.., n, n]; B is [.., n, k] ([.., k, n] if not
// left), or vectors: [n], or the shape of A without its last axis. A singular A gives NaN and infinities.
Tensor solve(Operand a, Operand b, bool left = true);
Tensor inv(Operand a);  // [.., n, n]

struct Lu {
  Tensor lu;      // [.., n, n]: L below the diagonal, without its unit diagonal, and U
  Tensor pivots;  // i32 [.., n]: row k was swapped with row pivots[k], counted from 1 as in LAPACK
};
Lu lu_factor(Operand a);                                 // for square matrices
Tensor lu_solve(Operand lu, Operand pivots, Operand b);  // b [.., n, k]; torch.linalg.lu_solve(LU, pivots, B)

struct Qr {
  Tensor q, r;
};
// A = Q R for A [.., m, n], mode "reduced": Q [.., m, k] has orthonormal columns and R [.., k, n] is upper triangular,
// k = min(m, n). Uses Householder reflections with LAPACK's signs: R's diagonal may be negative.
Qr qr(Operand a);
// The least squares solution of A X = B for A [.., m, n] of full rank and B [.., m, k] -> [.., n, k], by qr(); for m <
// n the one of least norm. Without full rank it contains NaN, infinities or meaningless numbers (PyTorch's default,
// "gelsy", picks a solution).
Tensor lstsq(Operand a, Operand b);

struct Eigh {
  Tensor eigenvalues, eigenvectors;
};
// A V = V diag(w) for symmetric A [.., n, n], given by one triangle. w [.., n] is ascending; the columns of V [.., n,
// n] are orthonormal with arbitrary signs. Uses Jacobi rotations, which are not matrix products: intended for tens of
// rows (docs/linear-algebra.md). The derivative of eigenvectors is infinite for repeated eigenvalues.
Eigh eigh(Operand a, std::string_view uplo = "L");
// The eigenvalues of eigh().
Tensor eigvalsh(Operand a, std::string_view uplo = "L");

struct Svd {
  Tensor u, s, vh;
};
// A = U diag(S) Vh for A [.., m, n]: S [.., k] is descending, k = min(m, n); U is [.., m, m] and Vh [.., n, n], or [..,
// m, k] and [.., k, n]. Uses one-sided Jacobi rotations, like eigh(). The derivative is that of the first k columns of
// U and rows of Vh; it is infinite if singular values are repeated or 0.
Svd svd(Operand a, bool full_matrices = true);
// The singular values of svd().
Tensor svdvals(Operand a);
// The pseudo-inverse [.., n, m] of [.., m, n]. Singular values up to rtol times the largest count as 0; the default
// rtol is max(m, n) times the distance from 1 to the next number.
Tensor pinv(Operand a, std::optional<double> rtol = {});
Tensor matrix_rank(Operand a, std::optional<double> rtol = {});  // i64 [..]
Tensor cond(Operand a);                                          // largest / smallest singular value

inline Tensor multi_dot(const std::vector<Tensor>& m, const Tensor::At& at = Tensor::At::current()) {
  return chain_matmul(m, at);
}
Tensor vecdot(Operand a, Operand b, int axis = -1);  // sum of a b over an axis
Tensor cross(Operand a, Operand b, int axis = -1);
}  // namespace linalg

}  // namespace lc
