// Products of many floats without intermediate overflow: mantissas near 1, with integer exponents.
#include "lightcone/ops/internal.h"

namespace lc::detail {
namespace {

// IEEE 754 fields of f32 and f64.
struct Fields {
  DType word;
  int digits, bias;
};
Fields fields(DType t) { return t == DType::F64 ? Fields{DType::I64, 52, 1023} : Fields{DType::I32, 23, 127}; }

Tensor within(const Tensor& t, int low, int high) {
  return prim::minimum(prim::maximum(t, full_like(t, low)), full_like(t, high));
}
// 2^e, a normal number.
Tensor power(const Tensor& e, DType type) {
  const Fields f = fields(type);
  return prim::bitcast(prim::mul(add(e, f.bias), full_like(e, std::int64_t{1} << f.digits)), type);
}
// The powers of two are constants for differentiation, because bits have no derivative; x is multiplied by a number.
Scaled rescaled(const Tensor& x, const Tensor& exponent) {
  const Fields f = fields(x.dtype());
  const Tensor field = prim::div(prim::bitcast(abs(x), f.word), full_like(exponent, std::int64_t{1} << f.digits));
  const Tensor zero = full_like(field, 0);  // for zeros, infinities and NaN as well
  const Tensor special =
      logical_or(prim::equal(field, full_like(field, 2 * f.bias + 1)), prim::equal(x, full_like(x, 0)));
  const Tensor e = prim::where(special, zero, add(within(field, 1, 2 * f.bias - 1), -f.bias));
  return {prim::mul(x, power(neg(e), x.dtype())), prim::add(exponent, e)};
}

}  // namespace

Scaled scaled(const Tensor& x) { return rescaled(x, full(x.graph(), x.shape(), 0, fields(x.dtype()).word)); }

Scaled times(const Scaled& a, const Scaled& b) {
  return rescaled(prim::mul(a.mantissa, b.mantissa), prim::add(a.exponent, b.exponent));
}

Tensor number(const Scaled& s) {
  const DType type = s.mantissa.dtype();
  const int most = fields(type).bias - 1;
  Tensor y = s.mantissa, left = s.exponent;
  for (int k = 0; k < 3; ++k) {  // after three steps the result is 0 or infinite
    const Tensor step = within(left, -most, most);
    y = prim::mul(y, power(step, type)), left = prim::add(left, neg(step));
  }
  return y;
}

}  // namespace lc::detail
