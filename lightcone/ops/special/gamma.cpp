// Special functions of one number, computed in f64 because their formulas lose more digits than f32 can spare.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "lightcone/ops/internal.h"
#include "lightcone/ops/special/special.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {

Tensor polynomial(const Tensor& x, const std::vector<double>& c) {  // Horner's rule, highest power first
  Tensor p = full_like(x, c.front());
  for (std::size_t k = 1; k < c.size(); ++k) p = add(prim::mul(p, x), c[k]);
  return p;
}
// Evaluates `f` in f64 and rounds to a's type (f32 for integers).
template <class F>
Tensor in_f64(const Tensor& a, const F& f) {
  const DType type = is_float(a.dtype()) ? a.dtype() : DType::F32;
  return prim::cast(f(prim::cast(a, DType::F64)), type);
}
Tensor is_whole(const Tensor& x) { return prim::equal(x, floor(x)); }
Tensor is(const Tensor& x, double v) { return prim::equal(x, full_like(x, v)); }
Tensor below(const Tensor& x, double v) { return prim::less_than(x, full_like(x, v)); }

constexpr int kShift = 10;  // Stirling's series is exact from here on

// Shifts x to at least kShift and keeps the removed factors: Gamma(x + 10) = Gamma(x) x (x + 1) ... (x + 9)
struct Shifted {
  Tensor y, small, low;  // low: x, or 1 where it is large
};
Shifted shifted(const Tensor& x) {
  const Tensor small = below(x, kShift);
  return {prim::where(small, add(x, kShift), x), small, prim::where(small, x, full_like(x, 1))};
}

// M. Abramowitz and I. A. Stegun, "Handbook of mathematical functions", 6.1.41; requires x >= 0.
Tensor lgamma_of_positive(const Tensor& x) {
  const Shifted s = shifted(x);
  Tensor factors = s.low;
  for (int k = 1; k < kShift; ++k) factors = prim::mul(factors, add(s.low, k));
  const Tensor r = prim::recip(s.y), z = prim::mul(r, r);
  const Tensor tail = polynomial(
      z, {-3617.0 / 122400, 1.0 / 156, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12});
  const Tensor main = prim::add(prim::mul(add(s.y, -0.5), log(s.y)), neg(s.y));
  const Tensor up = prim::add(add(main, 0.5 * std::log(2 * std::numbers::pi)), prim::mul(tail, r));
  const Tensor down = prim::where(s.small, log(factors), full_like(x, 0));
  const Tensor y = prim::where(is(x, kInf), x, prim::add(up, neg(down)));
  // Near the zeros at 1 and 2, uses Taylor's series (6.1.33) of lgamma(2 + z), and lgamma(1 + z) = lgamma(2 + z) -
  // log(1 + z).
  static const std::vector<double> zeta_less_one{0.64493406684822641,    0.20205690315959424,    0.082323233711138144,
                                                 0.036927755143369989,   0.017343061984449237,   0.008349277381922926,
                                                 0.0040773561979443596,  0.0020083928260821171,  0.00099457512781797597,
                                                 0.00049418860411942767, 0.00024608655330804474, 0.00012271334757851804,
                                                 6.1248135058811215e-5,  3.058823630697205e-5,   1.5282259408611054e-5,
                                                 7.6371976378553086e-6,  3.8172932650404334e-6,  1.9082127165059859e-6};
  const Tensor near_one = below(abs(add(x, -1)), 0.25), near_two = below(abs(add(x, -2)), 0.25);
  const Tensor off = prim::where(near_one, add(x, -1), prim::where(near_two, add(x, -2), full_like(x, 0)));
  std::vector<double> series{0, 1 - std::numbers::egamma};  // lowest power first
  for (std::size_t k = 0; k < zeta_less_one.size(); ++k)
    series.push_back((k % 2 ? -1 : 1) * zeta_less_one[k] / static_cast<double>(k + 2));
  const Tensor of_two = polynomial(off, {series.rbegin(), series.rend()});
  return prim::where(near_one, prim::add(of_two, neg(log1p(off))), prim::where(near_two, of_two, y));
}
Tensor lgamma_f64(const Tensor& x) {
  const Tensor negative = below(x, 0), part = prim::add(x, neg(round(x)));
  const Tensor right = lgamma_of_positive(prim::where(negative, add(neg(x), 1), x));
  const Tensor sine = abs(sin(mul(part, std::numbers::pi)));
  const Tensor left = prim::add(neg(log(mul(sine, 1 / std::numbers::pi))), neg(right));  // 6.1.17
  const Tensor pole = logical_or(prim::mul(negative, is_whole(x)), is(x, -kInf));
  return prim::where(pole, full_like(x, kInf), prim::where(negative, left, right));
}
Tensor digamma_f64(const Tensor& x) {
  const Tensor negative = below(x, 0);
  const Shifted s = shifted(prim::where(negative, add(neg(x), 1), x));
  Tensor before = prim::recip(s.low);
  for (int k = 1; k < kShift; ++k) before = prim::add(before, prim::recip(add(s.low, k)));
  const Tensor r = prim::recip(s.y), z = prim::mul(r, r);
  const Tensor tail = polynomial(z, {-3617.0 / 8160, 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252,
                                     -1.0 / 120, 1.0 / 12, 0});  // 6.3.18
  const Tensor up = prim::add(prim::add(log(s.y), mul(r, -0.5)), neg(tail));
  const Tensor right = prim::add(up, neg(prim::where(s.small, before, full_like(x, 0))));
  const Tensor part = prim::where(negative, prim::add(x, neg(round(x))), full_like(x, 0.25));
  const Tensor left =
      prim::add(right, neg(mul(prim::recip(tan(mul(part, std::numbers::pi))), std::numbers::pi)));  // 6.3.7
  const Tensor pole = prim::mul(negative, is_whole(x));
  const Tensor y = prim::where(pole, full_like(x, kNaN), prim::where(negative, left, right));
  return prim::where(is(x, 0), neg(prim::recip(x)), y);
}

