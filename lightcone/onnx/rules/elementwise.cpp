// Functions of one operand, element by element.
#include <cmath>

#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {

// A function of ops/ without attributes.
template <Tensor (*f)(Operand)>
Values unary(Call& c) {
  return {f(c.x())};
}
Values identity(Call& c) { return {c.value(0)}; }

Values round_even(Call& c) { return {lc::round(c.x())}; }
Values not_(Call& c) { return {logical_not(c.x())}; }
Values elu_(Call& c) { return {elu(c.x(), c.number("alpha", 1))}; }
Values celu_(Call& c) { return {celu(c.x(), c.number("alpha", 1))}; }
Values selu_(Call& c) {
  const double alpha = c.number("alpha", 1.67326319217681884765625),
               gamma = c.number("gamma", 1.05070102214813232421875);
  const Tensor x = c.x();
  return {where(x > 0, x * gamma, (exp(x) * alpha - alpha) * gamma)};
}
Values leaky_relu_(Call& c) { return {leaky_relu(c.x(), c.number("alpha", 0.01))}; }
Values thresholded_relu(Call& c) {
  const double alpha = c.number("alpha", 1);
  return {where(c.x() > alpha, c.x(), zeros_like(c.x()))};
}
Values hard_sigmoid(Call& c) {
  const double alpha = c.number("alpha", 0.2), beta = c.number("beta", 0.5);
  return {clamp(c.x() * alpha + beta, 0.0, 1.0)};
}
Values hard_swish(Call& c) { return {hardswish(c.x())}; }
Values gelu_(Call& c) { return {gelu(c.x(), c.text("approximate", "none"))}; }
Values swish(Call& c) {
  const double alpha = c.number("alpha", 1);
  return {alpha == 1 ? silu(c.x()) : c.x() * sigmoid(c.x() * alpha)};
}
Values swiglu(Call& c) {  // x * sigmoid(alpha x) of one half times the other
  const Tensor x = c.x();
  const double alpha = c.number("alpha", 1);
  const int axis = c.axis("axis", -1, x.rank());
  const Dim n = x.extent(axis) / Dim(2);
  const Tensor a = narrow(x, axis, 0, n), b = narrow(x, axis, n, n);
  return {a * sigmoid(a * alpha) * b};
}
Values shrink(Call& c) {
  const double bias = c.number("bias", 0), lambda = c.number("lambd", 0.5);
  const Tensor x = c.x();
  return {where(x < -lambda, x + bias, where(x > lambda, x - bias, zeros_like(x)))};
}
Values softplus_(Call& c) {  // log(1 + e^x) without a threshold
  const Tensor x = c.x();
  return {maximum(x, zeros_like(x)) + log1p(exp(-abs(x)))};
}
Values mish_(Call& c) {
  const Tensor x = c.x();
  return {x * tanh(maximum(x, zeros_like(x)) + log1p(exp(-abs(x))))};
}
Values is_inf(Call& c) {
  const bool negative = c.flag("detect_negative", true), positive = c.flag("detect_positive", true);
  const Tensor x = c.x();
  if (negative && positive) return {isinf(x)};
  if (positive) return {isposinf(x)};
  if (negative) return {isneginf(x)};
  return {full(x, x.shape(), 0, DType::Bool)};
}
Values bitwise_not(Call& c) {
  const Tensor x = c.x();
  return {prim::bitwise_xor(x, full_like(x, -1))};
}

}  // namespace

void add_elementwise(Operators& t) {
  const Operator rows[] = {
      {"", "Abs", 1, unary<lc::abs>, "abs"},
      {"", "Acos", 7, unary<lc::acos>, "acos"},
      {"", "Acosh", 9, unary<lc::acosh>, "acosh"},
      {"", "Asin", 7, unary<lc::asin>, "asin"},
      {"", "Asinh", 9, unary<lc::asinh>, "asinh"},
      {"", "Atan", 7, unary<lc::atan>, "atan"},
      {"", "Atanh", 9, unary<lc::atanh>, "atanh"},
      {"", "BitwiseNot", 18, bitwise_not, "bitwise_xor with -1"},
      {"", "Ceil", 1, unary<lc::ceil>, "ceil"},
      {"", "Celu", 12, celu_, "celu"},
      {"", "Cos", 7, unary<lc::cos>, "cos"},
      {"", "Cosh", 9, unary<lc::cosh>, "cosh"},
      {"", "Elu", 1, elu_, "elu"},
      {"", "Erf", 9, unary<lc::erf>, "erf"},
      {"", "Exp", 1, unary<lc::exp>, "exp"},
      {"", "Floor", 1, unary<lc::floor>, "floor"},
      {"", "Gelu", 20, gelu_, "gelu"},
      {"", "HardSigmoid", 1, hard_sigmoid, "clamp of a line"},
      {"", "HardSwish", 14, hard_swish, "hardswish"},
      {"", "Identity", 1, identity, "the operand"},
      {"", "IsInf", 10, is_inf, "isinf, isposinf, isneginf"},
      {"", "IsNaN", 9, unary<lc::isnan>, "isnan"},
      {"", "LeakyRelu", 1, leaky_relu_, "leaky_relu"},
      {"", "Log", 1, unary<lc::log>, "log"},
      {"", "Mish", 18, mish_, "x tanh(softplus x)"},
      {"", "Neg", 1, unary<lc::neg>, "neg"},
      {"", "Not", 1, not_, "logical_not"},
      {"", "Reciprocal", 1, unary<lc::reciprocal>, "reciprocal"},
      {"", "Relu", 1, unary<lc::relu>, "relu"},
      {"", "Round", 11, round_even, "round, ties to even"},
      {"", "Selu", 1, selu_, "selu with the file's constants"},
      {"", "Shrink", 9, shrink, "where"},
      {"", "Sigmoid", 1, unary<lc::sigmoid>, "sigmoid"},
      {"", "Sign", 9, unary<lc::sign>, "sign"},
      {"", "Sin", 7, unary<lc::sin>, "sin"},
      {"", "Sinh", 9, unary<lc::sinh>, "sinh"},
      {"", "Softplus", 1, softplus_, "log(1 + e^x)"},
      {"", "Softsign", 1, unary<lc::softsign>, "softsign"},
      {"", "Sqrt", 1, unary<lc::sqrt>, "sqrt"},
      {"", "SwiGLU", 26, swiglu, "silu of one half times the other"},
      {"", "Swish", 24, swish, "silu"},
      {"", "Tan", 7, unary<lc::tan>, "tan"},
      {"", "Tanh", 1, unary<lc::tanh>, "tanh"},
      {"", "ThresholdedRelu", 1, thresholded_relu, "where"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
