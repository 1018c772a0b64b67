#include "lightcone/nn/init.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lightcone/core/graph.h"
#include "lightcone/random/random_bits.h"

namespace lc::nn::init {
namespace {

using i64 = std::int64_t;

std::string text(const Extents& shape) { return str(Shape(shape.begin(), shape.end())); }

std::size_t elements(const Extents& shape, const char* op) {
  constexpr i64 kMost = i64{1} << 48;
  for (const i64 n : shape)
    if (n < 0) throw Error(op, str_cat("a shape ", text(shape), " has a negative extent"));
  i64 n = 1;
  for (const i64 extent : shape) {
    if (extent == 0) return 0;
    if (n > kMost / extent) throw Error(op, str_cat("a shape ", text(shape), " has more than 2^48 elements"));
    n *= extent;
  }
  return static_cast<std::size_t>(n);
}

void matrix(const Extents& shape, const char* op) {
  if (shape.size() != 2) throw Error(op, str_cat("needs a matrix, not ", text(shape)));
}
void finite(double v, const char* op, const char* what) {
  if (!std::isfinite(static_cast<float>(v))) throw Error(op, str_cat(what, " is ", v, ", which is no finite f32"));
}

// ---- numbers -------------------------------------------------------------------------------------------

// Random doubles in (0, 1) from two words each: the midpoints of 2^52 equal intervals.
class Numbers {
 public:
  explicit Numbers(const Source& s) : key_(Philox::key(s.seed, random_stream(s.parameter))) {}
  std::uint64_t bits(std::size_t k) {
    if (k / 2 != at_) at_ = k / 2, block_ = Philox::words(Philox::counter(at_, kNoStep), key_);
    return std::uint64_t{block_[k % 2 * 2]} << 32 | block_[k % 2 * 2 + 1];
  }
  double unit(std::size_t k) { return (static_cast<double>(bits(k) >> 12) + 0.5) * 0x1p-52; }

 private:
  static constexpr i64 kNoStep = -1;  // runs are counted from 0
  Philox::Key key_;
  Philox::Block block_{};
  std::size_t at_ = std::numeric_limits<std::size_t>::max();
};

// Natural logarithm of a positive number, accurate to a few units in the last place. x = m 2^e with m close to 1, and
// log m = 2 artanh((m - 1) / (m + 1)) is a series whose truncation error is below 2^-60.
double logarithm(double x) {
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < 0.70710678118654752440) m *= 2, --e;
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * s * sum + e * 0.69314718055994530942;
}

double horner(double x, const double (&c)[8]) {  // coefficients in ascending order of powers
  double y = c[7];
  for (int k = 6; k >= 0; --k) y = y * x + c[k];
  return y;
}

// Inverse of the standard normal distribution function at p in (0, 1): Wichura's PPND16.
double quantile(double p) {
  static constexpr double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                 1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                 3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double b[] = {1.0,
                                 4.2313330701600911252e+1,
                                 6.8718700749205790830e+2,
                                 5.3941960214247511077e+3,
                                 2.1213794301586595867e+4,
                                 3.9307895800092710610e+4,
                                 2.8729085735721942674e+4,
                                 5.2264952788528545610e+3};
  static constexpr double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                 3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double d[] = {1.0,
                                 2.05319162663775882187e0,
                                 1.67638483018380384940e0,
                                 6.89767334985100004550e-1,
                                 1.48103976427480074590e-1,
                                 1.51986665636164571966e-2,
                                 5.47593808499534494600e-4,
                                 1.05075007164441684324e-9};
  static constexpr double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                 2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double f[] = {1.0,
                                 5.99832206555887937690e-1,
                                 1.36929880922735805310e-1,
                                 1.48753612908506148525e-2,
                                 7.86869131145613259100e-4,
                                 1.84631831751005468180e-5,
                                 1.42151175831644588870e-7,
                                 2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * horner(r, a) / horner(r, b);
  }
  const double r = std::sqrt(-logarithm(q < 0 ? p : 1 - p));
  const double z = r <= 5 ? horner(r - 1.6, c) / horner(r - 1.6, d) : horner(r - 5, e) / horner(r - 5, f);
  return q < 0 ? -z : z;
}

// The standard normal distribution function at z in [-37, 37]: bisection on quantile(), so that it needs no other
// numerics.
double distribution(double z) {
  double low = 0x1p-1000, high = 1 - 0x1p-53;
  if (z <= quantile(low)) return low;
  if (z >= quantile(high)) return high;
  for (;;) {
    // The geometric mean first: the probability of a tail is then exact to its last place.
    const double middle = low > 0x1p-20 ? low + (high - low) / 2 : std::sqrt(low) * std::sqrt(high);
    if (!(middle > low && middle < high)) return low;
    (quantile(middle) <= z ? low : high) = middle;
  }
}

template <class F>
Values filled(const Extents& shape, const char* op, const F& f) {
  Values v(elements(shape, op));
  for (std::size_t k = 0; k < v.size(); ++k) v[k] = static_cast<float>(f(k));
  return v;
}

Values symmetric(const Extents& shape, const Source& source, double bound) {
  return bound > 0 ? uniform(shape, source, -bound, bound) : zeros(shape);
}

}  // namespace

