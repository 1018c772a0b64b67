// The mathematical functions that CUDA C declares without a header, by the C library's.
#pragma once
// clang-format cannot format lists of macros without semicolons.
// clang-format off

extern "C" {
#define LC_MATH1(name) \
  float name##f(float); \
  double name(double);
#define LC_MATH2(name) \
  float name##f(float, float); \
  double name(double, double);
LC_MATH1(exp) LC_MATH1(exp2) LC_MATH1(expm1) LC_MATH1(log) LC_MATH1(log2) LC_MATH1(log10) LC_MATH1(log1p)
LC_MATH1(sin) LC_MATH1(cos) LC_MATH1(tan) LC_MATH1(asin) LC_MATH1(acos) LC_MATH1(atan)
LC_MATH1(sinh) LC_MATH1(cosh) LC_MATH1(tanh) LC_MATH1(asinh) LC_MATH1(acosh) LC_MATH1(atanh)
LC_MATH1(sqrt) LC_MATH1(cbrt) LC_MATH1(erf) LC_MATH1(erfc) LC_MATH1(lgamma) LC_MATH1(tgamma)
LC_MATH1(floor) LC_MATH1(ceil) LC_MATH1(trunc) LC_MATH1(round) LC_MATH1(rint) LC_MATH1(nearbyint) LC_MATH1(fabs)
LC_MATH2(pow) LC_MATH2(fmod) LC_MATH2(atan2) LC_MATH2(hypot) LC_MATH2(fmax) LC_MATH2(fmin) LC_MATH2(copysign)
LC_MATH2(nextafter)
#undef LC_MATH1
#undef LC_MATH2
float fmaf(float, float, float);
double fma(double, double, double);
float ldexpf(float, int);
double ldexp(double, int);
}

// In C++ the plain names accept float, too.
#define LC_OVERLOAD1(name) \
  static inline float name(float x) { return name##f(x); }
#define LC_OVERLOAD2(name) \
  static inline float name(float x, float y) { return name##f(x, y); }
LC_OVERLOAD1(exp) LC_OVERLOAD1(exp2) LC_OVERLOAD1(log) LC_OVERLOAD1(log2) LC_OVERLOAD1(sin) LC_OVERLOAD1(cos)
LC_OVERLOAD1(sqrt) LC_OVERLOAD1(floor) LC_OVERLOAD1(ceil) LC_OVERLOAD1(trunc) LC_OVERLOAD1(rint) LC_OVERLOAD1(fabs)
LC_OVERLOAD1(tanh) LC_OVERLOAD1(erf)
LC_OVERLOAD2(pow) LC_OVERLOAD2(fmod) LC_OVERLOAD2(fmax) LC_OVERLOAD2(fmin)
#undef LC_OVERLOAD1
#undef LC_OVERLOAD2

static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float exp10f(float x) { return powf(10.0f, x); }
template <class T>
static inline bool isnan(T x) {
  return x != x;
}
template <class T>
static inline bool isinf(T x) {
  return __builtin_isinf(x);
}
template <class T>
static inline bool isfinite(T x) {
  return __builtin_isfinite(x);
}
template <class T>
static inline bool signbit(T x) {
  return __builtin_signbit(x);
}

#define LC_MIN_MAX(T) \
  static inline T min(T a, T b) { return b < a ? b : a; } \
  static inline T max(T a, T b) { return a < b ? b : a; }
LC_MIN_MAX(int) LC_MIN_MAX(unsigned) LC_MIN_MAX(long) LC_MIN_MAX(unsigned long) LC_MIN_MAX(long long)
LC_MIN_MAX(unsigned long long)
#undef LC_MIN_MAX
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline int abs(int x) { return x < 0 ? -x : x; }

// Functions that are approximate or directed-rounding on the device round to nearest here.
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return x > 0.0f ? fminf(x, 1.0f) : 0.0f; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline double __drcp_rn(double x) { return 1.0 / x; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

// The device's conversions to integers saturate, and NaN becomes zero. (In C++ such a cast is undefined.)
template <class I, class F>
static inline I lc_to_integer(F x, I lowest, I highest, F end) {
  return x != x ? 0 : x < (F)lowest ? lowest : x >= end ? highest : (I)x;
}
static inline int __float2int_rz(float x) { return lc_to_integer<int>(x, -2147483647 - 1, 2147483647, 0x1p31f); }
static inline int __float2int_rn(float x) { return __float2int_rz(rintf(x)); }
static inline int __float2int_rd(float x) { return __float2int_rz(floorf(x)); }
static inline int __float2int_ru(float x) { return __float2int_rz(ceilf(x)); }
static inline unsigned __float2uint_rz(float x) { return lc_to_integer<unsigned>(x, 0u, 4294967295u, 0x1p32f); }
static inline unsigned __float2uint_rn(float x) { return __float2uint_rz(rintf(x)); }
static inline long long __float2ll_rz(float x) {
  return lc_to_integer<long long>(x, -9223372036854775807ll - 1, 9223372036854775807ll, 0x1p63f);
}
static inline int __double2int_rz(double x) { return lc_to_integer<int>(x, -2147483647 - 1, 2147483647, 0x1p31); }
static inline int __double2int_rn(double x) { return __double2int_rz(rint(x)); }
static inline long long __double2ll_rz(double x) {
  return lc_to_integer<long long>(x, -9223372036854775807ll - 1, 9223372036854775807ll, 0x1p63);
}
static inline float __double2float_rn(double x) { return (float)x; }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1) << (31 - i);
  return r;
}
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline int __dp4a(int a, int b, int sum) {
  unsigned s = (unsigned)sum;
  for (int i = 0; i < 32; i += 8) s += (unsigned)((signed char)(a >> i) * (signed char)(b >> i));
  return (int)s;
}
