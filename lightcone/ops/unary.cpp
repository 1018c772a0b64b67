// Elementwise functions of one operand.
#include <cmath>
#include <numbers>
#include <optional>

#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

Tensor detail::with_derivative(const Tensor& y, const Tensor& x, Tensor (*slope)(const Tensor& x, const Tensor& y)) {
  return with_vjp(y, {x},
                  [slope](const VjpCall& c) { return std::vector<Tensor>{prim::mul(c.g(), slope(c.x(), c.y()))}; });
}

#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {
Tensor polynomial(const Tensor& x, std::initializer_list<double> c) {  // Horner's rule, highest power first
  Tensor p = full_like(x, *c.begin());
  for (const double* k = c.begin() + 1; k != c.end(); ++k) p = add(prim::mul(p, x), *k);
  return p;
}
// Evaluates even and odd powers separately by Horner's rule: two short dependency chains reduce latency. If x takes
// both signs, the sum of the two does not cancel.
Tensor long_polynomial(const Tensor& x, std::initializer_list<double> c) {
  const Tensor s = prim::mul(x, x);
  std::optional<Tensor> sums[2];  // sums of even powers and of odd powers
  std::size_t power = c.size();
  for (const double k : c) {
    std::optional<Tensor>& sum = sums[--power % 2];
    sum = sum ? add(prim::mul(*sum, s), k) : full_like(x, k);
  }
  return prim::add(prim::mul(x, *sums[1]), *sums[0]);
}
}  // namespace

