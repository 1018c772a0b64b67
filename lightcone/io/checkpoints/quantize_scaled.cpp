// Formats with a scale for each group of values, which is chosen for the least sum of squared errors.
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "lightcone/io/checkpoints/block_writer.h"

namespace lc::io {
namespace {

constexpr int kMostGroups = 16;
constexpr float kLeastScale = 1e-30f;  // below it the inverse might be infinite
constexpr int kMostValues = 32;        // in a group
constexpr int kRounds = 4;             // fitting a scale to codes and codes to the scale
constexpr int kSteps = 5;              // tries on each side of the plain one
constexpr float kAffineStep = 0.2f, kStep = 0.15f, kLevelStep = 0.015f;  // in codes; of books, in shares of the range

// What the numbers of a format are: whole ones from `least` to `most`, or the levels of a book.
struct Numbers {
  int least, most;
  const std::int8_t* levels = nullptr;  // 16 in ascending order

  // The number next to v, as its code.
  int code(float v) const {
    if (!levels) return whole(v);
    int k = 0;
    while (k < 15 && v >= 0.5f * static_cast<float>(levels[k] + levels[k + 1])) ++k;
    return k;
  }
  float value(int code) const { return static_cast<float>(levels ? levels[code] : code); }
  // Rounds to the nearest, ties to even, without a call: after the addition no bits are left for fractions.
  int whole(float v) const {
    constexpr float kShift = 12582912;  // 1.5 * 2^23
    const float in_range = std::min(std::max(v, static_cast<float>(least)), static_cast<float>(most));
    return static_cast<int>((in_range + kShift) - kShift);
  }
};
// The level next to each half, so that no search is needed for it. Levels are from -128 to 127.
class NearestLevels {
 public:
  explicit NearestLevels(const Numbers& n) {
    for (std::size_t k = 0; k < near_.size(); ++k) near_[k] = n.value(n.code((static_cast<float>(k) - kZero) * 0.5f));
  }
  float operator()(float v) const {
    const float half = std::min(std::max(v * 2 + kZero, 0.0f), static_cast<float>(near_.size() - 1));
    return near_[static_cast<std::size_t>(half)];
  }