// ---- constants ----------------------------------------------------------------------------------------

Values constant(const Extents& shape, float value) { return Values(elements(shape, "constant"), value); }
Values zeros(const Extents& shape) { return constant(shape, 0); }
Values ones(const Extents& shape) { return constant(shape, 1); }

Values eye(const Extents& shape) {
  matrix(shape, "eye");
  Values v = zeros(shape);
  const auto columns = static_cast<std::size_t>(shape[1]), rows = static_cast<std::size_t>(shape[0]);
  for (std::size_t k = 0; k < std::min(rows, columns); ++k) v[k * columns + k] = 1;
  return v;
}

Values dirac(const Extents& shape, std::int64_t groups) {
  if (shape.size() < 3 || shape.size() > 5)
    throw Error("dirac",
                str_cat("needs the filters of a convolution, [out, in, k...] of rank 3 to 5, not ", text(shape)));
  Values v = zeros(shape);
  if (groups < 1 || shape[0] % groups != 0)
    throw Error("dirac", str_cat(shape[0], " outputs do not fall into ", groups, " groups"));
  i64 taps = 1, centre = 0;
  for (std::size_t axis = 2; axis < shape.size(); ++axis) {
    taps *= shape[axis];
    centre = centre * shape[axis] + shape[axis] / 2;
  }
  if (v.empty()) return v;
  const i64 outputs = shape[0] / groups;
  for (i64 g = 0; g < groups; ++g)
    for (i64 k = 0; k < std::min(outputs, shape[1]); ++k) v[((g * outputs + k) * shape[1] + k) * taps + centre] = 1;
  return v;
}

// ---- distributions ------------------------------------------------------------------------------------

Values uniform(const Extents& shape, const Source& source, double low, double high) {
  finite(low, "uniform", "low"), finite(high, "uniform", "high");
  if (!(low <= high)) throw Error("uniform", str_cat("[", low, ", ", high, ") has its bounds the wrong way round"));
  const auto from = static_cast<float>(low), to = static_cast<float>(high), below = std::nextafter(to, from);
  if (from == to) return constant(shape, from);
  Numbers numbers(source);
  return filled(shape, "uniform", [&](std::size_t k) {  // values that round up to the upper bound are clamped below it
    return std::clamp(static_cast<float>(low + (high - low) * numbers.unit(k)), from, below);
  });
}

Values normal(const Extents& shape, const Source& source, double mean, double std) {
  finite(mean, "normal", "the mean"), finite(std, "normal", "std");
  if (std < 0) throw Error("normal", str_cat("std is ", std, "; a standard deviation is not negative"));
  Numbers numbers(source);
  return filled(shape, "normal", [&](std::size_t k) { return mean + std * quantile(numbers.unit(k)); });
}

Values trunc_normal(const Extents& shape, const Source& source, double mean, double std, double low, double high) {
  finite(mean, "trunc_normal", "the mean"), finite(std, "trunc_normal", "std");
  if (!(std > 0)) throw Error("trunc_normal", str_cat("std is ", std, "; it must be positive"));
  if (!(low < high)) throw Error("trunc_normal", str_cat("[", low, ", ", high, "] has no lower bound below its upper"));
  double a = (low - mean) / std, b = (high - mean) / std;
  if (a > 8 || b < -8)
    throw Error("trunc_normal", str_cat("[", low, ", ", high, "] begins more than 8 standard deviations from the mean ",
                                        mean, ": move the bounds or the mean"));
  const double side = a > 0 ? -1 : 1;  // probabilities near 0 are exact, those near 1 are not
  if (side < 0) b = -std::exchange(a, -b);
  const double first = distribution(a), part = distribution(b) - first;
  Numbers numbers(source);
  return filled(shape, "trunc_normal", [&](std::size_t k) {
    return std::clamp(mean + side * std * quantile(first + part * numbers.unit(k)), low, high);
  });
}

// ---- by the number of connections ----------------------------------------------------------------------

Fans calculate_fans(const Extents& shape) {
  if (shape.size() < 2)
    throw Error("calculate_fans", str_cat("needs [out, in, ...], not ", text(shape), ": one axis has no fans"));
  elements(shape, "calculate_fans");
  i64 taps = 1;
  for (std::size_t axis = 2; axis < shape.size(); ++axis) taps *= shape[axis];
  return {shape[1] * taps, shape[0] * taps};
}

