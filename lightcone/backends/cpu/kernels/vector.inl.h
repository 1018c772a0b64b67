// Vectors of WIDTH floats in GCC's vector types, for micro-kernels that are written once and compiled
// for each instruction set.
#pragma once

#include <algorithm>
#include <cstring>

#include "lightcone/backends/cpu/gemm.h"
#include "lightcone/core/dtype.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lc::host {
namespace {

using i64 = std::int64_t;
typedef float vf __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
typedef std::int32_t vi __attribute__((vector_size(WIDTH * 4)));

inline vf load(const float* p) { return *reinterpret_cast<const vf*>(p); }
inline void store(float* p, vf v) { *reinterpret_cast<vf*>(p) = v; }
inline vf splat(float v) {  // not vf{} + v: that is an addition, because of -0
#if WIDTH == 16
  return reinterpret_cast<vf>(_mm512_set1_ps(v));
#elif WIDTH == 8 && defined(__AVX__)
  return reinterpret_cast<vf>(_mm256_set1_ps(v));
#else
  vf r;
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
#else
  return a * b + c;
#endif
}
inline float sum(vf v) {  // in a fixed order
  float t[WIDTH];
  std::memcpy(t, &v, sizeof t);
  for (int half = WIDTH / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) t[i] += t[i + half];
  return t[0];
}
inline vf from_half(const std::uint16_t* p) {
#if WIDTH == 16
  return reinterpret_cast<vf>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif WIDTH == 8 && defined(__F16C__)
  return reinterpret_cast<vf>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  vf v;
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
#else
  vf v;
  for (int i = 0; i < WIDTH; ++i) v[i] = bf16_to_f32(p[i]);
  return v;
#endif
}
inline float half(const void* p) {
  std::uint16_t h;
  std::memcpy(&h, p, 2);
#if defined(__F16C__)
  return _cvtsh_ss(h);
#else
  return f16_to_f32(h);
#endif
}
// v[i][j] <-> v[j][i], by halves: rows i and i + h exchange blocks of h lanes.
template <int H>
inline void exchange(vf (&v)[WIDTH]) {
  if constexpr (H > 0) {
    vi low, high;
    for (int j = 0; j < WIDTH; ++j) {
      low[j] = j & H ? WIDTH + (j ^ H) : j;
      high[j] = j & H ? WIDTH + j : j ^ H;
    }
    for (int i = 0; i < WIDTH; ++i)
      if (!(i & H)) {
        const vf a = v[i], b = v[i + H];
        v[i] = __builtin_shuffle(a, b, low);
        v[i + H] = __builtin_shuffle(a, b, high);
      }
    exchange<H / 2>(v);
  }
}
inline void transpose(vf (&v)[WIDTH]) { exchange<WIDTH / 2>(v); }
inline vf as_float(vi v) { return __builtin_convertvector(v, vf); }
// WIDTH bytes as whole numbers.
inline vi bytes(const std::uint8_t* p) {
#if WIDTH == 16
  return reinterpret_cast<vi>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif WIDTH == 8 && defined(__AVX2__)
  return reinterpret_cast<vi>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  vi v;
  for (int i = 0; i < WIDTH; ++i) v[i] = p[i];
  return v;
#endif
}
inline vi bytes(const std::int8_t* p) {
#if WIDTH == 16
  return reinterpret_cast<vi>(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif WIDTH == 8 && defined(__AVX2__)
  return reinterpret_cast<vi>(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
  vi v;
  for (int i = 0; i < WIDTH; ++i) v[i] = p[i];
  return v;
#endif
}

}  // namespace
}  // namespace lc::host
