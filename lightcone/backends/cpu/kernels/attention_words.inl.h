// Operand words of products with many rows: floats, or with AVX-512 BF16 (Precision::Medium) pairs of numbers rounded
// to bf16, two per word. Sums are f32.
#pragma once

#include "lightcone/backends/cpu/kernels/vector.inl.h"

namespace lc::backends::cpu {
namespace {

#if defined(__AVX512BF16__)
constexpr i64 kNumbers = 2;  // numbers per word

// The instruction treats subnormal numbers as zeros.
inline vf products(vf a, vf b, vf sum) { return add_pairs((__m512i)a, (__m512i)b, sum); }
// A word per lane.
inline vf paired(vf even, vf odd) {
  alignas(64) static constexpr std::uint16_t order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                          8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const auto both = (__m512i)_mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(odd), reinterpret_cast<__m512>(even));
  return reinterpret_cast<vf>(_mm512_permutexvar_epi16(_mm512_load_si512(order), both));
}
// The words of the first n <= 2 * WIDTH numbers, padded with zeros.
inline vf row_words(const float* p, i64 n) {
  const vf low = load_part(p, std::min<i64>(n, WIDTH)), high = n > WIDTH ? load_part(p + WIDTH, n - WIDTH) : vf{};
  return reinterpret_cast<vf>(_mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(high), reinterpret_cast<__m512>(low)));
}
#else
constexpr i64 kNumbers = 1;
inline vf products(vf a, vf b, vf sum) { return fma(a, b, sum); }
inline vf paired(vf even, vf) { return even; }
inline vf row_words(const float* p, i64 n) { return load_part(p, n); }
#endif

constexpr i64 words(i64 numbers) { return (numbers + kNumbers - 1) / kNumbers; }
// The words of n numbers that are `step` apart.
inline vf row_words(const float* p, i64 step, i64 n) {
  if (step == 1) return row_words(p, n);
  float row[kNumbers * WIDTH];
  for (i64 i = 0; i < n; ++i) row[i] = p[i * step];
  return row_words(row, n);
}

}  // namespace
}  // namespace lc::backends::cpu
