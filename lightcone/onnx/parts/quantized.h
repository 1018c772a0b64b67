// Numbers as small integers times a scale: what the operators of quantised models share.
//
//   y = saturate(round(x / scale) + zero),  x = (y - zero) * scale
#pragma once

#include "lightcone/onnx/read/call.h"

namespace lc::onnx {

// Spreads a scale or zero point over a tensor of this shape. It is a scalar, has one element for each index of `axis`,
// or, with a block size, one for each block of neighbours along `axis`.
Tensor spread_scale(Call& c, const Tensor& t, const Shape& shape, int axis, std::int64_t block = 0);

// Rounds x / scale to the nearest integer, ties to even, adds the zero point (undefined: 0) and saturates. The operands
// broadcast. Throws Error for a type that no quantised tensor has.
Value quantized(Call& c, const Tensor& x, const Tensor& scale, const Tensor& zero, ElementType type);
// The same for numbers that were divided by the scale already.
Value saturated(Call& c, const Tensor& x, const Tensor& zero, ElementType type);
// (x - zero) * scale, computed in f32.
Tensor dequantized(Call& c, const Tensor& x, const Tensor& scale, const Tensor& zero, DType to);

// True if every element is known to be 0 when the model is read.
bool known_zero(Call& c, const Tensor& t);
// The type in the model of a tensor's elements: 4-bit integers are bytes in the graph.
ElementType element_type(const Value& v);

// The exact product of two tensors of bytes (i8 or u8), minus their zero points, as i32: torch.matmul's shapes. A zero
// point is undefined (0), a scalar, [m] for rows of a, [n] for columns of b, or broadcasts as the operand does.
// Unsigned bytes are shifted to signed ones, so that devices multiply bytes; the rest is sums of rows and columns.
Tensor byte_product(Call& c, const Tensor& a, const Tensor& a_zero, const Tensor& b, const Tensor& b_zero);
// A vector of numbers for the rows of a product's result as [m, 1]; anything else as it is.
Tensor by_row(const Tensor& t);

// The range of x with 0 in it as [0, 255]: u8 codes, and an f32 scale and u8 zero point for all of them.
struct DynamicBytes {
  Tensor codes, scale, zero;
};
DynamicBytes dynamic_bytes(Call& c, const Tensor& x);

// QLinearConv: x, its scale and zero point, the filters, theirs, the result's, and a bias in units of both scales. The
// products are summed in f32, which is exact up to 2^24.
Values quantized_conv(Call& c, bool channels_last);

}  // namespace lc::onnx
