// Vectors of WIDTH floats for micro-kernels, with GCC's vector types.
#include <cstdint>
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
// The first n <= WIDTH elements.
inline vf load_part(const float* p, i64 n) {
#if WIDTH == 16
  return reinterpret_cast<vf>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p));
#else
  vf v = {};
  for (i64 i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
inline void store_part(float* p, vf v, i64 n) {
#if WIDTH == 16
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), reinterpret_cast<__m512>(v));
#else
  for (i64 i = 0; i < n; ++i) p[i] = v[i];
#endif
}
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

}  // namespace
}  // namespace lc::host
