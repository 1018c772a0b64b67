// Quantised tensors: scales and zero points, and products of bytes.
#include "lightcone/onnx/parts/quantized.h"

namespace lc::onnx {
namespace {

// The axis and block size of a scale, and the scale and zero point spread over x.
struct ScaleOperands {
  Tensor scale, zero;  // zero is undefined if it is absent
};
ScaleOperands scale_operands(Call& c, const Tensor& x) {
  const std::int64_t given = c.integer("axis", 1), block = c.integer("block_size", 0);
  if (block < 0) c.refuse("has a negative block size");
  Tensor scale = c.x(1), zero = c.optional(2);
  const bool whole = scale.rank() == 0 || scale.shape() == Shape{1};
  const int axis = whole ? 0 : c.wrap(x.rank() == 1 ? 0 : given, x.rank());
  const std::int64_t blocks = scale.rank() == x.rank() && (x.rank() > 1 || block > 0) && !whole ? block : 0;
  if (zero.defined()) zero = spread_scale(c, zero, x.shape(), axis, blocks);
  return {spread_scale(c, scale, x.shape(), axis, blocks), zero};
}

// The bytes that a dequantised tensor is made of, or null for another type of numbers or blocks.
std::shared_ptr<const Value::Codes> codes_of(Call& c, const Tensor& x, DType to) {
  const bool bytes = (x.dtype() == DType::I8 || x.dtype() == DType::U8) && !is_packed(element_type(c.value(0)));
  const Tensor scale = c.x(1), zero = c.optional(2);
  if (!bytes || to != DType::F32 || scale.dtype() != DType::F32 || c.integer("block_size", 0) != 0) return nullptr;
  const auto number = [](const Tensor& t) { return t.shape() == Shape{1} ? t.reshape({}) : t; };
  if (number(scale).rank() > 1) return nullptr;
  const Tensor shift = zero.defined() && !known_zero(c, zero) ? number(zero) : Tensor();
  const int axis = number(scale).rank() == 0 ? 0 : c.wrap(x.rank() == 1 ? 0 : c.integer("axis", 1), x.rank());
  return std::make_shared<const Value::Codes>(Value::Codes{x, number(scale), shift, axis});
}

Values quantize(Call& c) {
  const Tensor x = c.x();
  ElementType type = c.element_type("output_dtype");
  if (c.has(2)) type = element_type(c.value(2));
  else if (type == ElementType::Undefined) type = ElementType::Uint8;
  if (!c.flag("saturate", true) && type == ElementType::Float8E4M3FN)
    c.refuse("saturate=0 gives NaN where this library's conversion saturates");
  const ScaleOperands s = scale_operands(c, x);
  const auto precision = c.element_type("precision");
  if (precision == ElementType::Undefined) return {quantized(c, x, s.scale, s.zero, type)};
  const DType in = c.dtype("precision", precision);
  return {quantized(c, x.to(in), s.scale.to(in), s.zero, type)};
}
Values dequantize_(Call& c) {
  const Tensor x = c.x();
  const ScaleOperands s = scale_operands(c, x);
  const auto given = c.element_type("output_dtype");
  const DType to = given == ElementType::Undefined ? s.scale.dtype() : c.dtype("output_dtype", given);
  Value v(dequantized(c, x, s.scale, s.zero, to));
  v.codes = codes_of(c, x, to);
  return {v};
}

Values dynamic_quantize(Call& c) {
  const DynamicBytes d = dynamic_bytes(c, c.x());
  return {d.codes, d.scale, d.zero};
}

Values matmul_integer(Call& c) { return {byte_product(c, c.x(0), c.optional(2), c.x(1), c.optional(3))}; }

// a, its scale and zero point, b, its scale and zero point, the result's scale and zero point.
Values qlinear_matmul(Call& c) {
  const Tensor a = c.x(0), b = c.x(3);
  const ElementType type = c.has(7) ? element_type(c.value(7)) : element_type(c.value(0));
  const Tensor scale = mul(by_row(c.x(1)), c.x(4)) / by_row(c.x(6));
  Tensor y;
  if (is_float(a.dtype())) {
    const auto plain = [&](const Tensor& t, const Tensor& zero) {
      const Tensor v = prim::cast(t, DType::F32);
      return !zero.defined() || known_zero(c, zero) ? v : v - prim::cast(zero, DType::F32);
    };
    y = matmul(plain(a, by_row(c.optional(2))), plain(b, c.optional(5)));
  } else {
    y = prim::cast(byte_product(c, a, c.optional(2), b, c.optional(5)), DType::F32);
  }
  return {saturated(c, y * prim::cast(scale, DType::F32), by_row(c.optional(7)), type)};
}

Values qlinear_conv(Call& c) { return quantized_conv(c, false); }

}  // namespace

void add_quantization(Operators& t) {
  const Operator rows[] = {
      {"", "DequantizeLinear", 10, dequantize_, "(x - zero point) * scale; for tensors, axes and blocks"},
      {"", "DynamicQuantizeLinear", 11, dynamic_quantize, "the range of x as u8, its scale and zero point"},
      {"", "MatMulInteger", 10, matmul_integer, "an exact product of signed bytes; zero points by sums"},
      {"", "QLinearConv", 10, qlinear_conv, "conv of f32, rounded and saturated; sums are exact up to 2^24"},
      {"", "QLinearMatMul", 10, qlinear_matmul, "an exact product of signed bytes, rounded and saturated"},
      {"", "QuantizeLinear", 10, quantize, "round(x / scale) + zero point, saturated; for tensors, axes and blocks"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