Tensor to(Operand a, DType dtype) { return a->to(dtype, a.at); }
Tensor abs(Operand a) {
  LC_SCOPE("abs");
  // + 0 turns -0, which is not less than 0, into 0
  const Tensor y = add(prim::where(prim::less_than(a, full_like(a, 0)), neg(a.tensor), a), 0.0);
  return with_derivative(y, a, [](const Tensor& x, const Tensor&) { return sign(x); });
}
Tensor positive(Operand a) {
  LC_SCOPE("positive");
  if (a->dtype() == DType::Bool) throw Error("positive", "bool has no sign");
  return a;
}
Tensor sgn(Operand a) { return sign(a); }
Tensor signbit(Operand a) {
  LC_SCOPE("signbit");
  const Tensor zero = full_like(a, 0), below = prim::less_than(a, zero);
  if (!is_float(a->dtype())) return below;
  return logical_or(below, logical_and(prim::equal(a, zero), prim::less_than(prim::recip(a), zero)));
}
Tensor sign(Operand a) {
  LC_SCOPE("sign");
  const Tensor zero = full_like(a, 0);
  const Tensor y = prim::where(prim::less_than(zero, a), full_like(a, 1),
                               prim::where(prim::less_than(a, zero), full_like(a, -1), zero));
  return with_derivative(y, a, [](const Tensor& x, const Tensor&) { return full_like(x, 0); });
}
Tensor square(Operand a) {
  LC_SCOPE("square");
  if (a->dtype() == DType::Bool) a.tensor = prim::cast(a, DType::I64);  // as in PyTorch, where it is pow(a, 2)
  return with_derivative(prim::mul(a, a), a, [](const Tensor& x, const Tensor&) { return mul(x, 2); });
}
Tensor exp2(Operand a) {
  LC_SCOPE("exp2");
  return prim::exp2(as_float(a));
}
Tensor exp(Operand a) {
  LC_SCOPE("exp");
  LC_RETURN_IF_HALF(a, exp(a));
  return prim::exp(as_float(a));
}
Tensor expm1(Operand a) {
  LC_SCOPE("expm1");
  LC_RETURN_IF_HALF(a, expm1(a));
  const Tensor x = as_float(a);  // x (1 + x (1/2 + ...)) near 0, where exp(x) - 1 would cancel
  Tensor p;
  if (x.dtype() == DType::F64) {  // Taylor's series
    double factorial = 1;
    for (int k = 2; k <= 16; ++k) factorial *= k;
    p = full_like(x, 1 / factorial);
    for (int k = 16; k > 1; --k) {
      factorial /= k;
      p = add(prim::mul(p, x), 1 / factorial);
    }
  } else {
    p = polynomial(x, {0.000200861585, 0.00140108413, 0.00833285321, 0.041664958, 0.166666687, 0.50000006, 1});
  }
  const Tensor near = prim::less_than(abs(x), full_like(x, 0.5));
  const Tensor y = prim::where(near, prim::mul(p, x), add(exp(x), -1));
  return with_derivative(y, x, [](const Tensor&, const Tensor& y) { return add(y, 1); });
}
Tensor log2(Operand a) {
  LC_SCOPE("log2");
  return prim::log2(as_float(a));
}
Tensor log10(Operand a) {
  LC_SCOPE("log10");
  LC_RETURN_IF_HALF(a, log10(a));
  return mul(prim::log2(as_float(a)), std::numbers::ln2 / std::numbers::ln10);
}
Tensor log(Operand a) {
  LC_SCOPE("log");
  LC_RETURN_IF_HALF(a, log(a));
  const Tensor x = as_float(a);
  return with_derivative(mul(prim::log2(x), std::numbers::ln2), x,
                         [](const Tensor& x, const Tensor&) { return prim::recip(x); });
}
Tensor log1p(Operand a) {
  LC_SCOPE("log1p");
  LC_RETURN_IF_HALF(a, log1p(a));
  const Tensor x = as_float(a), u = add(x, 1), d = add(u, -1);
  // log(u) plus a correction for the rounding of u = 1 + x: (x - (u - 1)) / u
  const Tensor lost = prim::div(prim::add(x, neg(d)), prim::maximum(u, full_like(u, 0x1p-60)));
  const Tensor r = prim::add(log(u), lost);
  const Tensor y =
      prim::where(prim::equal(d, full_like(d, 0)), x, prim::where(prim::equal(u, full_like(u, kInf)), x, r));
  return with_derivative(y, x, [](const Tensor& x, const Tensor&) { return prim::recip(add(x, 1)); });
}
Tensor sqrt(Operand a) {
  LC_SCOPE("sqrt");
  return prim::sqrt(as_float(a));
}
Tensor rsqrt(Operand a) {
  LC_SCOPE("rsqrt");
  LC_RETURN_IF_HALF(a, rsqrt(a));
  const Tensor x = as_float(a);
  return with_derivative(prim::recip(prim::sqrt(x)), x,
                         [](const Tensor&, const Tensor& y) { return mul(prim::mul(prim::mul(y, y), y), -0.5); });
}
Tensor reciprocal(Operand a) {
  LC_SCOPE("reciprocal");
  return prim::recip(as_float(a));
}
Tensor sin(Operand a) {
  LC_SCOPE("sin");
  return prim::sin(as_float(a));
}
Tensor cos(Operand a) {
  LC_SCOPE("cos");
  LC_RETURN_IF_HALF(a, cos(a));
  return prim::cos(as_float(a));
}
Tensor tan(Operand a) {
  LC_SCOPE("tan");
  LC_RETURN_IF_HALF(a, tan(a));
  const Tensor x = as_float(a);
  return with_derivative(prim::div(sin(x), cos(x)), x,
                         [](const Tensor&, const Tensor& y) { return add(prim::mul(y, y), 1); });
}
namespace {
Tensor with_sign_of(const Tensor& x, const Tensor& magnitude) {  // an odd function; its zeros are those of x
  const Tensor zero = full_like(x, 0);
  return prim::where(prim::less_than(x, zero), neg(magnitude), prim::where(prim::equal(x, zero), x, magnitude));
}
}  // namespace