Tensor power(Tensor x, int n) {  // n >= 1, by squaring
  Tensor y;
  for (;; x = prim::mul(x, x)) {
    if (n % 2) y = y.defined() ? prim::mul(y, x) : x;
    if ((n /= 2) == 0) return y;
  }
}
// n! zeta(n + 1, x), x >= 0, with Hurwitz's zeta: the first terms, and the Euler-Maclaurin formula for the rest (F.
// Johansson, "Rigorous high-precision computation of the Hurwitz zeta function", 2013, equation 5).
Tensor zeta_times_factorial(const Tensor& x, int n) {
  constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                   -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};
  const int terms = std::max(kShift, n);
  const double factorial = std::tgamma(n + 1.0);
  Tensor sum = power(prim::recip(x), n + 1);
  for (int k = 1; k < terms; ++k) sum = prim::add(sum, power(prim::recip(add(x, k)), n + 1));
  const Tensor r = prim::recip(add(x, terms));
  std::vector<double> series;  // in r^2, lowest power first: (n + 2j - 1)! B_2j / (2j)!
  double c = factorial / 2;    // (n + 2j - 1)! / (2j)!, for j = 1
  for (int j = 1; j <= static_cast<int>(std::size(kBernoulli)); ++j) {
    if (j == 1) c = factorial * (n + 1) / 2;
    else c *= (n + 2.0 * j - 2) * (n + 2.0 * j - 1) / ((2.0 * j - 1) * (2.0 * j));
    series.push_back(c * kBernoulli[j - 1]);
  }
  const Tensor z = prim::mul(r, r), last = prim::mul(z, polynomial(z, {series.rbegin(), series.rend()}));
  const Tensor rest = add(prim::add(mul(r, factorial / 2), last), factorial / n);
  return prim::add(mul(sum, factorial), prim::mul(power(r, n), rest));
}
// Returns the n-th derivative of cot(t) as a polynomial in cot(t), highest power first.
std::vector<double> derivative_of_cotangent(int n) {
  std::vector<double> p{0, 1};  // lowest power first
  for (int k = 0; k < n; ++k) {
    std::vector<double> next(p.size() + 1);
    for (std::size_t i = 1; i < p.size(); ++i) {
      next[i - 1] -= static_cast<double>(i) * p[i];
      next[i + 1] -= static_cast<double>(i) * p[i];
    }
    p = next;
  }
  return {p.rbegin(), p.rend()};
}
Tensor polygamma_f64(const Tensor& x, int n) {  // "Handbook of mathematical functions", 6.4.1, 6.4.7 and 6.4.10
  const Tensor zero = full_like(x, 0), negative = below(x, 0);
  const Tensor up = zeta_times_factorial(prim::where(negative, add(neg(x), 1), prim::where(is(x, 0), zero, x)), n);
  const Tensor right = n % 2 ? up : neg(up);
  const Tensor part = prim::where(negative, prim::add(x, neg(round(x))), full_like(x, 0.25));
  const Tensor near = below(abs(part), 0.25), off = prim::where(near, abs(part), add(neg(abs(part)), 0.5));
  const Tensor tangent = tan(mul(off, std::numbers::pi));  // uses the smaller angle: a small cotangent is exact
  const Tensor size = prim::where(near, prim::recip(prim::where(near, tangent, full_like(x, 1))), tangent);
  const Tensor cotangent = prim::where(below(part, 0), neg(size), size);
  const Tensor slope = mul(polynomial(cotangent, derivative_of_cotangent(n)), -std::pow(std::numbers::pi, n + 1));
  const Tensor left = prim::add(slope, n % 2 ? neg(right) : right);
  return prim::where(prim::mul(negative, is_whole(x)), full_like(x, kNaN), prim::where(negative, left, right));
}
// M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution" (1988), PPND16.
Tensor erfinv_f64(const Tensor& x) {
  const Tensor q = mul(x, 0.5), m = abs(q), near = add(neg(prim::mul(q, q)), 0.180625);
  const auto ratio = [](const Tensor& r, const std::vector<double>& p, const std::vector<double>& of) {
    return prim::div(polynomial(r, p), polynomial(r, of));
  };
  const Tensor middle = prim::mul(
      q, ratio(near,
               {2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4, 4.5921953931549871457e+4,
                1.3731693765509461125e+4, 1.9715909503065514427e+3, 1.3314166789178437745e+2, 3.3871328727963666080},
               {5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
                5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0}));
  const Tensor root = prim::sqrt(neg(log(add(neg(m), 0.5))));
  const Tensor far =
      ratio(add(root, -1.6),
            {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
             3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734},
            {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
             6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0});
  const Tensor tail = ratio(
      add(root, -5),
      {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
       2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720},
      {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
       1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0});
  const Tensor outside = prim::where(below(root, 5), far, tail);
  const Tensor side = prim::where(below(x, 0), neg(outside), outside);
  const Tensor y = mul(prim::where(below(m, 0.425), middle, side), 1 / std::numbers::sqrt2);
  return prim::where(is(abs(x), 1), mul(x, kInf), y);
}

