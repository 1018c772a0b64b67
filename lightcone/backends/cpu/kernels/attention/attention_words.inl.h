// Operand words of products with many rows: floats, or with AVX-512 BF16 and tile registers (Precision::Medium) pairs
// of numbers rounded to bf16, two per word. Sums are f32.
#pragma once

#include "lightcone/backends/cpu/kernels/vectors/vector.inl.h"

namespace lc::backends::cpu {
namespace {

#if defined(__AVX512BF16__)
constexpr i64 kNumbers = 2;  // numbers per word

// The instruction treats subnormal numbers as zeros.
inline vf products(vf a, vf b, vf sum) { return add_pairs((__m512i)a, (__m512i)b, sum); }
// The words of the first n <= 2 * WIDTH numbers, padded with zeros.
inline vf row_words(const float* p, i64 n) {
  const auto words = [](vf low, vf high) {
    return reinterpret_cast<vf>(_mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(high), reinterpret_cast<__m512>(low)));
  };
  if (n == 2 * WIDTH) return words(load(p), load(p + WIDTH));
  const vf low = load_part(p, std::min<i64>(n, WIDTH)), high = n > WIDTH ? load_part(p + WIDTH, n - WIDTH) : vf{};
  return words(low, high);
}
#elif defined(TILES)  // emulated
constexpr i64 kNumbers = 2;
inline vf row_words(const float* p, i64 n) {
  vf even = {}, odd = {};
  for (i64 i = 0; i < n; ++i) (i % 2 ? odd : even)[i / 2] = p[i];
  return reinterpret_cast<vf>(bf16_words(even, odd));
}
#else
constexpr i64 kNumbers = 1;
inline vf products(vf a, vf b, vf sum) { return fma(a, b, sum); }
inline vf row_words(const float* p, i64 n) { return load_part(p, n); }
#endif

// A word per lane.
inline vf paired(vf even, [[maybe_unused]] vf odd) {
  if constexpr (kNumbers == 1) return even;
  else return reinterpret_cast<vf>(bf16_words(even, odd));
}
constexpr i64 words(i64 numbers) { return (numbers + kNumbers - 1) / kNumbers; }
// How many numbers a vector of words from word c on has, of `all`.
constexpr i64 word_numbers(i64 c, i64 all) { return std::clamp<i64>(all - c * kNumbers, 0, kNumbers * WIDTH); }
// The words of n numbers that are `step` apart.
inline vf row_words(const float* p, i64 step, i64 n) {
  if (step == 1) return row_words(p, n);
  float row[kNumbers * WIDTH];
  for (i64 i = 0; i < n; ++i) row[i] = p[i * step];
  return row_words(row, n);
}

}  // namespace
}  // namespace lc::backends::cpu
