// The table of tests/ops/accuracy.h. Its compile options let GCC call the vector functions of glibc's libmvec (at most
// 4 units of a double off), if available, so that 2^32 numbers take seconds.
#include "accuracy.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lc::accuracy {
namespace {

#if LIGHTCONE_MPFR
#define DIGITS(...) [](const Big& x) -> Big { return __VA_ARGS__; }
#else
#define DIGITS(...) nullptr
#endif
#define LOOP(...)                             \
  [](const float* from, double* to, long n) { \
    for (long k = 0; k < n; ++k) {            \
      const double x = from[k];               \
      to[k] = __VA_ARGS__;                    \
    }                                         \
  }
#define F(name, bound, in_double, in_digits) N(name, bound, -149, false, in_double, in_digits)
#define N(name, bound, least, of_argument, in_double, in_digits)                                                \
  {                                                                                                             \
    #name, [](Operand a) { return lc::name(a); }, LOOP(in_double), DIGITS(in_digits), bound, least, of_argument \
  }

// Functions composed so that no part overflows or cancels. Arguments are computed unconditionally, because a call under
// a condition prevents vectorization.
double choose(bool c, double a, double b) { return c ? a : b; }
double sigmoid_from(double x, double e) { return choose(x < 0, e, 1) / (1 + e); }  // e = exp(-|x|)
double mish_from(double x, double e) {  // x tanh(log(1 + exp x)) with e = exp(-|x|)
  const double right = (1 + 2 * e) / (1 + 2 * e + 2 * e * e), left = e * (e + 2) / (e * (e + 2) + 2);
  return x * choose(x > 0, right, left);
}
double tanhshrink_from(double x, double t) {  // t = tanh x; a series where the difference would cancel
  const double s = x * x;
  const double tail = 62.0 / 2835 - s * (1382.0 / 155925 - s * (21844.0 / 6081075));
  const double series = x * s * (1.0 / 3 - s * (2.0 / 15 - s * (17.0 / 315 - s * tail)));
  return choose(s < 0.01, series, x - t);
}
double logit_from(double x, double whole, double near) { return choose(x > 0.25 && x < 0.75, near, whole); }
// the constant is 2 sqrt(2 / pi)
double gelu_power(double x) { return 1.5957691216057307118 * (x + 0.044715 * x * x * x); }
double positive(double x) { return choose(x > 0, x, 0); }
double negative(double x) { return choose(x < 0, x, 0); }
double inside(double x, double low, double high) { return choose(x < low, low, choose(x > high, high, x)); }
constexpr double kSelu = 1.0507009873554804934193349852946, kAlpha = 1.6732632423543772848170429916717;

#if LIGHTCONE_MPFR
Big logistic(const Big& x) { return 1.0 / (1.0 + exp(-x)); }
Big log_sum(const Big& x) { return x < 0.0 ? log1p(exp(x)) : x + log1p(exp(-x)); }
Big gelu_argument(const Big& x) { return 2.0 * sqrt(2.0 / Big::pi()) * (x + 0.044715 * x * x * x); }
Big bent(const Big& x, const Big& below) { return 0.0 < x ? x : below; }
Big between(const Big& x, double low, double high) { return x < low ? low : high < x ? high : x; }
#endif

double distance(double x, double got, double want, double least, double of_argument) {
  const double g = std::fmin(std::fmax(got, -0x1p128), 0x1p128), w = std::fmin(std::fmax(want, -0x1p128), 0x1p128);
  const double size = std::fmin(std::fmax(std::fmax(std::fabs(w), std::fabs(x) * of_argument), least), 0x1p127);
  const std::int64_t unit = (std::bit_cast<std::int64_t>(size) >> 52) - 23;
  const double d = std::fabs(g - w) * std::bit_cast<double>((2046 - unit) << 52);
  return (got != got) != (want != want) ? kInf : got != got ? 0 : d;
}

}  // namespace

double ulps(const Function& f, float x, float got, double want) {
  return distance(x, got, want, std::exp2(f.least + 23), f.of_argument ? 1 : 0);
}

Worst worst(const Function& f, const std::vector<float>& x, const std::vector<float>& got,
            const std::vector<double>& want) {
  const double least = std::exp2(f.least + 23), of_argument = f.of_argument ? 1 : 0;
  std::int64_t top = 0, off = 0;  // distances are not negative, so their bits have the same order
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double d = distance(x[k], got[k], want[k], least, of_argument);
    const auto bits = std::bit_cast<std::int64_t>(d);
    top = bits > top ? bits : top;
    off += d > 0.50001 ? 1 : 0;
  }
  Worst w{std::bit_cast<double>(top), 0, static_cast<std::size_t>(off)};
  while (w.at + 1 < got.size() && distance(x[w.at], got[w.at], want[w.at], least, of_argument) != w.ulps) ++w.at;
  return w;
}

