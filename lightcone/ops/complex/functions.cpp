// Functions of complex numbers by W. Kahan's formulas, "Branch cuts for complex elementary functions, or much ado about
// nothing's sign bit", 1987.
#include <numbers>

#include "lightcone/ops/complex/complex.h"
#include "lightcone/ops/internal.h"
#include "lightcone/ops/special/special.h"

namespace lc {
namespace {

// Computes f32 in f64 and rounds once.
template <class F>
Complex in_f64(const Complex& a, const F& f) {
  if (a.dtype() == DType::F64) return f(a);
  const Complex r = f(Complex{prim::cast(a.real, DType::F64), prim::cast(a.imag, DType::F64)});
  return {prim::cast(r.real, a.dtype()), prim::cast(r.imag, a.dtype())};
}

Complex times_i(const Complex& a) { return {detail::neg(a.imag), a.real}; }
Complex times_minus_i(const Complex& a) { return {a.imag, detail::neg(a.real)}; }
Complex plus(const Complex& a, double v) { return {detail::add(a.real, v), a.imag}; }
Complex one_minus(const Complex& a) { return {detail::add(detail::neg(a.real), 1), detail::neg(a.imag)}; }

Complex root(const Complex& a) {
  const Tensor half = sqrt(detail::mul(abs(a.real) + abs(a), 0.5));  // the larger part; imaginary if Re(a) < 0
  const Tensor zero = eq(half, 0.0), other = where(zero, full_like(half, 0), a.imag / detail::mul(half, 2));
  const Tensor right = ge(a.real, 0.0), endless = isinf(a.imag);
  const Tensor re = where(right, half, abs(other)), im = where(right, other, copysign(half, a.imag));
  const Tensor inf = full_like(half, kInf);
  return {where(endless, inf, re), where(logical_or(endless, zero), a.imag, im)};
}
Complex logarithm(const Complex& a) {
  const Tensor size = maximum(abs(a.real), abs(a.imag)), less = minimum(abs(a.real), abs(a.imag));
  // (size - 1)(size + 1) + less^2 keeps its digits near the unit circle, where log |a| is small.
  const Tensor off = (size - 1.0) * (size + 1.0) + less * less;
  const Tensor near = logical_and(gt(size, 0.5), lt(size, 2.0));
  const Tensor re = where(near, detail::mul(log1p(where(near, off, full_like(off, 0))), 0.5), log(abs(a)));
  return {re, angle(a)};
}
Complex tanh_of(const Complex& a) {
  const Tensor t = tan(a.imag), b = detail::add(t * t, 1), s = sinh(clamp(a.real, -22.0, 22.0));
  const Tensor r = sqrt(detail::add(s * s, 1)), d = detail::add(b * s * s, 1);
  const Tensor far = gt(abs(a.real), 22.0);  // 1 to full precision
  const Tensor rest = 2.0 * sin(detail::mul(a.imag, 2)) * exp(detail::mul(abs(a.real), -2));
  return {where(far, copysign(full_like(s, 1), a.real), b * r * s / d), where(far, rest, t / d)};
}
Complex asin_of(const Complex& a) {
  const Complex below = root(one_minus(a)), above = root(plus(a, 1));
  return {atan2(a.real, (below * above).real), asinh((conj(below) * above).imag)};
}
Complex acos_of(const Complex& a) {
  const Complex below = root(one_minus(a)), above = root(plus(a, 1));
  return {detail::mul(atan2(below.real, above.real), 2), asinh((conj(above) * below).imag)};
}
Complex acosh_of(const Complex& a) {
  const Complex below = root(plus(a, -1)), above = root(plus(a, 1));
  return {asinh((conj(below) * above).real), detail::mul(atan2(below.imag, above.real), 2)};
}
Complex atanh_of(const Complex& a) {
  const Tensor x = a.real, y = a.imag, left = 1.0 - x, m = abs(x), off = 1.0 - m, square = y * y;
  const Tensor re = copysign(detail::mul(log1p(detail::mul(m, 4) / (off * off + square)), 0.25), x);
  const Tensor im = detail::mul(atan2(detail::mul(y, 2), left * (1.0 + x) - square), 0.5);
  return {re, im};
}

}  // namespace

Complex exp(const Complex& a) {
  const Tensor size = exp(a.real);
  // e^-inf is 0 for any angle; a real argument has a real result.
  const Tensor none = eq(size, 0.0), real = eq(a.imag, 0.0);
  return {where(none, size, where(real, size, size * cos(a.imag))),
          where(logical_or(none, real), a.imag * full_like(size, 0), size * sin(a.imag))};
}
Complex expm1(const Complex& a) {
  return in_f64(a, [](const Complex& z) {
    const Tensor half = sin(detail::mul(z.imag, 0.5));
    return Complex{expm1(z.real) * cos(z.imag) - detail::mul(half * half, 2), exp(z.real) * sin(z.imag)};
  });
}
Complex log(const Complex& a) { return in_f64(a, logarithm); }
Complex log1p(const Complex& a) {
  return in_f64(a, [](const Complex& z) {
    const Tensor square = z.real * detail::add(z.real, 2) + z.imag * z.imag;
    return Complex{detail::mul(log1p(square), 0.5), atan2(z.imag, detail::add(z.real, 1))};
  });
}
Complex sqrt(const Complex& a) { return in_f64(a, root); }
Complex rsqrt(const Complex& a) {
  return in_f64(a, [](const Complex& z) { return reciprocal(root(z)); });
}
Complex pow(const Complex& a, const Complex& b) {
  return in_f64(a, [&](const Complex& z) {
    const Complex by{prim::cast(b.real, DType::F64), prim::cast(b.imag, DType::F64)};
    const Tensor nothing = logical_and(eq(z.real, 0.0), eq(z.imag, 0.0));
    const Tensor no_power = logical_and(eq(by.real, 0.0), eq(by.imag, 0.0));
    const Complex r = exp(by * logarithm(where(nothing, Complex{full_like(z.real, 1), z.imag}, z)));
    const Tensor zero = full_like(r.real, 0), one = full_like(r.real, 1);
    return Complex{where(no_power, one, where(nothing, zero, r.real)),
                   where(logical_or(no_power, nothing), zero, r.imag)};
  });
}
Complex sigmoid(const Complex& a) {
  return in_f64(a, [](const Complex& z) { return reciprocal(plus(exp(-z), 1)); });
}
Complex sgn(const Complex& a) {
  const Tensor size = abs(a), nothing = eq(size, 0.0), by = where(nothing, full_like(size, 1), size);
  return {a.real / by, a.imag / by};
}
Complex sin(const Complex& a) { return {sin(a.real) * cosh(a.imag), cos(a.real) * sinh(a.imag)}; }
Complex cos(const Complex& a) { return {cos(a.real) * cosh(a.imag), detail::neg(sin(a.real) * sinh(a.imag))}; }
Complex sinh(const Complex& a) { return {sinh(a.real) * cos(a.imag), cosh(a.real) * sin(a.imag)}; }
Complex cosh(const Complex& a) { return {cosh(a.real) * cos(a.imag), sinh(a.real) * sin(a.imag)}; }
Complex tanh(const Complex& a) { return in_f64(a, tanh_of); }
Complex asin(const Complex& a) { return in_f64(a, asin_of); }
Complex acos(const Complex& a) { return in_f64(a, acos_of); }
Complex acosh(const Complex& a) { return in_f64(a, acosh_of); }
Complex atanh(const Complex& a) { return in_f64(a, atanh_of); }
// Uses f(z) = -i g(i z).
Complex tan(const Complex& a) { return times_minus_i(tanh(times_i(a))); }
Complex asinh(const Complex& a) { return times_minus_i(asin(times_i(a))); }
Complex atan(const Complex& a) { return times_minus_i(atanh(times_i(a))); }

}  // namespace lc