Tensor atan(Operand a) {
  LC_SCOPE("atan");
  LC_RETURN_IF_HALF(a, atan(a));
  // Cephes' reduction and rational approximation: -1 / x beyond tan(3 pi / 8), (x - 1) / (x + 1) beyond 0.66, else x.
  const Tensor x = as_float(a), m = abs(x);
  const Tensor far = prim::less_than(full_like(m, 2.414213562373095), m),
               middle = prim::less_than(full_like(m, 0.66), m);
  const Tensor r = prim::where(far, neg(prim::recip(m)), prim::where(middle, prim::div(add(m, -1), add(m, 1)), m));
  const Tensor base = prim::where(far, full_like(m, std::numbers::pi / 2),
                                  prim::where(middle, full_like(m, std::numbers::pi / 4), full_like(m, 0)));
  const Tensor z = prim::mul(r, r);
  const Tensor p = polynomial(z, {-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
                                  -1.228866684490136173410e2, -6.485021904942025371773e1});
  const Tensor q = polynomial(z, {1, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
                                  4.853903996359136964868e2, 1.945506571482613964425e2});
  const Tensor tail = prim::mul(prim::mul(r, z), prim::div(p, q));
  return with_derivative(with_sign_of(x, prim::add(base, prim::add(r, tail))), x,
                         [](const Tensor& x, const Tensor&) { return prim::recip(add(prim::mul(x, x), 1)); });
}
namespace {
// The derivative of arcsine, 1 / sqrt(1 - x^2). The product (1 - x)(1 + x) keeps its digits near -1 and 1.
Tensor arc_slope(const Tensor& x, const Tensor&) {
  return prim::recip(prim::sqrt(prim::mul(add(neg(x), 1), add(x, 1))));
}
}  // namespace
Tensor asin(Operand a) {
  LC_SCOPE("asin");
  LC_RETURN_IF_HALF(a, asin(a));
  const Tensor x = as_float(a);
  const Tensor root = prim::sqrt(prim::mul(add(neg(x), 1), add(x, 1)));
  return with_derivative(mul(atan(prim::div(x, add(root, 1))), 2), x, arc_slope);
}
Tensor acos(Operand a) {
  LC_SCOPE("acos");
  LC_RETURN_IF_HALF(a, acos(a));
  const Tensor x = as_float(a);
  return with_derivative(mul(atan(prim::sqrt(prim::div(add(neg(x), 1), add(x, 1)))), 2), x,
                         [](const Tensor& x, const Tensor& y) { return neg(arc_slope(x, y)); });
}
namespace {
// exp(m) / 2 for m >= 0, which overflows later than exp(m); m - 1 is exact if m is large.
Tensor half_exp(const Tensor& m) {
  const Tensor large = mul(exp(add(m, -1)), std::numbers::e / 2);
  return prim::where(prim::less_than(m, full_like(m, 80)), mul(exp(m), 0.5), large);
}
}  // namespace
Tensor sinh(Operand a) {
  LC_SCOPE("sinh");
  LC_RETURN_IF_HALF(a, sinh(a));
  const Tensor x = as_float(a), m = abs(x), e = expm1(m);
  const Tensor near = mul(prim::add(e, prim::div(e, add(e, 1))), 0.5), far = half_exp(m);
  return with_derivative(with_sign_of(x, prim::where(prim::less_than(m, full_like(m, 20)), near, far)), x,
                         [](const Tensor& x, const Tensor&) { return cosh(x); });
}
Tensor cosh(Operand a) {
  LC_SCOPE("cosh");
  LC_RETURN_IF_HALF(a, cosh(a));
  const Tensor x = as_float(a), e = half_exp(abs(x));
  return with_derivative(prim::add(e, mul(prim::recip(e), 0.25)), x,
                         [](const Tensor& x, const Tensor&) { return sinh(x); });
}
Tensor asinh(Operand a) {
  LC_SCOPE("asinh");
  LC_RETURN_IF_HALF(a, asinh(a));
  const Tensor x = as_float(a), m = abs(x), s = prim::mul(m, m);
  const Tensor near = log1p(prim::add(m, prim::div(s, add(prim::sqrt(add(s, 1)), 1))));
  const Tensor y =
      with_sign_of(x, prim::where(prim::less_than(m, full_like(m, 1e8)), near, add(log(m), std::numbers::ln2)));
  return with_derivative(y, x, [](const Tensor& x, const Tensor&) { return rsqrt(add(prim::mul(x, x), 1)); });
}
Tensor acosh(Operand a) {
  LC_SCOPE("acosh");
  LC_RETURN_IF_HALF(a, acosh(a));
  const Tensor x = as_float(a), t = add(x, -1);
  const Tensor near = log1p(prim::add(t, prim::sqrt(prim::mul(t, add(t, 2)))));
  const Tensor far = prim::where(prim::less_than(x, full_like(x, 1e8)), near, add(log(x), std::numbers::ln2));
  return with_derivative(prim::where(prim::less_than(x, full_like(x, 1)), full_like(x, kNaN), far), x,
                         [](const Tensor& x, const Tensor&) { return rsqrt(prim::mul(add(x, -1), add(x, 1))); });
}
Tensor atanh(Operand a) {
  LC_SCOPE("atanh");
  LC_RETURN_IF_HALF(a, atanh(a));
  const Tensor x = as_float(a), m = abs(x);
  return with_derivative(
      with_sign_of(x, mul(log1p(prim::div(mul(m, 2), add(neg(m), 1))), 0.5)), x,
      [](const Tensor& x, const Tensor&) { return prim::recip(prim::mul(add(neg(x), 1), add(x, 1))); });
}
Tensor logit(Operand a, std::optional<double> eps) {
  LC_SCOPE("logit");
  LC_RETURN_IF_HALF(a, logit(a, eps));
  if (eps) a.tensor = clamp(as_float(a), *eps, 1 - *eps);
  // x / (1 - x) loses digits near 1; (2 x - 1) / (1 - x) does not
  const Tensor x = as_float(a), rest = add(neg(x), 1), off = add(mul(x, 2), -1);
  const Tensor near = prim::less_than(abs(off), full_like(x, 0.5));
  return with_derivative(prim::where(near, log1p(prim::div(off, rest)), log(prim::div(x, rest))), x,
                         [](const Tensor& x, const Tensor&) { return prim::recip(prim::mul(x, add(neg(x), 1))); });
}
namespace {
Tensor tanh_slope(const Tensor&, const Tensor& y) { return add(neg(prim::mul(y, y)), 1); }
}  // namespace
Tensor tanh(Operand a) {
  LC_SCOPE("tanh");
  LC_RETURN_IF_HALF(a, tanh(a));
  // 1 - 2 / (e^2|x| + 1) with the sign of x; near 0 an odd series keeps the relative precision
  const Tensor x = as_float(a), m = abs(x), s = prim::mul(x, x);
  if (x.dtype() == DType::F64) {
    const Tensor e = expm1(mul(m, -2));
    return with_derivative(with_sign_of(x, neg(prim::div(e, add(e, 2)))), x, tanh_slope);
  }
  const Tensor big = prim::add(full_like(x, 1), mul(prim::recip(add(exp(mul(m, 2)), 1)), -2));
  const Tensor p = polynomial(s, {-0.00624284893, 0.021050714, -0.0538475476, 0.133325443, -0.333333164, 1});
  const Tensor signed_big = prim::where(prim::less_than(x, full_like(x, 0)), neg(big), big);
  return with_derivative(prim::where(prim::less_than(m, full_like(m, 0.55)), prim::mul(p, x), signed_big), x,
                         tanh_slope);
}
namespace {
// |x| for even functions, which ignore the sign of zero.
Tensor magnitude(const Tensor& x) { return prim::where(prim::less_than(x, full_like(x, 0)), neg(x), x); }
// For |x| >= 1, erfc is the fourth power of a polynomial, which needs few terms because it decays much more slowly;
// erfc is small relative to the 1 it is subtracted from. Below 1, erf is x plus a fraction of x. Each f32 digit is
// correct except for the rounding of these sums. Beyond 4 the result is 1 in f32. Both polynomials are fitted by least
// squares with iterated weights until the largest error is equal everywhere, with coefficients rounded to f32 one after
// the other: 1.4e-9 of the result, and 8.5e-9.
Tensor erf_f32(const Tensor& x) {
  const Tensor s = prim::mul(x, x), m = magnitude(x), top = full_like(m, 4);
  const Tensor fraction =
      polynomial(s, {7.806904e-05, -0.0007997853, 0.005187162, -0.026853347, 0.11283579, -0.37612626, 0.12837917});
  const Tensor near = prim::add(prim::mul(x, fraction), x);
  const Tensor root = polynomial(prim::where(prim::less_than(top, m), top, m),
                                 {-2.2182947e-05, 0.0001766565, 0.0007841447, -0.01277885, 0.04387182, -0.017557833,
                                  -0.09328529, -0.29359928, 1.0021803});
  const Tensor q = prim::mul(root, root), far = add(prim::mul(neg(q), q), 1);
  const Tensor odd = prim::where(prim::less_than(x, full_like(x, 0)), neg(far), far);
  return prim::where(prim::less_than(m, full_like(m, 1)), near, odd);
}
// t exp(P(t) - x^2), t = 2 / (2 + |x|), with P in Chebyshev polynomials of 2 t - 1, fitted to twenty digits: relative
// error below 1e-15 while the result is normal.
Tensor erfc_f64(const Tensor& x) {
  static constexpr double c[] = {
      -1.3026537197817094342 / 2, 0.6419697923564902603,      0.019476473204185836312,    -0.0095615147868086316419,
      -0.0009465953444820368663,  0.00036683949785276145187,  0.000042523324806907771645, -0.000020278578112534243154,
      -1.6242900046470255135e-6,  1.3036558355805232018e-6,   1.5626441722066143178e-8,   -8.5238095914926542525e-8,
      6.5290544390988514964e-9,   5.0593434955514689418e-9,   -9.9136415649303308674e-10, -2.2736512229318358557e-10,
      9.646791102015526802e-11,   2.3940380830391147447e-12,  -6.8860275264975533984e-12, 8.9448792730907257167e-13,
      3.1309213993429580783e-13,  -1.1270822361367252366e-13, 3.8109052551892320552e-16,  7.1060976136092369878e-15,
      -1.5230282014571043043e-15, -9.4574945712912340005e-17, 1.2102371892242789923e-16,  -2.8166630877471769718e-17};
  const Tensor m = abs(x), t = prim::div(full_like(x, 2), add(m, 2)), y = add(mul(t, 4), -2);  // 2 (2 t - 1)
  Tensor d = full_like(x, 0), next = d;                                                        // Clenshaw's recurrence
  for (std::size_t k = std::size(c) - 1; k > 0; --k) {
    const Tensor here = add(prim::add(prim::mul(y, d), neg(next)), c[k]);
    next = d;
    d = here;
  }
  const Tensor p = add(prim::add(mul(prim::mul(y, d), 0.5), neg(next)), c[0]);
  const Tensor tail = prim::mul(t, exp(prim::add(p, neg(prim::mul(m, m)))));
  const Tensor right = prim::where(prim::equal(m, full_like(m, kInf)), full_like(m, 0), tail);
  return prim::where(prim::less_than(x, full_like(x, 0)), add(neg(right), 2), right);
}
// Below 0.47, where the result is at least 1/2, it is 1 - erf(x). Above, the exponent is as large as 103: exp() is
// applied to the square of `high`, which has 12 bits and so an exact square, and the rest of x^2 is a factor near 1.
// The remaining exp(x^2) erfc(x) is a polynomial around 1.25 up to 2, and in 1 / x beyond. Fitted by least squares with
// iterated weights until the largest relative error, 2^-25, is equal everywhere.
Tensor erfc_f32(const Tensor& x) {
  const Tensor m = prim::minimum(abs(x), full_like(x, 10.5)), s = prim::mul(x, x), u = prim::recip(m);
  const Tensor near =
      add(neg(prim::mul(x, polynomial(s, {0.004716376257764744, -0.026756275044069633, 0.11282805702411539,
                                          -0.37612607376571233, 1.1283791653396813}))),
          1);
  const Tensor middle =
      polynomial(add(m, -1.25), {-0.00019919407144633719, 0.000562677829843497, -0.0013019889933296026,
                                 0.0035054847702098847, -0.009087866334380457, 0.022021621479066108,
                                 -0.05021768114056196, 0.1067948057310294, -0.20882188825434667, 0.36782292550381424});
  const Tensor outer = prim::mul(
      u, polynomial(u, {-0.17853574562573565, 0.6966569637713746, -1.0779731888913993, 0.7641736238022532,
                        -0.06430182971779994, -0.27485072344907213, -0.0004482502697175773, 0.564201249556536}));
  const Tensor rest = prim::where(prim::less_than(m, full_like(m, 2)), middle, outer);
  constexpr double kTo2ToMinus8 = 0x1.8p15;  // its unit in the last place is 2^-8
  const Tensor high = add(add(m, kTo2ToMinus8), -kTo2ToMinus8);
  const Tensor d = prim::mul(add(m, neg(high)), add(m, high));                  // x^2 - high^2
  const Tensor w = prim::mul(d, polynomial(d, {-1.0 / 24, 1.0 / 6, -0.5, 1}));  // 1 - exp(-d)
  const Tensor right = prim::mul(prim::exp(neg(prim::mul(high, high))), add(rest, neg(prim::mul(rest, w))));
  const Tensor far = prim::where(prim::less_than(x, full_like(x, 0)), add(neg(right), 2), right);
  return prim::where(prim::less_than(m, full_like(m, 0.4765)), near, far);
}
Tensor erf_f64(const Tensor& x) {  // the Maclaurin series near 0, where 1 - erfc(x) would cancel
  const Tensor s = prim::mul(x, x);
  Tensor p = full_like(x, 0);
  for (int n = 14; n >= 0; --n) {
    double factorial = 1;
    for (int k = 2; k <= n; ++k) factorial *= k;
    p = add(prim::mul(p, s), (n % 2 ? -1 : 1) / (factorial * (2 * n + 1)));
  }
  const Tensor small = mul(prim::mul(p, x), 2 / std::sqrt(std::numbers::pi));
  return prim::where(prim::less_than(abs(x), full_like(x, 0.75)), small, add(neg(erfc_f64(x)), 1));
}
// 2 / sqrt(pi) exp(-x^2)
Tensor erf_slope(const Tensor& x, const Tensor&) {
  return mul(prim::exp(neg(prim::mul(x, x))), 2 / std::sqrt(std::numbers::pi));
}
// exp(-x^2 / 2) / sqrt(2 pi)
Tensor normal_density(const Tensor& x, const Tensor&) {
  return mul(prim::exp(mul(prim::mul(x, x), -0.5)), 1 / std::sqrt(2 * std::numbers::pi));
}
}  // namespace

