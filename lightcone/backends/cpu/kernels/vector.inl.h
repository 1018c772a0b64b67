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
