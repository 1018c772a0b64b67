// Vectors of WIDTH floats in GCC's vector types, for microkernels that are written once and compiled for each
// instruction set.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "lightcone/core/dtype.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif
#if defined(NEON)  // only in files for NEON: "generic" is plain C++ on Arm too
#include <arm_neon.h>
#endif

// Unroll counts, placed before a loop. Arrays of sums are in registers only if their loops are fully unrolled.
// LC_UNROLL_STEPS is for loops that unrolling merely makes faster. In plain C++ it does not unroll: that code is for
// processors without a vector unit, and every copy adds to the library's build time. LC_UNROLL is for GCC on Arm, which
// otherwise keeps a copy of a tile's registers in memory.
#define LC_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define LC_UNROLL_BY(n) LC_PRAGMA(unroll n)
#else
#define LC_UNROLL_BY(n) LC_PRAGMA(GCC unroll n)
#endif
#if WIDTH == 4 && !defined(NEON)
#define LC_UNROLL_STEPS(n) LC_UNROLL_BY(1)
#else
#define LC_UNROLL_STEPS(n) LC_UNROLL_BY(n)
#endif
#if defined(NEON)
#define LC_UNROLL LC_UNROLL_BY(16)
#else
#define LC_UNROLL
#endif

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
// Vectors in memory, aligned to elements.
typedef float vf_stored __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
typedef std::uint32_t vu_stored __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
typedef float v4_stored __attribute__((vector_size(16), aligned(4), may_alias));
// Vectors in variables. Through a reference in a template, clang loses a type's reduced alignment, so for clang these
// types have natural alignment.
#if defined(__clang__)
typedef float vf __attribute__((vector_size(WIDTH * 4), may_alias));
typedef std::int32_t vi __attribute__((vector_size(WIDTH * 4), may_alias));
typedef std::uint32_t vu __attribute__((vector_size(WIDTH * 4), may_alias));
typedef float v4 __attribute__((vector_size(16), may_alias));
#else
typedef vf_stored vf;
typedef std::int32_t vi __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
typedef vu_stored vu;
typedef v4_stored v4;
#endif

#if defined(__AVX512BF16__)
// c + a * b for pairs of bf16. clang 16 crashes on the intrinsic if a pair is the same in all lanes.
inline vf add_pairs(__m512i a, __m512i b, vf c) {
  auto sum = reinterpret_cast<__m512>(c);
#if defined(__clang__)
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#else
  sum = _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
#endif
  return reinterpret_cast<vf>(sum);
}
#endif

// Shuffle: lane i is lane of(i) of a and b, numbered across both. The index must be a compile-time constant: otherwise
// it is not one instruction, and only GCC supports it.
template <class V, class F>
inline void put_lanes(V& to, const V& a, const V& b, F) {
  [&]<int... I>(std::integer_sequence<int, I...>) {
    to = __builtin_shufflevector(a, b, F{}(I)...);
  }(std::make_integer_sequence<int, sizeof(V) / sizeof(a[0])>());
}
template <class F>
inline vf lanes(vf a, vf b, F) {
  return [&]<int... I>(std::integer_sequence<int, I...>) -> vf {
    return __builtin_shufflevector(a, b, F{}(I)...);
  }(std::make_integer_sequence<int, WIDTH>());
}
template <class F>
inline vi lanes(vi a, vi b, F) {
  return [&]<int... I>(std::integer_sequence<int, I...>) -> vi {
    return __builtin_shufflevector(a, b, F{}(I)...);
  }(std::make_integer_sequence<int, WIDTH>());
}

inline vf load(const float* p) { return *reinterpret_cast<const vf_stored*>(p); }
inline void store(float* p, vf v) { *reinterpret_cast<vf_stored*>(p) = v; }
// Loads the first n <= WIDTH elements; the other lanes are zero.
inline vf load_part(const float* p, i64 n) {
#if WIDTH == 16
  return reinterpret_cast<vf>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p));
#elif WIDTH == 8 && defined(__AVX2__)
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return reinterpret_cast<vf>(_mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane)));
#else
  vf v = {};
  for (i64 i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
// Stores the first n <= WIDTH elements.
inline void store_part(float* p, vf v, i64 n) {
#if WIDTH == 16
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), reinterpret_cast<__m512>(v));
#elif WIDTH == 8 && defined(__AVX2__)  // in halves: masked stores take some 40 micro-operations on AMD
  if (n >= WIDTH) return store(p, v);
  __m128 rest = _mm256_castps256_ps128(reinterpret_cast<__m256>(v));
  if (n & 4) {
    _mm_storeu_ps(p, rest);
    rest = _mm256_extractf128_ps(reinterpret_cast<__m256>(v), 1), p += 4;
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), rest);
    rest = _mm_movehl_ps(rest, rest), p += 2;
  }
  if (n & 1) _mm_store_ss(p, rest);
