// Sums of products of bytes. One of VNNI (dpbusd), MADD (16-bit products of pairs) and nothing (plain C++) says how
// they are made.
#pragma once

#include "lightcone/backends/cpu/kernels/quantise.inl.h"

namespace lc::host {
namespace {

// The sums of one row of A with WIDTH columns. A word is four codes of each.
struct Sums {
#if defined(VNNI) && WIDTH == 16
  using Word = __m512i;
  using Codes = __m512i;
  __m512i sum = _mm512_setzero_si512();
  static Word splat(const void* a) { return _mm512_set1_epi32(static_cast<int>(word(static_cast<const u8*>(a)))); }
  static Codes codes(vi b) { return reinterpret_cast<__m512i>(b); }
  void add(Codes b, Word a) { sum = _mm512_dpbusd_epi32(sum, b, a); }
  vi total() const { return reinterpret_cast<vi>(sum); }
#elif defined(VNNI)
  using Word = __m256i;
  using Codes = __m256i;
  __m256i sum = _mm256_setzero_si256();
  static Word splat(const void* a) { return _mm256_set1_epi32(static_cast<int>(word(static_cast<const u8*>(a)))); }
  static Codes codes(vi b) { return reinterpret_cast<__m256i>(b); }
  void add(Codes b, Word a) { sum = _mm256_dpbusd_avx_epi32(sum, b, a); }
  vi total() const { return reinterpret_cast<vi>(sum); }
#elif defined(MADD)
  // The product of bytes saturates its sums of pairs, that of 16 bits is exact. `low` is of columns 0, 1, 4 and 5.
  using Word = __m256i;
  struct Codes {
    __m256i low, high;
  };
  __m256i low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
  static Word splat(const void* a) {
    return _mm256_cvtepi8_epi16(_mm_set1_epi32(static_cast<int>(word(static_cast<const u8*>(a)))));
  }
  static Codes codes(vi b) {
    const __m256i all = reinterpret_cast<__m256i>(b), zero = _mm256_setzero_si256();
    return {_mm256_unpacklo_epi8(all, zero), _mm256_unpackhi_epi8(all, zero)};
  }
  void add(const Codes& b, Word a) {
    low = _mm256_add_epi32(low, _mm256_madd_epi16(b.low, a));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(b.high, a));
  }
  vi total() const { return reinterpret_cast<vi>(_mm256_hadd_epi32(low, high)); }
#else
  using Word = const std::int8_t*;
  struct Codes {
    vi of[4];
  };
  vi sum = {};
  static Word splat(const std::int8_t* a) { return a; }
  static Codes codes(vi b) { return {{b & 255, b >> 8 & 255, b >> 16 & 255, b >> 24 & 255}}; }
  void add(const Codes& b, Word a) {
    for (int q = 0; q < 4; ++q) sum += b.of[q] * a[q];
  }
  vi total() const { return sum; }
#endif
};

}  // namespace
}  // namespace lc::host
