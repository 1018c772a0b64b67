// Sums of int8 products. The macros select the instructions: VNNI (dpbusd), MADD (16-bit products of pairs), on Arm
// I8MM (usdot), DOTPROD (sdot) or NEON alone (16-bit products); without a macro they are plain C++.
#pragma once

#include "lightcone/backends/cpu/kernels/dense/quantise.inl.h"

namespace lc::backends::cpu {
namespace {

// Offset that is subtracted from the codes of B before multiplication, because Arm's older instructions multiply signed
// bytes.
#if defined(NEON) && !defined(I8MM)
constexpr int kOffset = 128;
#else
constexpr int kOffset = 0;
#endif

// The same offset if A's codes are within +-127, which makes CodeSums possible.
#if defined(MADD)
constexpr int kCodeOffset = 128;
#else
constexpr int kCodeOffset = kOffset;
#endif

#if defined(MADD)
// Keeps GCC from reordering integer additions. It would compute all products first and spill the sums.
inline __m256i in_order(__m256i sum) {
  asm("" : "+x"(sum));
  return sum;
}
#endif

// Sums of one row of A with WIDTH columns of B. A word is four codes of each.
struct Sums {
#if defined(VNNI) && WIDTH == 16
  using Word = __m512i;
  using Codes = __m512i;
  __m512i sum = _mm512_setzero_si512();
  void begin(std::int32_t v) { sum = _mm512_set1_epi32(v); }
  static Word splat(const void* a) { return _mm512_set1_epi32(static_cast<int>(word(static_cast<const u8*>(a)))); }
  static Codes codes(vi b) { return reinterpret_cast<__m512i>(b); }
  void add(Codes b, Word a) { sum = _mm512_dpbusd_epi32(sum, b, a); }
  vi total() const { return reinterpret_cast<vi>(sum); }
#elif defined(VNNI)
  using Word = __m256i;
  using Codes = __m256i;
  __m256i sum = _mm256_setzero_si256();
  void begin(std::int32_t v) { sum = _mm256_set1_epi32(v); }
  static Word splat(const void* a) { return _mm256_set1_epi32(static_cast<int>(word(static_cast<const u8*>(a)))); }
  static Codes codes(vi b) { return reinterpret_cast<__m256i>(b); }
  void add(Codes b, Word a) { sum = _mm256_dpbusd_avx_epi32(sum, b, a); }
  vi total() const { return reinterpret_cast<vi>(sum); }
#elif defined(NEON) && (defined(I8MM) || defined(DOTPROD))
  using Word = int8x16_t;
  int32x4_t sum = vdupq_n_s32(0);
  void begin(std::int32_t v) { sum = vdupq_n_s32(v); }
  static Word splat(const void* a) { return vreinterpretq_s8_u32(vdupq_n_u32(word(static_cast<const u8*>(a)))); }
#if defined(I8MM)
  using Codes = uint8x16_t;
  static Codes codes(vi b) { return reinterpret_cast<uint8x16_t>(b); }
  void add(Codes b, Word a) { sum = vusdotq_s32(sum, b, a); }
#else
  using Codes = int8x16_t;
  static Codes codes(vi b) { return reinterpret_cast<int8x16_t>(b); }
  void add(Codes b, Word a) { sum = vdotq_s32(sum, b, a); }
#endif
  vi total() const { return reinterpret_cast<vi>(sum); }
#elif defined(NEON)
  using Word = int8x8_t;
  using Codes = int8x16_t;
  int32x4_t low = vdupq_n_s32(0), high = vdupq_n_s32(0);
  void begin(std::int32_t v) { low = high = vreinterpretq_s32_u64(vdupq_n_u64(static_cast<std::uint32_t>(v))); }
  static Word splat(const void* a) { return vreinterpret_s8_u32(vdup_n_u32(word(static_cast<const u8*>(a)))); }
  static Codes codes(vi b) { return reinterpret_cast<int8x16_t>(b); }
  void add(Codes b, Word a) {
    low = vpadalq_s16(low, vmull_s8(vget_low_s8(b), a));
    high = vpadalq_s16(high, vmull_s8(vget_high_s8(b), a));
  }
  vi total() const { return reinterpret_cast<vi>(vpaddq_s32(low, high)); }
#else
  using Word = const std::int8_t*;
  struct Codes {
    vi of[4];
  };
  vi sum = {};
  void begin(std::int32_t v) { sum = vi{} + v; }
  static Word splat(const std::int8_t* a) { return a; }
  static Codes codes(vi b) { return {{b & 255, b >> 8 & 255, b >> 16 & 255, b >> 24 & 255}}; }
  void add(const Codes& b, Word a) {
    for (int q = 0; q < 4; ++q) sum += b.of[q] * a[q];
  }
  vi total() const { return sum; }
#endif
  // Number of words that may be added before the next widen(): any number.
  static constexpr int words(int /*bits*/) { return 1 << 30; }
  void widen() {}
};

#if defined(MADD)
// Sums for signed codes of B, and of A within +-127: B's sign moves to A, and the sum of two products fits in 16 bits.
struct CodeSums {
  using Word = __m256i;
  struct Codes {
    __m256i signs, sizes;
  };
  __m256i sum = _mm256_setzero_si256();
  static constexpr int words(int /*bits*/) { return 1 << 30; }
  void begin(std::int32_t v) { sum = _mm256_set1_epi32(v); }
  static Word splat(const void* a) { return _mm256_set1_epi32(static_cast<int>(word(static_cast<const u8*>(a)))); }
  static Codes codes(vi b) {
    const auto all = reinterpret_cast<__m256i>(b);
    return {all, _mm256_abs_epi8(all)};
  }
  void add(const Codes& b, Word a) {
    const __m256i pairs = _mm256_maddubs_epi16(b.sizes, _mm256_sign_epi8(a, b.signs));
    sum = in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
  }
  void widen() {}
  vi total() const { return reinterpret_cast<vi>(sum); }
};
// Sums for codes of fewer than eight bits: products of bytes, summed by pairs, fit in 16 bits until widen() is called,
// which must happen after at most words(bits) words.
struct SmallSums {
  using Word = __m256i;
  using Codes = __m256i;
  __m256i sum = _mm256_setzero_si256(), narrow = _mm256_setzero_si256();
  static constexpr int words(int bits) { return 32767 / (2 * 127 * ((1 << bits) - 1)); }
  void begin(std::int32_t v) { sum = _mm256_set1_epi32(v); }
  static Word splat(const void* a) { return _mm256_set1_epi32(static_cast<int>(word(static_cast<const u8*>(a)))); }
  static Codes codes(vi b) { return reinterpret_cast<__m256i>(b); }
  void add(Codes b, Word a) { narrow = in_order(_mm256_add_epi16(narrow, _mm256_maddubs_epi16(b, a))); }
  void widen() {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(narrow, _mm256_set1_epi16(1)));
    narrow = _mm256_setzero_si256();
  }
  vi total() const { return reinterpret_cast<vi>(sum); }
};
#else
using CodeSums = Sums;
using SmallSums = Sums;
#endif
template <int Bits>
using SumsOf = std::conditional_t<(Bits < 8), SmallSums, CodeSums>;

}  // namespace
}  // namespace lc::backends::cpu
