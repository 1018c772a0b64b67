// Channels-last convolutions over pairs of channels in bf16: the register tile of MR pixels x VECTORS vectors of output
// channels, and rounding to pairs, by the CPU's own instructions or by multiply-adds of the rounded values.
#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/kernels/conv/nhwc_tile.inl.h"

namespace lc::backends::cpu {
namespace {

using Word = std::uint32_t;

#if defined(__AVX512BF16__)
using Pair = __m512i;
inline Pair pairs(const float* p) { return _mm512_loadu_si512(p); }
inline Pair same_pairs(const float* p) {
  std::int32_t word;
  std::memcpy(&word, p, 4);
  return _mm512_set1_epi32(word);
}
inline vf products(Pair a, Pair b, vf c) { return add_pairs(a, b, c); }
#else
struct Pair {
  vf even, odd;
};
inline Pair pairs(vu v) { return {reinterpret_cast<vf>(v << 16), reinterpret_cast<vf>(v & 0xffff0000u)}; }
inline Pair pairs(const float* p) { return pairs(*reinterpret_cast<const vu_stored*>(p)); }
inline Pair same_pairs(const float* p) {
  Word word;
  std::memcpy(&word, p, 4);
  return pairs(vu{} + word);
}
inline vf products(const Pair& a, const Pair& b, vf c) { return fma(a.odd, b.odd, fma(a.even, b.even, c)); }
#endif

struct PairTaps {
  using Vector = Pair;
  static Vector weights(const float* w) { return pairs(w); }
  static Vector repeated(const float* p) { return same_pairs(p); }
  static vf add(const Vector& a, const Vector& b, vf c) { return products(a, b, c); }
};

#if defined(__AVX512BF16__)
inline __m512i narrowed(vf low, vf high) {
  return (__m512i)_mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(high), reinterpret_cast<__m512>(low));
}

// Rounds the contiguous channels of a pixel.
void round_pixel(const float* from, i64 count, Word* to) {
  i64 i = 0;
  for (; i + 32 <= count; i += 32) _mm512_storeu_si512(to + i / 2, narrowed(load(from + i), load(from + i + 16)));
  if (const i64 n = count - i; n > 0) {
    const vf low = load_part(from + i, std::min<i64>(n, 16)), high = load_part(from + i + 16, std::max<i64>(n - 16, 0));
    _mm512_mask_storeu_epi32(to + i / 2, static_cast<__mmask16>((1u << (n + 1) / 2) - 1), narrowed(low, high));
  }
}

// Rounds a pair of strided channels, 16 pixels at a time.
void round_pair(const float* even, const float* odd, i64 from_pixel, i64 n, Word* to, i64 to_pixel) {
  for (i64 r = 0; r < n; r += 16) {
    const i64 m = std::min<i64>(16, n - r);
    const vf first = load_some(even + r * from_pixel, from_pixel, 0, m);
    const vf second = odd ? load_some(odd + r * from_pixel, from_pixel, 0, m) : vf{};
    alignas(64) std::uint16_t halves[32];
    _mm512_store_si512(halves, narrowed(first, second));
    for (i64 p = 0; p < m; ++p) to[(r + p) * to_pixel] = halves[p] | Word{halves[16 + p]} << 16;
  }
}
#else
void round_pixel(const float* from, i64 count, Word* to) {
  for (i64 i = 0; i < count; i += 2)
    to[i / 2] = f32_to_bf16(from[i]) | (i + 1 < count ? Word{f32_to_bf16(from[i + 1])} << 16 : 0);
}

void round_pair(const float* even, const float* odd, i64 from_pixel, i64 n, Word* to, i64 to_pixel) {
  for (i64 r = 0; r < n; ++r)
    to[r * to_pixel] = f32_to_bf16(even[r * from_pixel]) | (odd ? Word{f32_to_bf16(odd[r * from_pixel])} << 16 : 0);
}
#endif

void round(const float* from, i64 from_pixel, i64 step, i64 n, i64 count, Word* to, i64 to_pixel) {
  if (step == 1)
    for (i64 r = 0; r < n; ++r) round_pixel(from + r * from_pixel, count, to + r * to_pixel);
  else
    for (i64 i = 0; i < count; i += 2)
      round_pair(from + i * step, i + 1 < count ? from + (i + 1) * step : nullptr, from_pixel, n, to + i / 2, to_pixel);
}

}  // namespace

extern "C" {
void LC_ENTRY(conv_nhwc_bf16_tile)(const float* const* pixels, const TapRun* runs, i64 count, const float* weights,
                                   const float* next, float* c, i64 c_row, i64 rows, i64 columns, bool add) {
  last_tile<PairTaps>(pixels, runs, count, weights, next, c, c_row, rows, columns, add);
}
void LC_ENTRY(conv_nhwc_bf16_round)(const float* from, i64 from_pixel, i64 step, i64 n, i64 count, std::uint32_t* to,
                                    i64 to_pixel) {
  round(from, from_pixel, step, n, count, to, to_pixel);
}
}

const NhwcBf16Table TABLE = {LC_ISA_NAME, MR, kNr, LC_ENTRY(conv_nhwc_bf16_tile), LC_ENTRY(conv_nhwc_bf16_round)};

}  // namespace lc::backends::cpu
