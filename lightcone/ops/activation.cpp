#include <cmath>
#include <numbers>

#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

Tensor sigmoid(Operand a) {
  LC_SCOPE("sigmoid");
  LC_RETURN_IF_HALF(a, sigmoid(a));
  // with e = exp(-|x|): 1 / (1 + e) for x >= 0, e / (1 + e) for x < 0; exp never overflows
  const Tensor x = as_float(a), e = exp(neg(abs(x)));
  return with_derivative(prim::div(prim::where(prim::less_than(x, full_like(x, 0)), e, full_like(x, 1)), add(e, 1)), x,
                         [](const Tensor&, const Tensor& y) { return prim::mul(y, add(neg(y), 1)); });
}
Tensor softplus(Operand a, double beta, double threshold) {
  LC_SCOPE("softplus");
  LC_RETURN_IF_HALF(a, softplus(a, beta, threshold));
  const Tensor x = as_float(a), z = mul(x, beta);
  // max(z, 0) + log1p(exp(-|z|)) never overflows
  const Tensor soft = prim::add(prim::maximum(z, full_like(z, 0)), log1p(exp(neg(abs(z)))));
  const Tensor y = prim::where(prim::less_than(full_like(z, threshold), z), x, mul(soft, 1 / beta));
  return with_vjp(y, {x}, [beta, threshold](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor z = mul(c.x(), beta), linear = prim::less_than(full_like(z, threshold), z);
    return {prim::where(linear, c.g(), prim::mul(c.g(), sigmoid(z)))};
  });
}
Tensor logsigmoid(Operand a) {
  LC_SCOPE("logsigmoid");
  LC_RETURN_IF_HALF(a, logsigmoid(a));
  const Tensor x = as_float(a);
  return with_derivative(prim::add(prim::minimum(x, full_like(x, 0)), neg(log1p(exp(neg(abs(x)))))), x,
                         [](const Tensor& x, const Tensor&) { return sigmoid(neg(x)); });
}
Tensor relu(Operand a) {
  LC_SCOPE("relu");
  return with_vjp(prim::maximum(a, full_like(a, 0)), {a}, [](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor zero = full_like(c.y(), 0);
    return {prim::where(prim::less_than(zero, c.y()), c.g(), zero)};
  });
}
Tensor relu6(Operand a) { return between(a, 0, 6, "relu6"); }
Tensor leaky_relu(Operand a, double slope) {
  LC_SCOPE("leaky_relu");
  return prim::where(prim::less_than(full_like(a, 0), a), a, mul(a, slope));
}
Tensor celu(Operand a, double alpha) {
  LC_SCOPE("celu");
  LC_RETURN_IF_HALF(a, celu(a, alpha));
  const Tensor x = as_float(a), zero = full_like(x, 0);
  const Tensor y = prim::where(prim::less_than(zero, x), x, mul(expm1(prim::minimum(mul(x, 1 / alpha), zero)), alpha));
  return with_vjp(y, {x}, [alpha](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor grows = prim::less_than(full_like(c.x(), 0), c.x());
    return {prim::where(grows, c.g(), prim::mul(c.g(), add(mul(c.y(), 1 / alpha), 1)))};
  });
}
Tensor elu(Operand a, double alpha) {
  LC_SCOPE("elu");
  LC_RETURN_IF_HALF(a, elu(a, alpha));
  const Tensor x = as_float(a), zero = full_like(x, 0);
  const Tensor y = prim::where(prim::less_than(zero, x), x, mul(expm1(prim::minimum(x, zero)), alpha));
  return with_vjp(y, {x}, [alpha](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor grows = prim::less_than(full_like(c.x(), 0), c.x());
    return {prim::where(grows, c.g(), prim::mul(c.g(), add(c.y(), alpha)))};
  });
}
Tensor selu(Operand a) {
  LC_SCOPE("selu");
  LC_RETURN_IF_HALF(a, selu(a));
  return mul(elu(a, 1.6732632423543772848170429916717), 1.0507009873554804934193349852946);
}
Tensor gelu(Operand a, std::string_view approximate) {
  if (approximate == "tanh") return gelu_tanh(a);
  if (approximate != "none")
    throw Error("gelu", str_cat("approximate is \"none\" or \"tanh\", not \"", approximate, "\""),
                Location::here(a.at));
  LC_SCOPE("gelu");
  LC_RETURN_IF_HALF(a, gelu(a));
  const Tensor x = as_float(a);
  if (x.dtype() != DType::F64) return prim::mul(x, normal_cdf_f32(x));
  return prim::mul(mul(x, 0.5), add(erf(mul(x, 1 / std::numbers::sqrt2)), 1));
}
Tensor gelu_tanh(Operand a) {
  LC_SCOPE("gelu_tanh");
  LC_RETURN_IF_HALF(a, gelu_tanh(a));
  // 0.5 x (1 + tanh(u)) == x * sigmoid(2u)
  const Tensor x = as_float(a), cube = prim::mul(prim::mul(x, x), x);
  const Tensor u = mul(prim::add(x, mul(cube, 0.044715)), 2 * std::sqrt(2 / std::numbers::pi));
  return prim::mul(x, sigmoid(u));
}
Tensor silu(Operand a) {
  LC_SCOPE("silu");
  LC_RETURN_IF_HALF(a, silu(a));
  const Tensor x = as_float(a);
  return prim::mul(x, sigmoid(x));
}
Tensor mish(Operand a) {
  LC_SCOPE("mish");
  LC_RETURN_IF_HALF(a, mish(a));
  const Tensor x = as_float(a);
  // tanh(log(1 + exp x)) = p / q with p = (1 + exp x)^2 - 1 and q = p + 2; for x > 0 both are scaled by exp(-2 x)
  const Tensor e = exp(neg(abs(x))), right = prim::less_than(full_like(x, 0), x);
  const Tensor p = prim::where(right, add(mul(e, 2), 1), prim::mul(e, add(e, 2)));
  const Tensor q = prim::add(p, prim::where(right, mul(prim::mul(e, e), 2), full_like(x, 2)));
  return prim::mul(x, prim::div(p, q));
}
Tensor softsign(Operand a) {
  LC_SCOPE("softsign");
  LC_RETURN_IF_HALF(a, softsign(a));
  const Tensor x = as_float(a);
  return prim::div(x, add(abs(x), 1));
}
Tensor hardtanh(Operand a, Scalar low, Scalar high) { return between(a, low, high, "hardtanh"); }
Tensor hardsigmoid(Operand a) {
  LC_SCOPE("hardsigmoid");
  LC_RETURN_IF_HALF(a, hardsigmoid(a));
  return between(add(as_float(a), 3), 0, 6, "hardsigmoid") / 6;
}
Tensor hardswish(Operand a) {
  LC_SCOPE("hardswish");
  LC_RETURN_IF_HALF(a, hardswish(a));
  return prim::mul(as_float(a), hardsigmoid(a));
}