// clang-format off
const std::vector<Function>& functions() {
  static const std::vector<Function> all{
    F(exp,         2, std::exp(x),                            exp(x)),
    F(exp2,        2, std::exp2(x),                           exp2(x)),
    F(expm1,       2, std::expm1(x),                          expm1(x)),
    F(log,         2, std::log(x),                            log(x)),
    F(log2,        2, std::log2(x),                           log2(x)),
    F(log10,       2.5, std::log10(x),                          log10(x)),
    F(log1p,       2, std::log1p(x),                          log1p(x)),
    F(sqrt,        0.5, std::sqrt(x),                         sqrt(x)),
    F(rsqrt,       2, 1 / std::sqrt(x),                       1.0 / sqrt(x)),
    F(reciprocal,  0.5, 1 / x,                                1.0 / x),
    F(square,      0.5, x * x,                                x * x),
    F(sin,         2, std::sin(x),                            sin(x)),
    F(cos,         2, std::cos(x),                            cos(x)),
    F(tan,         2.5, std::tan(x),                            tan(x)),
    F(asin,        2.5, std::asin(x),                           asin(x)),
    F(acos,        2.5, std::acos(x),                           acos(x)),
    F(atan,        2, std::atan(x),                           atan(x)),
    F(sinh,        3.5, std::sinh(x),                           sinh(x)),
    F(cosh,        2.5, std::cosh(x),                           cosh(x)),
    F(tanh,        2, std::tanh(x),                           tanh(x)),
    F(asinh,       3, std::asinh(x),                          asinh(x)),
    F(acosh,       3, std::acosh(x),                          acosh(x)),
    F(atanh,       3.5, std::atanh(x),                          atanh(x)),
    F(erf,         2, std::erf(x),                            erf(x)),
    F(erfc,        4, std::erfc(x),                           erfc(x)),
    F(logit,       4.5, logit_from(x, std::log(x / (1 - x)), std::log1p((2 * x - 1) / (1 - x))), log(x / (1.0 - x))),
    F(sigmoid,     2.5, sigmoid_from(x, std::exp(-std::fabs(x))), logistic(x)),
    F(logsigmoid,  2.5, negative(x) - std::log1p(std::exp(-std::fabs(x))), -log_sum(-x)),
    F(softplus,    2.5, positive(x) + std::log1p(std::exp(-std::fabs(x))), log_sum(x)),
    N(silu,        3.5, -143, false, x * sigmoid_from(x, std::exp(-std::fabs(x))), x * logistic(x)),
    N(mish,        4.5, -143, false, mish_from(x, std::exp(-std::fabs(x))),  x * tanh(log_sum(x))),
    N(gelu,        3.5, -149, true, 0.5 * x * std::erfc(-x * std::numbers::sqrt2 / 2), 0.5 * x * erfc(-x / sqrt(2.0))),
    N(gelu_tanh,   3, -149, true, x * sigmoid_from(x, std::exp(-std::fabs(gelu_power(x)))), x * logistic(gelu_argument(x))),
    N(tanhshrink,  25, -149, false, tanhshrink_from(x, std::tanh(x)),       x - tanh(x)),
    F(elu,         2, choose(x > 0, x, std::expm1(choose(x > 0, 0, x))), bent(x, expm1(x))),
    F(celu,        2, choose(x > 0, x, std::expm1(choose(x > 0, 0, x))), bent(x, expm1(x))),
    F(selu,        3, kSelu * choose(x > 0, x, kAlpha * std::expm1(choose(x > 0, 0, x))), kSelu * bent(x, kAlpha * expm1(x))),
    F(softsign,    2, x / (1 + std::fabs(x)),                 x / (1.0 + (x < 0.0 ? -x : x))),
    F(leaky_relu,  2, choose(x > 0, x, 0.01 * x),             bent(x, 0.01 * x)),
    F(hardsigmoid, 2, inside(x + 3, 0, 6) / 6,                between(x + 3.0, 0, 6) / 6.0),
    F(hardswish,   2.5, x * inside(x + 3, 0, 6) / 6,            x * between(x + 3.0, 0, 6) / 6.0),
    F(softshrink,  2, choose(x > 0.5, x - 0.5, choose(x < -0.5, x + 0.5, 0 * x)), 0.5 < x ? x - 0.5 : x < -0.5 ? x + 0.5 : 0.0 * x),
    F(hardshrink,  0, choose(std::fabs(x) <= 0.5, 0, x),      -0.5 <= x && x <= 0.5 ? 0.0 : x),
    F(hardtanh,    0, inside(x, -1, 1),                       between(x, -1, 1)),
    F(relu,        0, choose(x < 0, 0, x),                    x < 0.0 ? 0.0 : x),
    F(relu6,       0, inside(x, 0, 6),                        between(x, 0, 6)),
    F(abs,         0, std::fabs(x),                           x < 0.0 ? -x : x),
    F(frac,        0, x - std::trunc(x),                      x - std::trunc(x.number())),
    F(trunc,       0, std::trunc(x),                          std::trunc(x.number())),
    F(floor,       0, std::floor(x),                          std::floor(x.number())),
    F(ceil,        0, std::ceil(x),                           std::ceil(x.number())),
    F(round,       0, std::nearbyint(x),                      std::nearbyint(x.number())),
  };
  return all;
}
// clang-format on

}  // namespace lc::accuracy