#else
  for (i64 i = 0; i < n; ++i) p[i] = v[i];
#endif
}
// Rounds to bf16 in the upper half of each lane: to nearest, ties to even; NaN stays NaN.
inline vu rounded(vf v) {
  const vu u = reinterpret_cast<vu>(v);
  return (v == v ? u + 0x7fffu + (u >> 16 & 1u) : u | 0x400000u) & 0xffff0000u;
}
// Two numbers a lane, rounded to bf16. The instruction makes subnormal numbers zeros, as do those that multiply.
inline vu bf16_words(vf even, vf odd) {
#if defined(__AVX512BF16__) && WIDTH == 16
  alignas(64) static constexpr std::uint16_t order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                          8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const auto both = (__m512i)_mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(odd), reinterpret_cast<__m512>(even));
  return reinterpret_cast<vu>(_mm512_permutexvar_epi16(_mm512_load_si512(order), both));
#else
  return rounded(even) >> 16 | rounded(odd);
#endif
}
inline vf splat(float v) {  // vf{} + v would be an addition, because of -0
#if WIDTH == 16
  return reinterpret_cast<vf>(_mm512_set1_ps(v));
#elif WIDTH == 8 && defined(__AVX__)
  return reinterpret_cast<vf>(_mm256_set1_ps(v));
#elif defined(NEON)
  return reinterpret_cast<vf>(vdupq_n_f32(v));
#else
  vf r = {};
  for (int i = 0; i < WIDTH; ++i) r[i] = v;
  return r;
#endif
}
inline vf fma(vf a, vf b, vf c) {
#if defined(__AVX512F__) && WIDTH == 16
  return reinterpret_cast<vf>(
      _mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif defined(__FMA__) && WIDTH == 8
  return reinterpret_cast<vf>(
      _mm256_fmadd_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#elif defined(NEON)
  return reinterpret_cast<vf>(
      vfmaq_f32(reinterpret_cast<float32x4_t>(c), reinterpret_cast<float32x4_t>(a), reinterpret_cast<float32x4_t>(b)));
#else
  return a * b + c;
#endif
}
// Ends a block of a long sum, as in generated loops (codegen/schedule/blocks.cpp): adds `block` to `sum` and the
// rounding error to `lost` (dropped if it is NaN, as for infinities), and clears `block`.
inline void end_block(vf& sum, vf& lost, vf& block) {
  const vf s = sum + block, of_block = s - sum, rest = (sum - (s - of_block)) + (block - of_block);
  sum = s, lost = lost + reinterpret_cast<vf>(reinterpret_cast<vi>(rest) & (rest == rest)), block = vf{};
}
inline void end_block(float& sum, float& lost, float& block) {
  const float s = sum + block, of_block = s - sum, rest = (sum - (s - of_block)) + (block - of_block);
  sum = s, lost += rest == rest ? rest : 0.0f, block = 0;
}
constexpr i64 kSumBlock = 256;  // additions per block of a long sum
// N long sums. Loops over them must be unrolled by the caller, otherwise they would be kept in memory.
template <int N>
struct BlockSums {
  vf sum[N] = {}, lost[N] = {};
  void end(vf& block, int n) { end_block(sum[n], lost[n], block); }
  void finish(vf& block, int n) {
    end(block, n);
    block = sum[n] + lost[n];
  }
};
template <int V, int M, class F>
inline void each_sum(vf (&acc)[V][M], const F& f) {
  LC_UNROLL_BY(8)
  for (int v = 0; v < V; ++v) LC_UNROLL_BY(8)
  for (int m = 0; m < M; ++m) f(acc[v][m], v * M + m);
}
template <int V, int M, int N, class F>
inline void each_sum(vf (&acc)[V][M][N], const F& f) {
  LC_UNROLL_BY(8)
  for (int v = 0; v < V; ++v) each_sum(acc[v], [&](vf& x, int n) { f(x, v * M * N + n); });
}
template <int G, int V, int M, int N, class F>
inline void each_sum(vf (&acc)[G][V][M][N], const F& f) {
  LC_UNROLL_BY(8)
  for (int g = 0; g < G; ++g) each_sum(acc[g], [&](vf& x, int n) { f(x, g * V * M * N + n); });
}
// acc[t] += *a * b[t], for row i of a register tile. With AVX-512, two of three rows use *a as a memory operand of
// every product, and the third broadcasts it to a register first. That saves a fifth of the instructions, which are the
// bottleneck if two threads share a core, for half as many loads again, which are not. (With memory operands in all
// rows, there would be more loads than products.) On a Cascade Lake, tiles of 14 rows are 1.04 to 1.09 times as fast as
// with every other row, beside a busy thread of the core and alone. GCC would always broadcast a value that is used
// twice.
template <int V>
inline void add_products(vf (&acc)[V], const float* a, const vf (&b)[V], [[maybe_unused]] int i) {
#if defined(__AVX512F__) && WIDTH == 16
  if (i % 3 != 0) {
    for (int t = 0; t < V; ++t) {
      vf sum = acc[t];
      asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(b[t]), "m"(*a));
      acc[t] = sum;
    }
    return;
  }
#endif
  const vf s = splat(*a);
  for (int t = 0; t < V; ++t) acc[t] = fma(s, b[t], acc[t]);
}
inline vf larger(vf a, vf b) { return a > b ? a : b; }  // b if either is NaN

// 2^x for x <= 0 and NaN, by the polynomial of the C prelude. The result is 0 below 2^-150. AVX-512 has one instruction
// for the last step, which Intel's processors execute in microcode, 160 times as slowly, if its result is too small for
// a number and the exponent is not infinite: masked scores would take nearly all of the time of attention. Others need
// more time for a product that is too small, too (Zen 3: attention with a third of the scores masked 1.3 times).
inline vf exp2_negative(vf x) {
  const vf low = splat(-150.0f);
  const vf magic = splat(12582912.0f);  // 1.5 * 2^23: integer part in the low bits
  const vf c = x < low ? low : x, shifted = c + magic, n = shifted - magic, f = c - n;
  vf p = splat(1.535336188319500e-4f);
  p = fma(p, f, splat(1.339887440266574e-3f));
  p = fma(p, f, splat(9.618437357674640e-3f));
  p = fma(p, f, splat(5.550332471162809e-2f));
  p = fma(p, f, splat(2.402264791363012e-1f));
  p = fma(p, f, splat(6.931472028550421e-1f));
  p = fma(p, f, splat(1.0f));
#if WIDTH == 16
  const vf power = x < low ? splat(-std::numeric_limits<float>::infinity()) : n;
  return reinterpret_cast<vf>(_mm512_scalef_ps(reinterpret_cast<__m512>(p), reinterpret_cast<__m512>(power)));
#else
  const vi e = reinterpret_cast<vi>(shifted) - 0x4b400000, h = e >> 1, g = e - h;  // two factors, for subnormal results
  const vf some = x < low ? vf{} : p;
  return some * reinterpret_cast<vf>((h + 127) << 23) * reinterpret_cast<vf>((g + 127) << 23);
#endif
}

inline float sum(vf v) {  // in a fixed order
  float t[WIDTH];
  std::memcpy(t, &v, sizeof t);
  for (int half = WIDTH / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) t[i] += t[i + half];
  return t[0];
}
// The sums of four vectors, which are combined pairwise while they are halved.
inline v4 sums(vf a, vf b, vf c, vf d) {
#if WIDTH == 16
#define LC_JOIN(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
  const auto halves = [](vf x, vf y) {
    return LC_JOIN(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
           LC_JOIN(x, y, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  };
  const vf ab = halves(a, b), cd = halves(c, d);
  const vf fours = LC_JOIN(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
                   LC_JOIN(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  const vf twos = fours + LC_JOIN(fours, fours, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  const vf ones = twos + LC_JOIN(twos, twos, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  return LC_JOIN(ones, ones, 0, 4, 8, 12);
#undef LC_JOIN
#elif defined(NEON)
  const auto pairs = [](vf x, vf y) {
    return reinterpret_cast<vf>(vpaddq_f32(reinterpret_cast<float32x4_t>(x), reinterpret_cast<float32x4_t>(y)));
  };
  return pairs(pairs(a, b), pairs(c, d));
#else
  const auto quarters = [](vf v) {
#if WIDTH == 8
    return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
#else
    return v;
#endif
  };
  const v4 p = quarters(a), q = quarters(b), r = quarters(c), s = quarters(d);
  const v4 x = __builtin_shufflevector(p, q, 0, 4, 2, 6) + __builtin_shufflevector(p, q, 1, 5, 3, 7);
  const v4 y = __builtin_shufflevector(r, s, 0, 4, 2, 6) + __builtin_shufflevector(r, s, 1, 5, 3, 7);
  return __builtin_shufflevector(x, y, 0, 1, 4, 5) + __builtin_shufflevector(x, y, 2, 3, 6, 7);
#endif
}

inline vf from_half(const std::uint16_t* p) {
#if WIDTH == 16
  return reinterpret_cast<vf>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif WIDTH == 8 && defined(__F16C__)
  return reinterpret_cast<vf>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif defined(NEON)
  return reinterpret_cast<vf>(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))));
#else
  vf v = {};
  for (int i = 0; i < WIDTH; ++i) v[i] = f16_to_f32(p[i]);
  return v;
#endif
}
inline vf from_bf16(const std::uint16_t* p) {
#if WIDTH == 16
  return reinterpret_cast<vf>(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
#elif WIDTH == 8 && defined(__AVX2__)
  return reinterpret_cast<vf>(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
#elif defined(NEON)
  return reinterpret_cast<vf>(vshll_n_u16(vld1_u16(p), 16));
#else
  vf v = {};
  for (int i = 0; i < WIDTH; ++i) v[i] = bf16_to_f32(p[i]);
  return v;
#endif
}
inline float half(const void* p) {
  std::uint16_t h;
  std::memcpy(&h, p, 2);
#if defined(__F16C__)
  return _cvtsh_ss(h);
#elif defined(NEON)
  return static_cast<float>(std::bit_cast<__fp16>(h));
#else
  return f16_to_f32(h);
#endif
}
// Transposes each group of N lanes of N vectors, by halves: lane i of vector j <-> lane j of vector i.
template <int N, int H = N / 2>
inline void transpose(vf (&v)[N]) {
  if constexpr (H > 0) {
    for (int i = 0; i < N; ++i)
      if (!(i & H)) {
        const vf a = v[i], b = v[i + H];
        v[i] = lanes(a, b, [](int j) { return j & H ? WIDTH + (j ^ H) : j; });
        v[i + H] = lanes(a, b, [](int j) { return j & H ? WIDTH + j : j ^ H; });
      }
    transpose<N, H / 2>(v);
  }
}
inline vf as_float(vi v) { return __builtin_convertvector(v, vf); }
#if defined(NEON)
inline uint32x2_t four_bytes(const void* p) {
  std::uint32_t word;
  std::memcpy(&word, p, 4);
  return vdup_n_u32(word);
}
#endif
// WIDTH bytes as integers.
inline vi bytes(const std::uint8_t* p) {
#if WIDTH == 16
  return reinterpret_cast<vi>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif WIDTH == 8 && defined(__AVX2__)
  return reinterpret_cast<vi>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#elif defined(NEON)
  return reinterpret_cast<vi>(vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(four_bytes(p))))));
#else
  vi v = {};
  for (int i = 0; i < WIDTH; ++i) v[i] = p[i];
  return v;
#endif
}
inline vi bytes(const std::int8_t* p) {
#if WIDTH == 16
  return reinterpret_cast<vi>(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif WIDTH == 8 && defined(__AVX2__)
  return reinterpret_cast<vi>(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#elif defined(NEON)
  return reinterpret_cast<vi>(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(four_bytes(p))))));
#else
  vi v = {};
  for (int i = 0; i < WIDTH; ++i) v[i] = p[i];
  return v;
#endif
}

// Loads elements [begin, end) of a vector with stride `step`; the others are zero and not read.
inline vf load_some(const float* from, i64 step, i64 begin, i64 end) {
#if WIDTH == 16
  const auto mask = [](i64 b, i64 e) {
    return static_cast<std::uint32_t>((std::uint64_t{1} << e) - (std::uint64_t{1} << b));
  };
  if (begin >= end) return vf{};
  if (step == 1) return reinterpret_cast<vf>(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask(begin, end)), from));
  if (step == 2) {
    const std::uint32_t m = mask(2 * begin, 2 * end - 1);
    const auto low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(m), from);
    const auto high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(m >> 16), from + 16);
    const auto even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return reinterpret_cast<vf>(_mm512_permutex2var_ps(low, even, high));
  }
#endif
  vf v = {};
  if (step == 1 && end - begin == WIDTH) return load(from);
  for (i64 i = begin; i < end; ++i) v[i] = from[i * step];
  return v;
}

}  // namespace
}  // namespace lc::backends::cpu