// The smaller tail is the square of a polynomial, so that the left one is not a difference of numbers near 1. It is
// fitted like erf_f32: within 1.1e-8. Beyond 5.5, where 2e-8 is left, it is 0.
Tensor detail::normal_cdf_f32(const Tensor& x) {
  const Tensor m = magnitude(x);
  const Tensor root = long_polynomial(
      add(m, -2), {2.4512431e-08, -1.5745974e-07, -5.8979e-07, 6.345004e-06, 6.0050934e-07, -0.00012899634,
                   0.00025456364, 0.0014289557, -0.0063479217, -0.0031156386, 0.072790064, -0.17897783, 0.15083145});
  const Tensor tail = prim::where(prim::less_than(full_like(m, 5.5), m), full_like(m, 0), prim::mul(root, root));
  return with_derivative(prim::where(prim::less_than(x, full_like(x, 0)), tail, add(neg(tail), 1)), x, normal_density);
}
Tensor erf(Operand a) {
  LC_SCOPE("erf");
  LC_RETURN_IF_HALF(a, erf(a));
  const Tensor x = as_float(a);
  return with_derivative(x.dtype() == DType::F64 ? erf_f64(x) : erf_f32(x), x, erf_slope);
}
Tensor erfc(Operand a) {
  LC_SCOPE("erfc");
  LC_RETURN_IF_HALF(a, erfc(a));
  const Tensor x = as_float(a);
  return with_derivative(x.dtype() == DType::F64 ? erfc_f64(x) : erfc_f32(x), x,
                         [](const Tensor& x, const Tensor& y) { return neg(erf_slope(x, y)); });
}
Tensor trunc(Operand a) {
  LC_SCOPE("trunc");
  if (!is_float(a->dtype())) return a;
  return prim::where(prim::less_than(a, full_like(a, 0)), ceil(a), prim::floor(a));
}
Tensor frac(Operand a) {
  LC_SCOPE("frac");
  if (!is_float(a->dtype())) throw Error("frac", "whole numbers have no fraction");
  return prim::mod(a, full_like(a, 1));
}
Tensor floor(Operand a) {
  LC_SCOPE("floor");
  if (!is_float(a->dtype())) return a;
  return prim::floor(a);
}
Tensor ceil(Operand a) {
  LC_SCOPE("ceil");
  if (!is_float(a->dtype())) return a;
  return neg(prim::floor(neg(a)));
}
Tensor round(Operand a, int decimals) {
  LC_SCOPE("round");
  if (!is_float(a->dtype())) return a;
  if (decimals != 0) {
    LC_RETURN_IF_HALF(a, round(a, decimals));
    const double shift = std::pow(10.0, std::abs(decimals));
    return decimals > 0 ? prim::div(round(mul(a, shift)), full_like(a, shift))
                        : mul(round(prim::div(a, full_like(a, shift))), shift);
  }
  return prim::round(a);
}

}  // namespace lc