 private:
  static constexpr float kZero = 256;
  std::array<float, 512> near_{};
};

// A group's scale, and its minimum: values are about scale * number - minimum.
struct Fit {
  float scale = 0, minimum = 0;
  float error = 0;
};

// What a look at a group's values with a given scale and minimum says.
struct Look {
  float error = 0;
  Fit better = {};  // what fits the codes best that these chose
};
constexpr int kLanes = 8;  // sums are split, so that compilers make vectors of them

float sum_of(const std::array<float, kLanes>& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

// The numbers that values get.
template <class Count>
void choose(const Numbers& n, const float* x, Count count, float scale, float minimum, float* numbers) {
  const float inverse = std::fabs(scale) > kLeastScale ? 1 / scale : 0;
  if (n.levels) {
    static const NearestLevels iq4(n);  // the one book that is written here
    for (int k = 0; k < count; ++k) numbers[k] = iq4((x[k] + minimum) * inverse);
    return;
  }
  for (int k = 0; k < count; ++k) numbers[k] = static_cast<float>(n.whole((x[k] + minimum) * inverse));
}

template <class Count>
Look looked(const Numbers& n, const float* x, Count count, const Fit& f, bool affine) {
  float l[kMostValues];
  choose(n, x, count, f.scale, f.minimum, l);
  std::array<float, kLanes> error{}, sl{}, sll{}, sx{}, sxl{};
  for (int k = 0; k < count; k += kLanes)
    for (int j = 0; j < kLanes; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const float number = l[k + j], value = x[k + j], far = f.scale * number - f.minimum - value;
      error[at] += far * far, sl[at] += number, sll[at] += number * number, sx[at] += value, sxl[at] += number * value;
    }
  const double s1 = count, l1 = sum_of(sl), l2 = sum_of(sll), x1 = sum_of(sx), xl = sum_of(sxl);
  const double det = s1 * l2 - l1 * l1;
  double scale = l2 > 0 ? xl / l2 : 0, minimum = 0;
  if (affine && det > 0)
    if (const double m = (l1 * xl - l2 * x1) / det; m > 0) minimum = m, scale = (s1 * xl - l1 * x1) / det;
  return {sum_of(error), {static_cast<float>(scale), static_cast<float>(minimum)}};
}
// The same with a count that the compiler knows.
Look look(const Numbers& n, const float* x, int count, const Fit& f, bool affine) {
  return count == 16 ? looked(n, x, std::integral_constant<int, 16>(), f, affine)
                     : looked(n, x, std::integral_constant<int, 32>(), f, affine);
}

// The best of several steps between the codes of a group.
Fit fitted(const Numbers& n, const float* x, int count, bool affine) {
  float low = x[0], high = x[0];
  for (int k = 1; k < count; ++k) low = std::min(low, x[k]), high = std::max(high, x[k]);
  if (affine) low = std::min(low, 0.0f);  // minima are subtracted, and none is negative
  const float extreme = std::fabs(high) > std::fabs(low) ? high : low;
  if (high == low || extreme == 0) {
    if (affine) return {0, -low, 0};
    if (extreme == 0) return {};
  }
  Fit best{.error = INFINITY};
  const auto look_at = [&](const Fit& f) {
    const Look at = look(n, x, count, f, affine);
    if (at.error < best.error) best = {f.scale, f.minimum, at.error};
    return at.better;
  };
  const auto consider = [&](const Fit& guess) { look_at(look_at(guess)); };
  if (affine) {
    for (int step = -kSteps; step <= kSteps; ++step) {
      const float codes = static_cast<float>(n.most) + kAffineStep * static_cast<float>(step);
      if (codes > 0) consider({(high - low) / codes, -low, 0});
    }
  } else {  // both ends can take the largest value: numbers reach further below zero than above
    const float ends[] = {n.value(n.levels ? 0 : n.least), n.value(n.levels ? 15 : n.most)};
    const float part = n.levels ? std::fabs(ends[0]) * kLevelStep : kStep;
    for (const float end : ends)
      for (int step = -kSteps; step <= kSteps; ++step)
        consider({extreme / (end + part * static_cast<float>(step)), 0, 0});
  }
  for (int round = 0; round < kRounds; ++round) {
    const float before = best.error;
    look_at(look(n, x, count, best, affine).better);
    if (!(best.error < before)) break;
  }
  return best;
}

// ---- scales of scales -----------------------------------------------------------------------------

Numbers numbers_of(const QuantInfo& f) {
  if (f.more.book.width) return {0, 15, f.more.book.levels};
  const int bits = std::max(f.q.low.packing.bits, f.q.high.packing.bits ? f.q.high.place + f.q.high.packing.bits : 0);
  return {f.q.bias, (1 << bits) - 1 + f.q.bias};
}
// The codes of scales: four or six bits, or a whole byte.
Numbers scales_of(const QuantInfo& f) {
  if (f.scale.is_signed) return {-128, 127};
  const int bits =
      f.scale.high.packing.bits ? f.scale.high.place + f.scale.high.packing.bits : f.scale.low.packing.bits;
  return {f.scale.bias, (1 << bits) - 1 + f.scale.bias};
}

void put_numbers(const QuantInfo& f, const Numbers& n, const float* x, int first, int count, float scale, float minimum,
                 BlockWriter& to) {
  const float inverse = std::fabs(scale) > kLeastScale ? 1 / scale : 0;
  for (int k = 0; k < count; ++k)
    to.number(first + k, n.code((x[first + k] + minimum) * inverse) - (n.levels ? 0 : f.q.bias));
}

struct Chosen {
  int scale = 0, minimum = 0;
};
// The whole numbers near the fitted scale and minimum that leave the least error.
Chosen rounded(const Numbers& n, const Numbers& codes, const Numbers& minima, const float* x, int count, const Fit& fit,
               float d, float d_min) {
  const auto nearest = [](const Numbers& of, float v, float unit) { return unit != 0 ? of.code(v / unit) : 0; };
  const int scale = nearest(codes, fit.scale, d), minimum = nearest(minima, fit.minimum, d_min);
  Chosen best{scale, minimum};
  float least = INFINITY;
  for (int s = std::max(scale - 1, codes.least); s <= std::min(scale + 1, codes.most); ++s)
    for (int m = std::max(minimum - 1, minima.least); m <= std::min(minimum + 1, minima.most); ++m)
      if (const Look at = look(n, x, count, {d * static_cast<float>(s), d_min * static_cast<float>(m)}, false);
          at.error < least)
        least = at.error, best = {s, m};
  return best;
}

void grouped(const QuantInfo& f, const float* x, BlockWriter& to) {
  const Numbers n = numbers_of(f), codes = scales_of(f);
  const bool affine = f.d_min >= 0;
  const Numbers minima = affine ? Numbers{0, codes.most} : Numbers{0, 0};
  const int count = f.scaled(), groups = f.elements / count;
  std::array<Fit, kMostGroups> fits;
  float most = 0, most_minimum = 0;  // the scale of the largest magnitude, with its sign
  for (int g = 0; g < groups; ++g) {
    fits[static_cast<std::size_t>(g)] = fitted(n, x + g * count, count, affine);
    const Fit& fit = fits[static_cast<std::size_t>(g)];
    if (std::fabs(fit.scale) > std::fabs(most)) most = fit.scale;
    most_minimum = std::max(most_minimum, fit.minimum);
  }
  // codes with a sign reach further below zero, where the largest scale goes
  const float d = to.d(most / static_cast<float>(codes.least < 0 ? codes.least : codes.most));
  const float d_min = affine ? to.d_min(most_minimum / static_cast<float>(minima.most)) : 0;
  for (int g = 0; g < groups; ++g) {
    const Chosen c = rounded(n, codes, minima, x + g * count, count, fits[static_cast<std::size_t>(g)], d, d_min);
    for (int k = g * count; k < (g + 1) * count; k += 16) {
      to.scale(k, c.scale - (f.scale.is_signed ? 0 : f.scale.bias));
      if (affine) to.minimum(k, c.minimum);
    }
    put_numbers(f, n, x, g * count, count, d * static_cast<float>(c.scale), d_min * static_cast<float>(c.minimum), to);
  }
}

}  // namespace

void quantize_scaled(const QuantInfo& f, const float* x, std::byte* block) {
  BlockWriter to(f, block);
  if (f.scale.low.packing.bits) return grouped(f, x, to);
  const Numbers n = numbers_of(f);  // one scale for the block
  const float d = to.d(fitted(n, x, f.elements, false).scale);
  put_numbers(f, n, x, 0, f.elements, d, 0, to);
}

}  // namespace lc::io