// I_n for n = 0 and 1: the ascending series (9.6.10), or the asymptotic one (9.7.1) once it is as accurate.
Tensor bessel_i(const Tensor& x, int n) {
  constexpr double kFar = 20;
  const Tensor m = abs(x), is_near = below(m, kFar);
  const Tensor low = prim::where(is_near, m, full_like(m, 1)), half = mul(low, 0.5), t = prim::mul(half, half);
  std::vector<double> ascending{1};
  for (int k = 1; k <= 36; ++k) ascending.insert(ascending.begin(), ascending.front() / (k * (k + n)));
  Tensor near = polynomial(t, ascending);
  if (n) near = prim::mul(near, half);
  std::vector<double> asymptotic{1};
  for (int k = 1; k <= 25; ++k)
    asymptotic.insert(asymptotic.begin(),
                      -asymptotic.front() * (4.0 * n * n - (2.0 * k - 1) * (2.0 * k - 1)) / (8.0 * k));
  const Tensor high = prim::where(is_near, full_like(m, kFar), m), root = exp(mul(high, 0.5));
  // exp(x) as two factors, which overflow no earlier than the result
  const Tensor far = prim::mul(prim::mul(root, prim::div(polynomial(prim::recip(high), asymptotic),
                                                         prim::sqrt(mul(high, 2 * std::numbers::pi)))),
                               root);
  const Tensor y = prim::where(is_near, near, prim::where(is(m, kInf), m, far));
  return n ? prim::where(below(x, 0), neg(y), y) : prim::where(isnan(x), x, y);
}

}  // namespace

Tensor lgamma(Operand a) {
  LC_SCOPE("lgamma");
  const Tensor x = as_float(a);
  return with_derivative(in_f64(x, lgamma_f64), x, [](const Tensor& x, const Tensor&) { return digamma(x); });
}
Tensor digamma(Operand a) {
  LC_SCOPE("digamma");
  return in_f64(a, digamma_f64);
}
Tensor polygamma(int n, Operand a) {
  LC_SCOPE("polygamma");
  if (n < 0) throw Error("polygamma", str_cat("the ", n, "-th derivative"));
  if (n == 0) return digamma(a);
  return in_f64(a, [n](const Tensor& x) { return polygamma_f64(x, n); });
}
Tensor erfinv(Operand a) {
  LC_SCOPE("erfinv");
  const Tensor x = as_float(a);
  return with_derivative(in_f64(x, erfinv_f64), x, [](const Tensor&, const Tensor& y) {
    return mul(exp(prim::mul(y, y)), std::sqrt(std::numbers::pi) / 2);
  });
}
Tensor i0(Operand a) {
  LC_SCOPE("i0");
  const Tensor x = as_float(a);
  return with_derivative(
      in_f64(x, [](const Tensor& t) { return bessel_i(t, 0); }), x,
      [](const Tensor& x, const Tensor&) { return in_f64(x, [](const Tensor& t) { return bessel_i(t, 1); }); });
}
Tensor sinc(Operand a) {
  LC_SCOPE("sinc");
  LC_RETURN_IF_HALF(a, sinc(a));
  const Tensor x = as_float(a), zero = is(x, 0);
  const Tensor t = mul(prim::where(zero, full_like(x, 1), x), std::numbers::pi);
  return with_derivative(
      prim::where(zero, full_like(x, 1), prim::div(sin(t), t)), x, [](const Tensor& x, const Tensor& y) {
        const Tensor t = mul(x, std::numbers::pi), s = prim::mul(t, t);  // cos t - sin t / t cancels near 0
        const Tensor near = prim::mul(t, polynomial(s, {1.0 / 45360, -1.0 / 840, 1.0 / 30, -1.0 / 3}));
        const Tensor far = prim::div(prim::add(cos(t), neg(y)), prim::where(is(t, 0), full_like(t, 1), t));
        return mul(prim::where(below(abs(t), 0.05), near, far), std::numbers::pi);
      });
}

}  // namespace lc