double calculate_gain(Nonlinearity f, double negative_slope) {
  switch (f) {
    case Nonlinearity::Tanh: return 5.0 / 3;
    case Nonlinearity::Relu: return std::sqrt(2.0);
    case Nonlinearity::LeakyRelu: return std::sqrt(2 / (1 + negative_slope * negative_slope));
    case Nonlinearity::Selu: return 0.75;
    default: return 1;
  }
}

namespace {
double xavier_std(const Extents& shape, double gain) {
  const Fans fans = calculate_fans(shape);
  const i64 both = fans.in + fans.out;
  return both ? gain * std::sqrt(2.0 / static_cast<double>(both)) : 0;
}
double kaiming_std(const Extents& shape, const Kaiming& k) {
  const Fans fans = calculate_fans(shape);
  const i64 fan = k.mode == Fan::In ? fans.in : fans.out;
  return fan ? calculate_gain(k.nonlinearity, k.a) / std::sqrt(static_cast<double>(fan)) : 0;
}
}  // namespace

Values xavier_uniform(const Extents& shape, const Source& source, double gain) {
  return symmetric(shape, source, std::sqrt(3.0) * xavier_std(shape, gain));
}
Values xavier_normal(const Extents& shape, const Source& source, double gain) {
  return normal(shape, source, 0, xavier_std(shape, gain));
}
Values kaiming_uniform(const Extents& shape, const Source& source, const Kaiming& k) {
  return symmetric(shape, source, std::sqrt(3.0) * kaiming_std(shape, k));
}
Values kaiming_normal(const Extents& shape, const Source& source, const Kaiming& k) {
  return normal(shape, source, 0, kaiming_std(shape, k));
}

// ---- structures ---------------------------------------------------------------------------------------

namespace {

// Uses eight partial sums in a fixed order, so that a compiler can vectorise it without changing a bit.
double dot(const double* a, const double* b, std::size_t n) {
  double sums[8] = {};
  std::size_t k = 0;
  for (; k + 8 <= n; k += 8)
    for (std::size_t i = 0; i < 8; ++i) sums[i] += a[k + i] * b[k + i];
  for (; k < n; ++k) sums[k % 8] += a[k] * b[k];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// Orthonormalises `count` vectors of n >= count normal numbers by modified Gram-Schmidt. The loss of orthogonality
// grows with the condition number, which is about n for such vectors.
void orthonormalise(std::vector<double>& v, std::size_t count, std::size_t n) {
  for (std::size_t k = 0; k < count; ++k) {
    double* q = v.data() + k * n;
    const double scale = 1 / std::sqrt(dot(q, q, n));
    for (std::size_t i = 0; i < n; ++i) q[i] *= scale;
    for (std::size_t j = k + 1; j < count; ++j) {
      double* w = v.data() + j * n;
      const double along = dot(q, w, n);
      for (std::size_t i = 0; i < n; ++i) w[i] -= along * q[i];
    }
  }
}

}  // namespace

Values orthogonal(const Extents& shape, const Source& source, double gain) {
  if (shape.size() < 2) throw Error("orthogonal", str_cat("needs two axes or more, not ", text(shape)));
  finite(gain, "orthogonal", "the gain");
  Values result(elements(shape, "orthogonal"));
  if (result.empty()) return result;
  const auto rows = static_cast<std::size_t>(shape[0]), columns = result.size() / rows;
  const bool wide = rows < columns;
  const std::size_t count = std::min(rows, columns), n = std::max(rows, columns);
  // Vector j is row j of a wide matrix, or column j of a tall one.
  const auto place = [&](std::size_t j, std::size_t i) { return wide ? j * columns + i : i * columns + j; };
  Numbers numbers(source);
  std::vector<double> v(result.size());
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t i = 0; i < n; ++i) v[j * n + i] = quantile(numbers.unit(place(j, i)));
  orthonormalise(v, count, n);
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t i = 0; i < n; ++i) result[place(j, i)] = static_cast<float>(gain * v[j * n + i]);
  return result;
}

Values sparse(const Extents& shape, const Source& source, double sparsity, double std) {
  matrix(shape, "sparse");
  if (!(sparsity >= 0 && sparsity <= 1))
    throw Error("sparse", str_cat("a sparsity of ", sparsity, " is outside [0, 1]"));
  Values v = normal(shape, source, 0, std);
  const auto rows = static_cast<std::size_t>(shape[0]), columns = static_cast<std::size_t>(shape[1]);
  const auto zeros = static_cast<std::size_t>(std::ceil(sparsity * static_cast<double>(rows)));
  Numbers numbers(source);
  std::vector<std::pair<std::uint64_t, std::size_t>> order(rows);  // drawn after the numbers of the elements
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t r = 0; r < rows; ++r) order[r] = {numbers.bits(v.size() + c * rows + r), r};
    std::sort(order.begin(), order.end());
    for (std::size_t k = 0; k < std::min(zeros, rows); ++k) v[order[k].second * columns + c] = 0;
  }
  return v;
}

}  // namespace lc::nn::init
