// Formats whose scale is the largest value of a block: every writer gives the same bits.
#include <algorithm>
#include <cmath>

#include "lightcone/io/checkpoints/block_writer.h"

namespace lc::io {
namespace {

// 0 for a scale that 16 bits cannot tell from 0, and of which the inverse would be infinite.
float inverse(float d) { return std::fabs(d) > 1e-30f ? 1 / d : 0; }

// The value of the largest magnitude, with its sign; the first of equal ones.
float extreme(const QuantInfo& f, const float* x) {
  float most = 0, value = 0;
  for (int k = 0; k < f.elements; ++k)
    if (std::fabs(x[k]) > most) most = std::fabs(x[k]), value = x[k];
  return value;
}

// The largest value takes the code of the most negative number, which reaches further than the most positive one.
void symmetric(const QuantInfo& f, const float* x, BlockWriter& to) {
  const int bias = -f.q.bias, most = 2 * bias - 1;
  const float d = extreme(f, x) / static_cast<float>(f.q.bias), id = inverse(d);
  for (int k = 0; k < f.elements; ++k)
    to.number(k, std::clamp(static_cast<int>(x[k] * id + (static_cast<float>(bias) + 0.5f)), 0, most));
  to.d(d);
}

void affine(const QuantInfo& f, const float* x, BlockWriter& to) {
  const int most = f.format == QuantFormat::Q4_1 ? 15 : 31;
  const auto [low, high] = std::minmax_element(x, x + f.elements);
  const float d = (*high - *low) / static_cast<float>(most), id = inverse(d), least = *low;
  for (int k = 0; k < f.elements; ++k) to.number(k, std::clamp(static_cast<int>((x[k] - least) * id + 0.5f), 0, most));
  to.d(d), to.d_min(least);
}

// Numbers from -most to most.
void balanced(const QuantInfo& f, const float* x, int most, BlockWriter& to) {
  const float d = std::fabs(extreme(f, x)) / static_cast<float>(most), id = inverse(d);
  for (int k = 0; k < f.elements; ++k) to.number(k, static_cast<int>(std::round(x[k] * id)) - f.q.bias);
  to.d(d);
}

// Five ternary digits t make the byte ceil(256 t / 243), of which multiplications by 3 bring up one digit after
// another.
void ternary(const QuantInfo& f, const float* x, BlockWriter& to) {
  const float d = std::fabs(extreme(f, x)), id = inverse(d);
  int digits[64] = {}, places[64] = {};
  for (int k = 0; k < f.elements; ++k) {
    const QuantBits<int> b = quant_bits(f.q.low, k);
    constexpr int kPowers[] = {81, 27, 9, 3, 1};
    digits[b.byte] += (static_cast<int>(std::round(x[k] * id)) + 1) * kPowers[b.shift];
    places[b.byte] = 1;
  }
  for (int at = 0; at < f.d; ++at)
    if (places[at]) to.byte(at) = std::byte(static_cast<unsigned>((digits[at] * 256 + 242) / 243));
  to.d(d);
}

// OCP's rule: the exponent of the largest value, less that of the largest code.
void shared_exponent(const QuantInfo& f, const float* x, BlockWriter& to) {
  const float most = std::fabs(extreme(f, x));
  const int e = most > 0 ? std::clamp(std::ilogb(most) - 2 + 127, 0, 254) : 0;
  to.byte(f.d) = std::byte(static_cast<unsigned>(e));
  const auto d = static_cast<float>(quant_d(f, f.d, [&](int at) { return static_cast<int>(to.byte(at)); }));
  for (int k = 0; k < f.elements; ++k) {
    int best = 0;
    float least = INFINITY;
    for (int c = 0; c < 16; ++c)
      if (const float far = std::fabs(static_cast<float>(f.more.book.levels[c]) * d - x[k]); far < least)
        least = far, best = c;
    to.number(k, best);
  }
}

}  // namespace

void quantize_plain(const QuantInfo& f, const float* x, std::byte* block) {
  BlockWriter to(f, block);
  if (f.format == QuantFormat::MXFP4) shared_exponent(f, x, to);
  else if (f.format == QuantFormat::TQ1_0) ternary(f, x, to);
  else if (f.format == QuantFormat::TQ2_0) balanced(f, x, 1, to);
  else if (f.format == QuantFormat::Q8_0) balanced(f, x, 127, to);
  else if (f.d_min >= 0) affine(f, x, to);
  else symmetric(f, x, to);
}

}  // namespace lc::io
