// Operators on quantised tensors: numbers of 8 bits with a scale and a zero point, in and out.
#include "lightcone/onnx/microsoft/microsoft.h"
#include "lightcone/onnx/parts/quantized.h"

namespace lc::onnx {
namespace {

Tensor as_scalar(const Tensor& t) { return t.defined() && t.rank() > 0 && t.shape() == Shape{1} ? t.reshape({}) : t; }
// Operands k, k + 1 and k + 2 as numbers.
Tensor numbers(Call& c, std::size_t k) {
  return dequantized(c, c.x(k), as_scalar(c.x(k + 1)), as_scalar(c.optional(k + 2)), DType::F32);
}
// Rounds to the scale and zero point of operands k and k + 1.
Values as_bytes(Call& c, const Tensor& y, std::size_t k, const Value& like) {
  const ElementType type = c.has(k + 1) ? element_type(c.value(k + 1)) : element_type(like);
  return {quantized(c, y, as_scalar(c.x(k)), as_scalar(c.optional(k + 1)), type)};
}

Values qlinear_add(Call& c) {
  const auto both = broadcast(c, {numbers(c, 0), numbers(c, 3)});
  return as_bytes(c, both[0] + both[1], 6, c.value(0));
}
Values qlinear_mul(Call& c) {
  const auto both = broadcast(c, {numbers(c, 0), numbers(c, 3)});
  return as_bytes(c, both[0] * both[1], 6, c.value(0));
}
Values qlinear_sigmoid(Call& c) { return as_bytes(c, sigmoid(numbers(c, 0)), 3, c.value(0)); }
Values qlinear_leaky_relu(Call& c) {
  return as_bytes(c, leaky_relu(numbers(c, 0), c.number("alpha", 0.01F)), 3, c.value(0));
}
Values qlinear_where(Call& c) {
  const auto all = broadcast(c, {c.x(0), numbers(c, 1), numbers(c, 4)});
  return as_bytes(c, where(all[0], all[1], all[2]), 7, c.value(1));
}
Values qlinear_softmax(Call& c) {
  const Tensor x = numbers(c, 0);
  const int axis = c.axis("axis", -1, x.rank());
  if (c.integer("opset", 13) >= 13) return as_bytes(c, softmax(x, axis), 3, c.value(0));
  const Shape s = x.shape();
  Shape flat(s.begin(), s.begin() + axis);
  flat.push_back(product(Shape(s.begin() + axis, s.end())));
  return as_bytes(c, softmax(x.reshape(flat), axis).reshape(s), 3, c.value(0));
}
Values qlinear_concat(Call& c) {
  if (c.in.size() < 5 || (c.in.size() - 2) % 3 != 0) c.refuse("needs a scale and a zero point for each operand");
  std::vector<Tensor> parts;
  for (std::size_t k = 2; k < c.in.size(); k += 3) parts.push_back(numbers(c, k));
  const int axis = c.axis("axis", 0, parts[0].rank());
  return as_bytes(c, concat(parts, axis), 0, c.value(2));
}
Values qlinear_reduce_mean(Call& c) {
  const Tensor x = numbers(c, 0);
  Integers all;
  for (int k = 0; k < x.rank(); ++k) all.push_back(k);
  const std::vector<int> axes = c.wrap(c.integers("axes", all), x.rank());
  return as_bytes(c, mean(x, axes, c.flag("keepdims", true)), 3, c.value(0));
}
// Pictures with their channels first, as a rule of ai.onnx reads them.
Values qlinear_average_pool(Call& c) {
  const bool last = c.flag("channels_last");
  Tensor x = numbers(c, 0);
  if (last) x = movedim(x, {-1}, {1});
  Tensor y = as_onnx(c, "AveragePool", 11, {x}).at(0).tensor;
  return as_bytes(c, last ? movedim(y, {1}, {-1}) : y, 3, c.value(0));
}
Values qlinear_global_average_pool(Call& c) {
  const bool last = c.flag("channels_last");
  const Tensor x = numbers(c, 0);
  std::vector<int> axes;
  for (int k = last ? 1 : 2; k < x.rank() - (last ? 1 : 0); ++k) axes.push_back(k);
  return as_bytes(c, mean(x, axes, true), 3, c.value(0));
}
Values qlinear_conv_of_layout(Call& c) { return quantized_conv(c, c.flag("channels_last")); }

// ---- products ---------------------------------------------------------------------------------------

// A product of bytes times both scales, and a bias.
Tensor scaled_product(Call& c, const Tensor& product, const Tensor& a_scale, const Tensor& b_scale,
                      const Tensor& bias) {
  const Tensor y = prim::cast(product, DType::F32) * (as_scalar(a_scale) * as_scalar(b_scale));
  return bias.defined() ? y + expand_to(c, bias, y.shape()) : y;
}
Values matmul_integer_to_float(Call& c) {
  const Tensor p = byte_product(c, c.x(0), c.optional(4), c.x(1), c.optional(5));
  return {prim::cast(scaled_product(c, p, c.x(2), c.x(3), c.optional(6)), c.x(2).dtype())};
}
Values dynamic_quantize_matmul(Call& c) {
  const DynamicBytes a = dynamic_bytes(c, c.x(0));
  const Tensor p = byte_product(c, a.codes, a.zero, c.x(1), c.optional(3));
  return {scaled_product(c, p, a.scale, c.x(2), c.optional(4))};
}
Values qgemm(Call& c) {
  const auto transposed = [&](std::size_t k, const char* flag) {
    return c.flag(flag) ? c.x(k).transpose(0, 1) : c.x(k);
  };
  const double alpha = c.number("alpha", 1);
  Tensor p = byte_product(c, transposed(0, "transA"), c.optional(2), transposed(3, "transB"), c.optional(5));
  if (const Tensor bias = c.optional(6); bias.defined()) p = p + expand_to(c, bias, p.shape());
  Tensor scale = as_scalar(c.x(1)) * as_scalar(c.x(4));
  if (alpha != 1) scale = scale * alpha;
  const Tensor y = prim::cast(p, DType::F32);
  if (!c.has(7)) return {y * scale};
  const ElementType type = c.has(8) ? element_type(c.value(8)) : element_type(c.value(0));
  return {saturated(c, y * (scale / as_scalar(c.x(7))), as_scalar(c.optional(8)), type)};
}
Values qattention(Call& c) {
  if (c.flag("do_rotary") || c.flag("past_present_share_buffer")) c.refuse("rotates inside, or shares its buffers");
  const Tensor p = byte_product(c, c.x(0), c.optional(6), c.x(1), c.optional(7));
  return joined_attention(c, scaled_product(c, p, c.x(3), c.x(4), c.x(2)), c.optional(5), c.optional(8), {});
}

// ---- whole numbers ------------------------------------------------------------------------------------

Tensor centred(Call& c, std::size_t k, std::size_t zero) {
  const Tensor x = c.x(k).to(DType::I32), z = as_scalar(c.optional(zero));
  return z.defined() ? sub(x, z.to(DType::I32)) : x;
}
Values mul_integer(Call& c) {
  const auto both = broadcast(c, {centred(c, 0, 1), centred(c, 2, 3)});
  return {prim::mul(both[0], both[1])};
}
Values matmul_integer16(Call& c) { return {matmul(c.x(0).to(DType::I32), c.x(1).to(DType::I32))}; }
Values reduce_sum_integer(Call& c) {
  const Tensor x = c.x(0);
  const std::vector<int> axes = c.wrap(c.integers("axes"), x.rank());
  return {sum(x.to(DType::I32), axes, c.flag("keepdims", true)).to(DType::I32)};
}
Values quantize_of_axis(Call& c) { return as_onnx(c, "QuantizeLinear", 25); }
Values dequantize_of_axis(Call& c) { return as_onnx(c, "DequantizeLinear", 25); }

}  // namespace

void add_microsoft_bytes(Operators& t) {
  const char* const between = "its numbers, the function, and bytes again";
  const Operator rows[] = {
      {kMicrosoft, "DequantizeLinear", 1, dequantize_of_axis, "(x - zero point) * scale"},
      {kMicrosoft, "DynamicQuantizeMatMul", 1, dynamic_quantize_matmul, "an exact product of signed bytes"},
      {kMicrosoft, "MatMulInteger16", 1, matmul_integer16, "matmul of i32"},
      {kMicrosoft, "MatMulIntegerToFloat", 1, matmul_integer_to_float, "an exact product of signed bytes"},
      {kMicrosoft, "MulInteger", 1, mul_integer, "a * b"},
      {kMicrosoft, "QAttention", 1, qattention, "an exact product of signed bytes, scaled_dot_product_attention"},
      {kMicrosoft, "QGemm", 1, qgemm, "an exact product of signed bytes"},
      {kMicrosoft, "QLinearAdd", 1, qlinear_add, between},
      {kMicrosoft, "QLinearAveragePool", 1, qlinear_average_pool, between},
      {kMicrosoft, "QLinearConcat", 1, qlinear_concat, between},
      {kMicrosoft, "QLinearConv", 1, qlinear_conv_of_layout, "conv of f32; sums are exact up to 2^24"},
      {kMicrosoft, "QLinearGlobalAveragePool", 1, qlinear_global_average_pool, between},
      {kMicrosoft, "QLinearLeakyRelu", 1, qlinear_leaky_relu, between},
      {kMicrosoft, "QLinearMul", 1, qlinear_mul, between},
      {kMicrosoft, "QLinearReduceMean", 1, qlinear_reduce_mean, between},
      {kMicrosoft, "QLinearSigmoid", 1, qlinear_sigmoid, between},
      {kMicrosoft, "QLinearSoftmax", 1, qlinear_softmax, between},
      {kMicrosoft, "QLinearWhere", 1, qlinear_where, between},
      {kMicrosoft, "QuantizeLinear", 1, quantize_of_axis, "round(x / scale) + zero point, saturated"},
      {kMicrosoft, "ReduceSumInteger", 1, reduce_sum_integer, "sum"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
