#include "lightcone/reference/samples.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <utility>

#include "lightcone/core/op_eval.h"
#include "lightcone/reference/internal.h"

namespace lc {
namespace {

double part(std::uint64_t bits, int sample) {  // random sign; magnitude in [0.5, 1]
  const auto byte = static_cast<int>(bits >> (8 * sample) & 0xff);
  const double size = 0.5 + (byte & 127) / 254.0;
  return byte & 128 ? size : -size;
}
// Four of the eight samples, chosen at random. For two independent decisions, one of the four combinations is missing
// once in 35 times.
constexpr auto kHalves = [] {
  std::array<unsigned, 70> halves{};
  std::size_t n = 0;
  for (unsigned set = 0; set < 1u << kSamples; ++set)
    if (std::popcount(set) == kSamples / 2) halves[n++] = set;
  return halves;
}();
bool heads(std::uint64_t bits, int sample) { return kHalves[(bits >> 32) * kHalves.size() >> 32] >> sample & 1; }

Deviations either(double a, double b, double y, std::uint64_t bits) {
  Deviations s;
  for (int k = 0; k < kSamples; ++k) s[k] = deviation(heads(bits, k) ? a : b, y);
  return s;
}

double smallest(DType t) {  // possible loss below the normal range
  const DTypeInfo& f = info(t);
  return f.least_exponent < -100 ? (t == DType::F64 ? 1e-300 : 1e-37) : std::exp2(f.least_exponent - f.digits + 1);
}
double roundoff(DType t) { return t == DType::BF16 ? 0x1p-9 : std::exp2(-info(t).digits); }

double sample(const Sampled& v, int k) { return v.s ? v.x + v.s[k] : v.x; }
i64 whole_sample(const Sampled& v, int k) { return v.s ? eval::add(v.i, std::llround(v.s[k])) : v.i; }
bool unknown(const Sampled& v, int k) { return v.s && std::isnan(v.s[k]); }

// The range that an implementation may see for an operand. A sample that overflows extends it on its own side of 0.
std::pair<double, double> within_reach(const Sampled& v) {
  double far = 0, least = v.x, most = v.x;
  for (int k = 0; v.s && k < kSamples; ++k) {
    if (std::isnan(v.s[k])) return {-kInf, kInf};
    if (std::isfinite(v.s[k])) far = std::max(far, std::fabs(v.s[k]));
    else (v.s[k] < 0 ? least : most) = v.s[k];
  }
  return {least - kReach * far, most + kReach * far};
}

// True if the function is undefined, or infinite on one side only, within reach of the samples.
bool breaks(Op op, std::span<const Sampled> x, double e0, double e1) {
  const auto about_zero = [](double v, double e) { return e != 0 && !(std::fabs(v) > kReach * e); };
  const double y = x.size() > 1 ? x[1].x : 0;
  switch (op) {
    case Op::Log2:
    case Op::Sqrt:
    case Op::Recip: return about_zero(x[0].x, e0);
    case Op::Div:
    case Op::Mod: return about_zero(y, e1);
    case Op::Pow: {  // an integer exponent is fine for every base, a positive one for 0
      const bool is_whole = e1 == 0 && y == std::nearbyint(y);
      return (about_zero(x[0].x, e0) && !(is_whole && y >= 0)) || (e1 != 0 && x[0].x < 0);
    }
    default: return false;
  }
}

// If x is at a discontinuity (comparison, whole number, remainder), gives samples one of the two possible results and
// returns true. For a sine of an unknown angle, spreads them over its range.
bool jumps(const Node& n, std::span<const Sampled> x, double y, std::uint64_t bits, Deviations& s) {
  if (n.op == Op::LessThan || n.op == Op::Equal) {
    double e = 0;
    for (int k = 0; k < kSamples; ++k) {
      const double d = std::fabs((sample(x[0], k) - sample(x[1], k)) - (x[0].x - x[1].x));
      if (d > e) e = d;
    }
    if (!(std::fabs(x[0].x - x[1].x) <= kReach * e)) return false;
    s = either(0, 1, y, bits);
    return true;
  }
  if (info(n.op).has(kPiecewiseConstant)) {
    const double reach = kReach * spread(x[0].s), step = n.op == Op::Round ? 0.5 : 0;
    if (reach == 0 || !std::isfinite(x[0].x)) return false;
    const double below = std::floor(x[0].x - reach + step), above = std::floor(x[0].x + reach + step);
    if (!std::isfinite(above - below)) s = kUnknown;
    else if (below < above) s = either(below, above, y, bits);
    else return false;
    return true;
  }
  if (info(n.op).has(kPeriodic)) {
    const double reach = kReach * spread(x[0].s);
    if (!std::isfinite(reach) || reach < 1) return false;  // in radians; a sine is nearly linear below
    // Eight angles may lie in the same part of their periods, and -1 and 1 alone have one square.
    constexpr std::array<double, kSamples> kSizes{1, 1, 0, 1, 0.7, 1, 1, 0.3};
    for (int k = 0; k < kSamples; ++k) {
      const double size = kSizes[(static_cast<std::size_t>(k) + (bits & 7)) % kSamples];
      s[k] = deviation(heads(bits, k) ? size : -size, y);
    }
    return true;
  }
  if (n.op != Op::Mod) return false;
  // the divisor's error is multiplied by the quotient
  const double m = std::fabs(x[1].x), r = std::fabs(y);
  const double reach = kReach * (spread(x[0].s) + spread(x[1].s) * std::fabs(x[0].x / x[1].x));
  if (!(reach < m)) s = kUnknown;
  else if (r < reach || m - r < reach) s = either(0, std::copysign(m, x[0].x), y, bits);
  else return false;
  return true;
}

}  // namespace

double spread(const double* s) {
  double far = 0;
  for (int k = 0; s && k < kSamples; ++k) {
    if (std::isnan(s[k])) return kInf;
    far = std::max(far, std::fabs(s[k]));
  }
  return far;
}

double deviation(double sample, double value) {
  if (sample == value || (std::isnan(sample) && std::isnan(value))) return 0;
  return std::isfinite(value) ? sample - value : kNaN;
}

// NaN from 2^50 on, where samples would lose integer precision.
double deviation(i64 sample, i64 value) {
  const double d = static_cast<double>(sample) - static_cast<double>(value);
  return std::fabs(d) < 0x1p50 ? static_cast<double>(eval::add(sample, -value)) : kNaN;
}

double largest(DType t) { return info(t).largest; }

bool rounds(Op op) { return !info(op).has(kRoundsNothing); }

double unit_of(Op op, DType t) {
  // two units in the last place for polynomial approximations, with a safety factor of two
  const bool plain = op == Op::Add || op == Op::Mul;
  return is_narrow(t) ? std::exp2(1 - info(t).digits) : roundoff(t) * (plain ? 4 : 8);
}
double unit_of_sum(DType t) { return roundoff(t) * 4; }
double opposing(double sum, double term) {
  return std::isinf(sum) && std::isfinite(term) && std::signbit(term) != std::signbit(sum) ? std::fabs(term) : 0;
}
bool overflows(DType t, double magnitude) { return t != DType::F8E4M3FN && magnitude >= largest(t) * (1 - 0x1p-6); }

// Implementations may differ in NaN payloads and in signs of zeros.
static Deviations carried_bits(DType from, DType to, const Sampled& x, double y, i64 i) {
  if (is_float(from) && (x.x == 0 || std::isnan(x.x))) return kUnknown;
  Deviations s;
  for (int k = 0; k < kSamples; ++k) {
    double& d = s[k];
    if (unknown(x, k)) {
      d = kNaN;
      continue;
    }
    const Element e = bitcast({sample(x, k), whole_sample(x, k)}, from, to);
    d = is_float(to) ? deviation(e.f, y) : deviation(e.i, i);
  }
  return s;
}

Deviations carried(const Node& n, DType operands, std::span<const Sampled> x, double y, i64 i, std::uint64_t bits) {
  if (n.op == Op::Bitcast) return carried_bits(operands, n.dtype, x[0], y, i);
  const bool floats = is_float(operands);
  Deviations s;
  if (floats && std::isfinite(y) && (n.op == Op::Add || n.op == Op::Mul)) {  // the common case; unknown stays NaN
    const double *a = x[0].s ? x[0].s : kNoDeviation.data(), *b = x[1].s ? x[1].s : kNoDeviation.data();
    if (n.op == Op::Add)
      for (std::size_t k = 0; k < kSamples; ++k) s[k] = (x[0].x + a[k]) + (x[1].x + b[k]) - y;
    else
      for (std::size_t k = 0; k < kSamples; ++k) s[k] = (x[0].x + a[k]) * (x[1].x + b[k]) - y;
    return s;
  }
  if (floats) {
    if (breaks(n.op, x, spread(x[0].s), x.size() > 1 ? spread(x[1].s) : 0)) return kUnknown;
    if (jumps(n, x, y, bits, s)) return s;
  }
  for (int k = 0; k < kSamples; ++k) {
    double& to = s[k];
    if (n.op == Op::Where) {  // the operand not chosen does not matter
      const Sampled& chosen = unknown(x[0], k) ? x[0] : whole_sample(x[0], k) != 0 ? x[1] : x[2];
      if (unknown(chosen, k)) to = kNaN;
      else to = floats ? deviation(sample(chosen, k), y) : deviation(whole_sample(chosen, k), i);
      continue;
    }
    to = kNaN;
    if (std::any_of(x.begin(), x.end(), [&](const Sampled& v) { return unknown(v, k); })) continue;
    const auto at = [&](std::size_t a) { return a < x.size() ? sample(x[a], k) : 0; };
    const auto whole_at = [&](std::size_t a) { return a < x.size() ? whole_sample(x[a], k) : 0; };
    if (!floats)
      to = deviation(wrapped(n.dtype, on_integers(n.op, operands)(whole_at(0), whole_at(1), whole_at(2))), i);
    else to = deviation(eval_of(n.op).f(at(0), at(1), at(2)), y);
  }
  return s;
}

// If the samples are so far apart that an implementation may overflow, makes half of them infinite.
static void stray_over(DType t, double y, std::uint64_t bits, Deviations& s) {
  double far = 0;
  for (const double d : s)
    if (std::isfinite(d)) far = std::max(far, std::fabs(d));
  if (!std::isfinite(y) || !overflows(t, std::fabs(y) + kReach * far)) return;
  for (int k = 0; k < kSamples; ++k)
    if (double& d = s[k]; std::isfinite(d) && heads(bits, k)) d = std::copysign(kInf, d);
}

Deviations converted(DType from, DType to, const Sampled& x, double y, i64 i, std::uint64_t bits) {
  Deviations s;
  if (is_float(from) && !is_float(to)) {
    const auto [least, most] = within_reach(x);
    const bool zero = to == DType::Bool && least <= 0 && most >= 0;
    const i64 low = zero ? 0 : whole(to, least), high = zero ? 1 : whole(to, most);
    if (low != high) {
      for (int k = 0; k < kSamples; ++k) s[k] = deviation(heads(bits, k) ? low : high, i);
      return s;
    }
  }
  if (const double reach = kReach * spread(x.s); is_narrow(to) && is_float(from) && reach < std::fabs(y) * 0x1p-6) {
    // rounds to one value, or to one of two neighbours
    const double low = rounded(to, x.x - reach, Rounding::Storage), high = rounded(to, x.x + reach, Rounding::Storage);
    return low == high ? kNoDeviation : either(low, high, y, bits);
  }
  for (int k = 0; k < kSamples; ++k) {
    double& d = s[k];
    if (unknown(x, k)) d = kNaN;
    else if (is_float(to)) d = deviation(is_float(from) ? sample(x, k) : to_f64(whole_sample(x, k), from), y);
    else d = deviation(is_float(from) ? whole(to, sample(x, k)) : wrapped(to, whole_sample(x, k)), i);
  }
  if (is_float(to)) stray_over(to, y, bits, s);
  return s;
}

void round_samples(DType t, double unit, double y, double magnitude, std::uint64_t bits, Deviations& s) {
  if (!std::isfinite(y) || magnitude == 0) return;
  const double size = unit * magnitude + smallest(t);
  const bool over = overflows(t, magnitude);
  for (int k = 0; k < kSamples; ++k) {
    double& d = s[k];
    d += size * part(bits, k);
    if (!over || std::isnan(d)) continue;
    // a sum whose terms overflow before they cancel may have any value
    if (std::fabs(y) < magnitude * 0.5) d = kNaN;
    else if (heads(bits, k)) d = std::copysign(kInf, y);
  }
  if (!over) stray_over(t, y, bits, s);
}

void reread(DType t, double x, std::uint64_t bits, Deviations& s) {
  if (!std::isfinite(x) || exact(s)) return;
  perturb(roundoff(t) * (is_narrow(t) ? 1 : 2) * std::fabs(x), bits, s);
}

void perturb(double size, std::uint64_t bits, Deviations& s) {
  for (int k = 0; k < kSamples; ++k) s[k] += size * part(bits, k);
}

}  // namespace lc
