// Shared by the factorisations: matrices as [batch, rows, columns], blocks, and what is done with one block.
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
Tensor with_batch(const Tensor& t, const Shape& batch);  // back again

// The extent of a block of a matrix of n rows, and how many of them there are.
struct Blocks {
  std::int64_t size, count;
  explicit Blocks(std::int64_t n);
  std::int64_t padded() const { return size * count; }
};

// The places along an axis of the shape, i32; which of them are a number, or above it.
Tensor place(const Tensor& t, int axis, const Shape& shape);
Tensor same(const Tensor& place, const Tensor& number);
Tensor above(const Tensor& place, const Tensor& number);
Tensor whole_of(const Tensor& number, const Shape& shape);  // everywhere
// `expression` over i0, i1, ... where it is not 0, as a mask of the shape of t.
Tensor mask(const Tensor& t, const Dim& expression);
Tensor identity(const Tensor& like, std::int64_t n);  // [batch of like, n, n]
// t [b, n, n] as [b, to, to], with ones on the new diagonal.
Tensor padded(const Tensor& t, std::int64_t to);

// The inverse of lower triangles [.., n, n] for n a power of two; what is above the diagonal is not read. Products of
// blocks of 1, 2, 4, ...: inv([A 0; C B]) = [inv(A) 0; -inv(B) C inv(A), inv(B)].
Tensor inverse_of_lower(const Tensor& t, bool unit);

// X with L X = B for the lower triangle of l [b, n, n] and b [b, n, k].
Tensor solve_lower(const Tensor& l, const Tensor& b, bool unit);
Tensor solve_upper(const Tensor& u, const Tensor& b, bool unit);
inline Tensor mirrored(const Tensor& t) { return t.transpose(-1, -2); }

// [.., n, n] and [.., n, k] brought to one batch and one type; an Error where they do not fit.
lc::detail::Pair matched(const Operand& a, const Operand& b, const char* op);

// A scan whose states are not wanted by a derivative.
Scanned loop(const ScanBody& f, std::vector<Tensor> state, std::vector<Tensor> xs, std::int64_t length,
             bool reverse = false);

}  // namespace lc::blocks
