#include <numbers>

#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

Tensor sigmoid(Operand a) {
  LC_SCOPE("sigmoid");
  return prim::recip(add(exp(neg(as_float(a))), 1));
}
Tensor softplus(Operand a, double beta, double threshold) {
  LC_SCOPE("softplus");
  const Tensor x = as_float(a), z = mul(x, beta);
  // max(z, 0) + log1p(exp(-|z|)) does not overflow
  const Tensor soft = prim::add(prim::maximum(z, full_like(z, 0)), log1p(exp(neg(abs(z)))));
  return prim::where(prim::less_than(full_like(z, threshold), z), x, mul(soft, 1 / beta));
}
Tensor logsigmoid(Operand a) {
  LC_SCOPE("logsigmoid");
  const Tensor x = as_float(a);
  return prim::add(prim::minimum(x, full_like(x, 0)), neg(log1p(exp(neg(abs(x))))));
}
Tensor relu(Operand a) {
  LC_SCOPE("relu");
  return prim::maximum(a, full_like(a, 0));
}
Tensor relu6(Operand a) { return clamp(a, 0, 6); }
Tensor leaky_relu(Operand a, double slope) {
  LC_SCOPE("leaky_relu");
  return prim::where(prim::less_than(full_like(a, 0), a), a, mul(a, slope));
}
Tensor celu(Operand a, double alpha) {
  LC_SCOPE("celu");
  const Tensor x = as_float(a), zero = full_like(x, 0);
  return prim::where(prim::less_than(zero, x), x, mul(expm1(prim::minimum(mul(x, 1 / alpha), zero)), alpha));
}
Tensor elu(Operand a, double alpha) {
  LC_SCOPE("elu");
  const Tensor x = as_float(a), zero = full_like(x, 0);
  return prim::where(prim::less_than(zero, x), x, mul(expm1(prim::minimum(x, zero)), alpha));
}
Tensor selu(Operand a) {
  LC_SCOPE("selu");
  return mul(elu(a, 1.6732632423543772848170429916717), 1.0507009873554804934193349852946);
}
Tensor gelu(Operand a) {
  LC_SCOPE("gelu");
  const Tensor x = as_float(a);
  return prim::mul(mul(x, 0.5), add(erf(mul(x, 1 / std::numbers::sqrt2)), 1));
}
Tensor gelu_tanh(Operand a) {
  LC_SCOPE("gelu_tanh");
  // 0.5 x (1 + tanh(u)) == x * sigmoid(2u)
  const Tensor x = as_float(a), cube = prim::mul(prim::mul(x, x), x);
  const Tensor u = mul(prim::add(x, mul(cube, 0.044715)), 2 * std::sqrt(2 / std::numbers::pi));
  return prim::mul(x, sigmoid(u));
}
Tensor silu(Operand a) {
  LC_SCOPE("silu");
  const Tensor x = as_float(a);
  return prim::mul(x, sigmoid(x));
}
Tensor mish(Operand a) {
  LC_SCOPE("mish");
  const Tensor x = as_float(a);
  return prim::mul(x, tanh(softplus(x)));
}
Tensor softsign(Operand a) {
  LC_SCOPE("softsign");
  const Tensor x = as_float(a);
  return prim::div(x, add(abs(x), 1));
}
Tensor hardtanh(Operand a, double low, double high) { return clamp(a, low, high); }
Tensor hardsigmoid(Operand a) {
  LC_SCOPE("hardsigmoid");
  return mul(clamp(add(as_float(a), 3), 0, 6), 1.0 / 6);
}
Tensor hardswish(Operand a) {
  LC_SCOPE("hardswish");
  return prim::mul(as_float(a), hardsigmoid(a));
}

}  // namespace lc
