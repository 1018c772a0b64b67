// Metal's mathematical functions, by the C library's.
#pragma once

extern "C" {
#define LC_FLOAT1(name) float name##f(float);
#define LC_FLOAT2(name) float name##f(float, float);
// clang-format off
#define LC_EACH1(F)                                                                                                    \
  F(exp) F(exp2) F(exp10) F(log) F(log2) F(log10) F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) \
  F(asinh) F(acosh) F(atanh) F(sqrt) F(floor) F(ceil) F(trunc) F(round) F(rint) F(fabs)
#define LC_EACH2(F) F(pow) F(fmod) F(atan2) F(fmax) F(fmin) F(copysign) F(fdim)
LC_EACH1(LC_FLOAT1)
LC_EACH2(LC_FLOAT2)
// clang-format on
float fmaf(float, float, float);
float ldexpf(float, int);
#undef LC_FLOAT1
#undef LC_FLOAT2
}

namespace metal {

// Each is defined for float, half and vectors of them. A half is computed in float and rounded once.
#define LC_MATHS1(name)                                        \
  inline float name(float x) { return name##f(x); }            \
  inline half name(half x) { return half(name##f(float(x))); } \
  template <class T, int N>                                    \
  inline vec<T, N> name(vec<T, N> x) {                         \
    for (int i = 0; i < N; ++i) x[i] = name(x[i]);             \
    return x;                                                  \
  }
#define LC_MATHS2(name)                                                          \
  inline float name(float x, float y) { return name##f(x, y); }                  \
  inline half name(half x, half y) { return half(name##f(float(x), float(y))); } \
  template <class T, int N>                                                      \
  inline vec<T, N> name(vec<T, N> x, vec<T, N> y) {                              \
    for (int i = 0; i < N; ++i) x[i] = name(x[i], y[i]);                         \
    return x;                                                                    \
  }
namespace precise {  // without fast math these are the only versions
LC_EACH1(LC_MATHS1)
LC_EACH2(LC_MATHS2)
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
LC_MATHS1(rsqrt)
inline float powr(float x, float y) { return x < 0 ? __builtin_nanf("") : powf(x, y); }
}  // namespace precise
using namespace precise;

inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
template <class T, int N>
inline vec<T, N> fma(vec<T, N> x, vec<T, N> y, vec<T, N> z) {
  for (int i = 0; i < N; ++i) x[i] = fma(x[i], y[i], z[i]);
  return x;
}
inline float ldexp(float x, int k) { return ldexpf(x, k); }
inline float fract(float x) { return fminf(x - floorf(x), 0.99999994f); }
inline float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x != x ? 0.0f : x; }
inline bool isnan(float x) { return x != x; }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }

// If one argument is NaN, the result is the other one.
inline float max(float a, float b) { return fmaxf(a, b); }
inline float min(float a, float b) { return fminf(a, b); }
inline half max(half a, half b) { return half(fmaxf(a, b)); }
inline half min(half a, half b) { return half(fminf(a, b)); }
#define LC_INTEGERS(F) F(char) F(uchar) F(short) F(ushort) F(int) F(uint) F(long) F(ulong)
#define LC_MIN_MAX(T)                              \
  inline T max(T a, T b) { return a < b ? b : a; } \
  inline T min(T a, T b) { return b < a ? b : a; }
LC_INTEGERS(LC_MIN_MAX)
template <class T, int N>
inline vec<T, N> max(vec<T, N> a, vec<T, N> b) {
  for (int i = 0; i < N; ++i) a[i] = max(a[i], b[i]);
  return a;
}
template <class T, int N>
inline vec<T, N> min(vec<T, N> a, vec<T, N> b) {
  for (int i = 0; i < N; ++i) a[i] = min(a[i], b[i]);
  return a;
}
template <class T>
inline T clamp(T x, T lowest, T highest) {
  return min(max(x, lowest), highest);
}
inline float saturate(float x) { return clamp(x, 0.0f, 1.0f); }
inline float mix(float x, float y, float a) { return x + (y - x) * a; }
inline float abs(float x) { return fabsf(x); }
inline int abs(int x) { return x < 0 ? -x : x; }
inline long abs(long x) { return x < 0 ? -x : x; }
template <class T>
inline T select(T no, T yes, bool which) {
  return which ? yes : no;
}
template <class T, int N>
inline T dot(vec<T, N> a, vec<T, N> b) {
  T sum = a[0] * b[0];
  for (int i = 1; i < N; ++i) sum += a[i] * b[i];
  return sum;
}

inline uint popcount(uint x) { return uint(__builtin_popcount(x)); }
inline uint clz(uint x) { return x ? uint(__builtin_clz(x)) : 32; }
inline uint ctz(uint x) { return x ? uint(__builtin_ctz(x)) : 32; }
inline uint mulhi(uint x, uint y) { return uint(ulong(x) * y >> 32); }
inline int mulhi(int x, int y) { return int(long(x) * y >> 32); }

template <class To, class From>
inline To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace metal
using metal::as_type;