Tensor hardshrink(Operand a, double lambda) {
  LC_SCOPE("hardshrink");
  const Tensor inside =
      logical_and(prim::less_than(full_like(a, -lambda), a), prim::less_than(a, full_like(a, lambda)));
  const Tensor edge = logical_or(prim::equal(a, full_like(a, lambda)), prim::equal(a, full_like(a, -lambda)));
  return prim::where(logical_or(inside, edge), full_like(a, 0), a);
}
Tensor softshrink(Operand a, double lambda) {
  LC_SCOPE("softshrink");
  const Tensor above = prim::less_than(full_like(a, lambda), a), below = prim::less_than(a, full_like(a, -lambda));
  // values between the bounds become 0; NaN stays NaN
  return prim::where(above, add(a, -lambda),
                     prim::where(below, add(a, lambda), prim::where(isnan(a), a, full_like(a, 0))));
}
Tensor tanhshrink(Operand a) {
  LC_SCOPE("tanhshrink");
  LC_RETURN_IF_HALF(a, tanhshrink(a));
  const Tensor x = as_float(a), far = prim::add(x, neg(tanh(x)));
  if (x.dtype() == DType::F64) return far;
  // x^3 (1/3 - ...) near 0, because x - tanh(x) cancels there
  const Tensor s = prim::mul(x, x);
  Tensor p = full_like(s, -0.00439837016);
  for (const double c : {0.00995592028, -0.0222016778, 0.0540068224, -0.133334875, 0.333333343})
    p = add(prim::mul(p, s), c);
  const Tensor y = prim::where(prim::less_than(abs(x), full_like(x, 0.55)), prim::mul(x, prim::mul(s, p)), far);
  return with_derivative(y, x, [](const Tensor& x, const Tensor&) { return square(tanh(x)); });
}
Tensor threshold(Operand a, Scalar threshold, Scalar value) {
  LC_SCOPE("threshold");
  const Tensor low = logical_or(prim::less_than(a, full_like(a, threshold)), prim::equal(a, full_like(a, threshold)));
  return prim::where(low, full_like(a, value), a);
}
Tensor prelu(Operand a, Operand weight) {
  LC_SCOPE("prelu");
  const Dim n = weight->rank() == 0 ? Dim(1) : weight->extent(0);
  const bool one = n == Dim(1);
  if (weight->rank() > 1 || (!one && (a->rank() < 2 || !(a->extent(1) == n))))
    throw Error("prelu", str_cat("a weight ", str(weight->shape()), " does not fit the channels of ", str(a->shape())));
  if (weight->dtype() != a->dtype())
    throw Error("prelu",
                str_cat("the weight is ", name(weight->dtype()), ", the tensor ", name(a->dtype()), "; convert one"));
  Shape s(static_cast<std::size_t>(a->rank()), 1);
  if (!one) s[1] = n;
  const Tensor slope = weight->reshape(s).expand(a->shape());
  return prim::where(prim::less_than(full_like(a, 0), a), a, prim::mul(a, slope));
}
Tensor glu(Operand a, int axis) {
  LC_SCOPE("glu");
  LC_RETURN_IF_HALF(a, glu(a, axis));
  axis = wrap_axis(axis, a->rank(), a->shape(), "glu");
  const Dim n = a->extent(axis), half = n / Dim(2);
  if (!(half * Dim(2) == n)) throw Error("glu", str_cat("axis ", axis, " of ", str(a->shape()), " has no halves"));
  return prim::mul(as_float(a->slice(axis, 0, half)), sigmoid(a->slice(axis, half, n)));
}

}  // namespace lc
