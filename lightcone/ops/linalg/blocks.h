// Shared by the factorisations: matrices as [batch, rows, columns], and operations on blocks.
#pragma once

#include <string_view>

#include "lightcone/ops/internal.h"
#include "lightcone/ops/linalg/linalg.h"
#include "lightcone/ops/loop.h"

namespace lc::blocks {

using lc::detail::neg;
using lc::detail::number_like;

inline constexpr std::int64_t kBlock = 32;  // a power of two

// A floating matrix of known extents as [batch, rows, columns].
struct Matrix {
  Tensor t;
  Shape batch;
  std::int64_t rows, columns;
};
Matrix matrix(const Tensor& a, std::string_view op);
Matrix square(const Tensor& a, std::string_view op);
Tensor with_batch(const Tensor& t, const Shape& batch);  // restores the batch axes

// Block size and number of blocks for a matrix of n rows.
struct Blocks {
  std::int64_t size, count;
  explicit Blocks(std::int64_t n);
  std::int64_t padded() const { return size * count; }
};

// Returns the index of each element along an axis of the shape, as i32.
Tensor place(const Tensor& t, int axis, const Shape& shape);
// True where place == number.
Tensor same(const Tensor& place, const Tensor& number);
// True where place > number.
Tensor above(const Tensor& place, const Tensor& number);
Tensor whole_of(const Tensor& number, const Shape& shape);  // expands a number to a shape
// Evaluates `expression` over i0, i1, ... in the shape of t; true where it is not 0.
Tensor mask(const Tensor& t, const Dim& expression);
Tensor identity(const Tensor& like, std::int64_t n);  // [batch of like, n, n]
// Pads t [b, n, n] to [b, to, to] with ones on the new diagonal.
Tensor padded(const Tensor& t, std::int64_t to);

// Inverts lower triangles [.., n, n] for n a power of two; ignores elements above the diagonal. Works on blocks of 1,
// 2, 4, ...: inv([A 0; C B]) = [inv(A) 0; -inv(B) C inv(A), inv(B)].
Tensor inverse_of_lower(const Tensor& t, bool unit);

// Solves L X = B for the lower triangle of l [b, n, n] and b [b, n, k].
Tensor solve_lower(const Tensor& l, const Tensor& b, bool unit);
// Solves U X = B for the upper triangle of u.
Tensor solve_upper(const Tensor& u, const Tensor& b, bool unit);
inline Tensor mirrored(const Tensor& t) { return t.transpose(-1, -2); }

// Brings [.., n, n] and [.., n, k] to one batch shape and type. Throws Error if they do not fit.
lc::detail::Pair matched(const Operand& a, const Operand& b, const char* op);

// A scan that does not keep its states for a derivative.
Scanned loop(const ScanBody& f, std::vector<Tensor> state, std::vector<Tensor> xs, std::int64_t length,
             bool reverse = false);

}  // namespace lc::blocks
