// The functions that generated C calls. No system header is included, because headers cost milliseconds per unit. Every
// f32 function is branch-free, so that the compiler vectorises it inside of lane loops.
//
// exp2: 2^x = 2^n * 2^f with |f| <= 1/2, a degree-6 minimax polynomial, scaled in two steps so that subnormal results
// are right. exp: x = n ln 2 + f, in the same way. log2: m * 2^e with m in [sqrt(1/2), sqrt(2)), and log2(1 + f) = f +
// f q(f). sin and cos: reduction by pi and a polynomial in double precision for |x| < 1e6, libm beyond.
#include "lightcone/codegen/c/prelude.h"

#include <string>

namespace lc::codegen {
namespace {

constexpr std::string_view kHead = R"(
typedef unsigned int u32; typedef unsigned long u64; typedef unsigned short u16; typedef unsigned char u8;
double exp2(double); double log2(double); double sin(double); double cos(double); double fmod(double, double); double pow(double, double);
float fmodf(float, float); float powf(float, float); float sinf(float); float cosf(float);
#define LC static inline __attribute__((always_inline))
LC u32 lc_bits(float x) { u32 u; __builtin_memcpy(&u, &x, 4); return u; }
LC float lc_float(u32 u) { float x; __builtin_memcpy(&x, &u, 4); return x; }
LC u64 lc_bits_d(double x) { u64 u; __builtin_memcpy(&u, &x, 8); return u; }
LC double lc_double(u64 u) { double x; __builtin_memcpy(&x, &u, 8); return x; }
// c ? a : b, where c is 0 or 1. It is arithmetic because GCC leaves chains of ?: as jumps, in loops without vectors.
LC u32 lc_pick(int c, u32 a, u32 b) { return b ^ ((a ^ b) & -(u32)c); }
LC u64 lc_pick_d(int c, u64 a, u64 b) { return b ^ ((a ^ b) & -(u64)c); }
// Floats as integers in the same order: -0 below +0, every NaN above infinity.
LC int lc_key_f(float x) { const int b = (int)lc_bits(x); return x == x ? b ^ ((b >> 31) & 0x7fffffff) : 0x7fffffff; }
// A block's sum a goes into the sum b of the blocks before it, what that rounds away into e (not the NaN that it is of
// infinities), and a begins anew.
LC void lc_block(float* b, float* e, float* a) {
  const float s = *b + *a, of_a = s - *b, lost = (*b - (s - of_a)) + (*a - of_a);
  *b = s, *e += lost == lost ? lost : 0.0f, *a = 0.0f;
}
LC void lc_blocks(float* b, float* e, float* a) { for (int l = 0; l < 16; ++l) lc_block(b + l, e + l, a + l); }
LC float lc_unkey_f(int k) { return lc_float((u32)(k ^ ((k >> 31) & 0x7fffffff))); }
)";

constexpr std::string_view kWholeNumbers = R"(
LC long lc_floor_div(long a, long b) { if (b == 0) return 0; const long q = a / b; return q - (long)((a % b != 0) & ((a < 0) != (b < 0))); }
LC long lc_floor_mod(long a, long b) { return b == 0 ? 0 : a - lc_floor_div(a, b) * b; }
LC int lc_floor_div_i(int a, int b) { if (b == 0) return 0; const int q = a / b; return q - (int)((a % b != 0) & ((a < 0) != (b < 0))); }
LC int lc_floor_mod_i(int a, int b) { return b == 0 ? 0 : a - lc_floor_div_i(a, b) * b; }
#define LC_INTEGER(S, T, U) \
LC T lc_add_##S(T a, T b) { return (T)((U)a + (U)b); } \
LC T lc_mul_##S(T a, T b) { return (T)((U)a * (U)b); } \
LC T lc_div_##S(T a, T b) { return b == 0 ? (T)0 : b == (T)-1 && (T)-1 < 0 ? (T)(0 - (U)a) : (T)(a / b); } \
LC T lc_mod_##S(T a, T b) { return b == 0 || (b == (T)-1 && (T)-1 < 0) ? (T)0 : (T)(a % b); } \
LC int lc_less_##S(T a, T b) { return a < b; } \
LC int lc_equal_##S(T a, T b) { return a == b; } \
LC T lc_max_##S(T a, T b) { return a < b ? b : a; } \
LC T lc_min_##S(T a, T b) { return b < a ? b : a; } \
LC T lc_where_##S(int c, T a, T b) { return c ? a : b; } \
LC T lc_and_##S(T a, T b) { return (T)(a & b); } \
LC T lc_or_##S(T a, T b) { return (T)(a | b); } \
LC T lc_xor_##S(T a, T b) { return (T)(a ^ b); } \
LC T lc_pow_##S(T a, T b) { if (b < 0) return a == 1 ? (T)1 : a == (T)-1 ? (b % 2 ? (T)-1 : (T)1) : (T)0; \
  U r = 1, x = (U)a; for (; b > 0; b >>= 1, x *= x) if (b & 1) r *= x; return (T)r; }
LC_INTEGER(c, signed char, u32)
LC_INTEGER(i, int, u32)
LC_INTEGER(l, long, u64)
LC_INTEGER(s, short, u32)
LC_INTEGER(b, u8, u32)
LC_INTEGER(us, u16, u32)
LC_INTEGER(u, u32, u32)
LC_INTEGER(ul, u64, u64)
// Whole numbers as floats that fewer digits are rounded from as from the numbers themselves: 16 digits and more, and
// whether anything is below them.
LC u64 lc_jam(u64 m, int n) { return m >> n | ((m & (((u64)1 << n) - 1)) != 0); }
LC float lc_odd_u(u32 m) {
  const int far = m >> 24 != 0;
  return (float)(int)(far ? (u32)lc_jam(m, 8) : m) * (far ? 256.0f : 1.0f);
}
LC float lc_odd_ul(u64 m) {
  float s = 1.0f;
  if (m >> 40) { m = lc_jam(m, 24); s = 16777216.0f; }
  if (m >> 32) { m = lc_jam(m, 16); s *= 65536.0f; }
  if (m >> 24) { m = lc_jam(m, 8); s *= 256.0f; }
  return (float)(int)m * s;
}
LC float lc_odd_i(int v) { const float f = lc_odd_u(v < 0 ? 0 - (u32)v : (u32)v); return v < 0 ? -f : f; }
LC float lc_odd_l(long v) { const float f = lc_odd_ul(v < 0 ? 0 - (u64)v : (u64)v); return v < 0 ? -f : f; }
LC int lc_and_t(int a, int b) { return a & b; }
LC int lc_or_t(int a, int b) { return a | b; }
LC int lc_xor_t(int a, int b) { return a ^ b; }
LC int lc_add_t(int a, int b) { return a | b; }
LC int lc_mul_t(int a, int b) { return a & b; }
LC int lc_div_t(int a, int b) { return a & b; }
LC int lc_mod_t(int a, int b) { return 0; }
LC int lc_pow_t(int a, int b) { return b ? a : 1; }
LC int lc_less_t(int a, int b) { return a < b; }
LC int lc_equal_t(int a, int b) { return a == b; }
LC int lc_max_t(int a, int b) { return a | b; }
LC int lc_min_t(int a, int b) { return a & b; }
LC int lc_where_t(int c, int a, int b) { return c ? a : b; }
#define LC_SATURATE(F, T, N, C, LO, HI) \
LC C lc_##N##_to_##T(F v) { return v != v ? (C)0 : v <= (F)(LO) ? (C)(LO) : v >= (F)(HI) ? (C)(HI) : (C)v; }
// The same for types whose bounds F has: vectors of fewer instructions. NaN becomes 0 first.
#define LC_SATURATE_NARROW(F, T, N, C, LO, HI, U, BITS, REAL) \
LC C lc_##N##_to_##T(F v) { \
  F t = REAL(BITS(v) & -(U)(v == v)); \
  t = t > (F)(LO) ? t : (F)(LO); \
  return (C)(int)(t < (F)(HI) ? t : (F)(HI)); \
}
// NaN and numbers above the range become 0 first.
#define LC_F32_TO_I32 \
LC int lc_f32_to_i32(float v) { \
  const float t = lc_float(lc_bits(v) & -(u32)(v < 2147483648.0f)); \
  return (int)(t > -2147483648.0f ? t : -2147483648.0f) | (int)(-(u32)(v >= 2147483648.0f) & 0x7fffffffu); \
}
#define LC_F64_TO_I32 LC_SATURATE_NARROW(double, i32, f64, int, -2147483647 - 1, 2147483647, u64, lc_bits_d, lc_double)
#define LC_INTEGERS(F, N, U, BITS, REAL) \
LC_SATURATE_NARROW(F, i8, N, signed char, -128, 127, U, BITS, REAL) \
LC_SATURATE_NARROW(F, i16, N, short, -32768, 32767, U, BITS, REAL) \
LC_SATURATE(F, i64, N, long, -9223372036854775807L - 1, 9223372036854775807L) \
LC_SATURATE_NARROW(F, u8, N, u8, 0, 255, U, BITS, REAL) \
LC_SATURATE_NARROW(F, u16, N, u16, 0, 65535, U, BITS, REAL) \
LC_SATURATE(F, u32, N, u32, 0, 4294967295U) \
LC_SATURATE(F, u64, N, u64, 0, 18446744073709551615UL)
)";

constexpr std::string_view kFloats = R"(
LC float lc_exp2_f(float x) {
  const u32 b = lc_bits(x), m = b & 0x7fffffffu;
  const float c = lc_float((b & 0x80000000u) | (m < 0x43200000u ? m : 0x43200000u));  // within +-160, a NaN too
  const float n = __builtin_rintf(c), f = c - n;
  float p = 1.535336188319500e-4f;
  p = __builtin_fmaf(p, f, 1.339887440266574e-3f);
  p = __builtin_fmaf(p, f, 9.618437357674640e-3f);
  p = __builtin_fmaf(p, f, 5.550332471162809e-2f);
  p = __builtin_fmaf(p, f, 2.402264791363012e-1f);
  p = __builtin_fmaf(p, f, 6.931472028550421e-1f);
  p = __builtin_fmaf(p, f, 1.0f);
  const int e = (int)n, h = e >> 1, g = e - h;
  p = p * lc_float((u32)(h + 127) << 23) * lc_float((u32)(g + 127) << 23);
  return x == x ? p : x + x;  // quiet, as an instruction would make it
}
LC float lc_exp_f(float x) {
  const u32 b = lc_bits(x), m = b & 0x7fffffffu;
  const float c = lc_float((b & 0x80000000u) | (m < 0x42e00000u ? m : 0x42e00000u));  // within +-112, a NaN too
  const float n = __builtin_rintf(c * 1.44269504f);
  const float f = __builtin_fmaf(n, -1.42860682e-6f, __builtin_fmaf(n, -0.693145752f, c));
  float p = 1.38204114e-3f;
  p = __builtin_fmaf(p, f, 8.36867746e-3f);
  p = __builtin_fmaf(p, f, 4.16682698e-2f);
  p = __builtin_fmaf(p, f, 0.166665211f);
  p = __builtin_fmaf(p, f, 0.49999994f);
  p = __builtin_fmaf(p, f, 1.0f);
  p = __builtin_fmaf(p, f, 1.0f);
  const int e = (int)n, h = e >> 1, g = e - h;
  p = p * lc_float((u32)(h + 127) << 23) * lc_float((u32)(g + 127) << 23);
  return x == x ? p : x + x;
}
// What a vector p, the highest power, goes on with; LC_FMA and LC_ALL are of its width.
#define LC_POWERS_OF_2(p, f) LC_FMA(p, f, LC_ALL(1.339887440266574e-3f)); LC_FMA(p, f, LC_ALL(9.618437357674640e-3f)); \
  LC_FMA(p, f, LC_ALL(5.550332471162809e-2f)); LC_FMA(p, f, LC_ALL(2.402264791363012e-1f)); \
  LC_FMA(p, f, LC_ALL(6.931472028550421e-1f)); LC_FMA(p, f, LC_ALL(1.0f));
#define LC_POWERS_OF_E(p, f) LC_FMA(p, f, LC_ALL(8.36867746e-3f)); LC_FMA(p, f, LC_ALL(4.16682698e-2f)); \
  LC_FMA(p, f, LC_ALL(0.166665211f)); LC_FMA(p, f, LC_ALL(0.49999994f)); LC_FMA(p, f, LC_ALL(1.0f)); LC_FMA(p, f, LC_ALL(1.0f));
// Sixteen at once. vreduceps leaves x - round(x), 0 of an infinity; vscalefps multiplies by 2^n in one step.
#if defined(__AVX512F__)
typedef float lc_float16 __attribute__((vector_size(64), may_alias)); typedef int lc_int16 __attribute__((vector_size(64), may_alias));
#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__) && LC_VECTOR >= 64
// v * by + more, rounded once: as in the functions of one number, to the bit.
#define LC_ALL(x) ((lc_float16){} + (x))
#define LC_FMA(v, by, more) __asm__("vfmadd213ps %2, %1, %0" : "+v"(v) : "v"(by), "v"(more))
// p * 2^n, which is 0 where x < low. Intel's processors need microcode for results too small for a number, unless n is
// infinite.
#define LC_SCALE(p, n, x, low) \
  __asm__("vcmpltps %2, %1, %%k1\n\tvmovaps %3, %0%{%%k1%}" \
          : "+v"(n) : "v"(x), "v"((lc_float16){} + (low)), "v"((lc_float16){} - __builtin_inff()) : "k1"); \
  __asm__("vscalefps %1, %0, %0" : "+v"(p) : "v"(n))
LC void lc_exp2_v(float* to, const float* from) {
  const lc_float16 x = *(const lc_float16*)from;
  lc_float16 f, n, p;
  __asm__("vreduceps $8, %1, %0" : "=v"(f) : "v"(x));
  __asm__("vrndscaleps $8, %1, %0" : "=v"(n) : "v"(x));
  p = (lc_float16){} + 1.535336188319500e-4f;
  LC_POWERS_OF_2(p, f);
  LC_SCALE(p, n, x, -150.0f);
  *(lc_float16*)to = p;
}
LC void lc_exp_v(float* to, const float* from) {
  const lc_float16 x = *(const lc_float16*)from, top = (lc_float16){} + 112.0f;
  lc_float16 c, n, p;
  __asm__("vminps %1, %2, %0" : "=v"(c) : "v"(x), "v"(top));  // of a NaN and a number the one named first
  __asm__("vmaxps %1, %2, %0" : "=v"(c) : "v"(c), "v"(-top));
  __asm__("vrndscaleps $8, %1, %0" : "=v"(n) : "v"(c * 1.44269504f));
  lc_float16 r = n, f = n;
  LC_FMA(r, (lc_float16){} - 0.693145752f, c);
  LC_FMA(f, (lc_float16){} - 1.42860682e-6f, r);
  p = (lc_float16){} + 1.38204114e-3f;
  LC_POWERS_OF_E(p, f);
  LC_SCALE(p, n, x, -104.0f);
  *(lc_float16*)to = p;
}
// The sums of a loop are carried from step to step in a register: in an array they can be left in memory.
#define LC_CARRY(T, A) lc_##T##16 A##v = *(lc_##T##16*)A##_
#define LC_TAKE(T, A) T A##t[16] __attribute__((aligned(64))); *(lc_##T##16*)A##t = A##v
#define LC_GIVE(T, A) A##v = *(lc_##T##16*)A##t
#define LC_DONE(T, A) *(lc_##T##16*)A##_ = A##v
#elif defined(__AVX2__) && defined(__FMA__) && LC_VECTOR >= 32
typedef float lc_float8 __attribute__((vector_size(32), may_alias)); typedef int lc_int8 __attribute__((vector_size(32), may_alias));
#define LC_ALL(x) ((lc_float8){} + (x))
#define LC_FMA(v, by, more) __asm__("vfmadd213ps %2, %1, %0" : "+x"(v) : "x"(by), "xm"(more))
// A number to which 1.5 * 2^23 is added is rounded to a whole one, which is its last bits; where no result leaves the
// range of normal numbers, the exponent grows by that. lc_near_8 says which numbers those are.
#define LC_ROUND 12582912.0f
LC lc_float8 lc_scaled_8(lc_float8 p, lc_float8 rounded) { return (lc_float8)((lc_int8)p + ((lc_int8)rounded << 23)); }
LC lc_int8 lc_near_8(lc_float8 x, float most) { return (lc_float8)((lc_int8)x & 0x7fffffff) <= most; }
LC lc_int8 lc_exp2_8(lc_float8* to, lc_float8 x) {
  const lc_float8 n = x + LC_ROUND, f = x - (n - LC_ROUND);
  lc_float8 p = (lc_float8){} + 1.535336188319500e-4f;
  LC_POWERS_OF_2(p, f);
  *to = lc_scaled_8(p, n);
  return lc_near_8(x, 125.0f);
}
LC lc_int8 lc_exp_8(lc_float8* to, lc_float8 x) {
  const lc_float8 rounded = x * 1.44269504f + LC_ROUND, n = rounded - LC_ROUND;
  lc_float8 r = n, f = n;
  LC_FMA(r, (lc_float8){} - 0.693145752f, x);
  LC_FMA(f, (lc_float8){} - 1.42860682e-6f, r);
  lc_float8 p = (lc_float8){} + 1.38204114e-3f;
  LC_POWERS_OF_E(p, f);
  *to = lc_scaled_8(p, rounded);
  return lc_near_8(x, 86.0f);
}
// Numbers of which some are not near. Results are 0 below `low`, as of masked scores; where that is not enough, all
// come one by one from the function of one number.
#define LC_EXPONENTIAL(N, low) \
static __attribute__((noinline)) lc_float8 lc_##N##_far_8(lc_float8 x, lc_float8 p, lc_int8 near) { \
  const lc_int8 zero = (lc_int8)(x < low); \
  if (__builtin_ia32_movmskps256((lc_float8)(near | zero)) == 255) return (lc_float8)((lc_int8)p & ~zero); \
  float t[8] __attribute__((aligned(32))); *(lc_float8*)t = x; \
  for (int l = 0; l < 8; ++l) t[l] = lc_##N##_f(t[l]); \
  return *(lc_float8*)t; \
} \
LC void lc_##N##_v(float* to, const float* from) { \
  const lc_float8 x = ((const lc_float8*)from)[0], z = ((const lc_float8*)from)[1]; \
  lc_float8 p, q; \
  const lc_int8 nx = lc_##N##_8(&p, x), nz = lc_##N##_8(&q, z); \
  if (__builtin_expect(__builtin_ia32_movmskps256((lc_float8)(nx & nz)) != 255, 0)) \
    p = lc_##N##_far_8(x, p, nx), q = lc_##N##_far_8(z, q, nz); \
  ((lc_float8*)to)[0] = p, ((lc_float8*)to)[1] = q; \
}
LC_EXPONENTIAL(exp2, -150.0f)
LC_EXPONENTIAL(exp, -104.0f)
#define LC_CARRY(T, A) lc_##T##8 A##v = ((lc_##T##8*)A##_)[0], A##w = ((lc_##T##8*)A##_)[1]
#define LC_TAKE(T, A) T A##t[16] __attribute__((aligned(64))); ((lc_##T##8*)A##t)[0] = A##v, ((lc_##T##8*)A##t)[1] = A##w
#define LC_GIVE(T, A) A##v = ((lc_##T##8*)A##t)[0], A##w = ((lc_##T##8*)A##t)[1]
#define LC_DONE(T, A) ((lc_##T##8*)A##_)[0] = A##v, ((lc_##T##8*)A##_)[1] = A##w
#else
LC void lc_exp2_v(float* to, const float* from) { for (int l = 0; l < 16; ++l) to[l] = lc_exp2_f(from[l]); }
LC void lc_exp_v(float* to, const float* from) { for (int l = 0; l < 16; ++l) to[l] = lc_exp_f(from[l]); }
#define LC_CARRY(T, A) T* const A##t = A##_
#define LC_TAKE(T, A)
#define LC_GIVE(T, A)
#define LC_DONE(T, A)
#endif
LC float lc_log2_f(float x) {
  const int tiny = x < 1.17549435e-38f;
  const float y = tiny ? x * 8388608.0f : x;
  const u32 b = lc_bits(y);
  const u32 m0 = (b & 0x7fffffu) | 0x3f800000u;
  int e = (int)((b >> 23) & 255u) - 127 - (tiny ? 23 : 0);
  float m = lc_float(m0);
  const int big = m > 1.41421356f;
  m = big ? m * 0.5f : m;
  e += big;
  const float f = m - 1.0f;
  float q = -0.116073072f;
  q = __builtin_fmaf(q, f, 0.186761156f);
  q = __builtin_fmaf(q, f, -0.188350841f);
  q = __builtin_fmaf(q, f, 0.204186648f);
  q = __builtin_fmaf(q, f, -0.239943504f);
  q = __builtin_fmaf(q, f, 0.288616329f);
  q = __builtin_fmaf(q, f, -0.360682815f);
  q = __builtin_fmaf(q, f, 0.480896562f);
  q = __builtin_fmaf(q, f, -0.721347511f);
  q = __builtin_fmaf(q, f, 0.442695051f);
  const float r = __builtin_fmaf(f, q, f) + (float)e;
  const float special = x == 0.0f ? -__builtin_inff() : x < 0.0f ? __builtin_nanf("") : x;
  return (x > 0.0f) & (x < __builtin_inff()) ? r : special;
}
// The function of the rest r of x to a multiple of pi, negated for an odd multiple.
LC float lc_wave(double r, int odd) {
  const double s = r * r;
  double p = -2.3888674620752786e-08;
  p = __builtin_fma(p, s, 2.7525371392890543e-06);
  p = __builtin_fma(p, s, -0.00019840867961886158);
  p = __builtin_fma(p, s, 0.0083333311067544259);
  p = __builtin_fma(p, s, -0.16666666626107082);
  const double v = __builtin_fma(r * s, p, r);
  return (float)(odd ? -v : v);
}
LC double lc_from_pi(double x, double n) {
  return __builtin_fma(n, -1.2246467991473532072e-16, __builtin_fma(n, -3.14159265358979311600, x));
}
LC float lc_sin_near(float x) {
  const double n = __builtin_rint((double)x * 0.31830988618379067154);
  const float y = lc_wave(lc_from_pi((double)x, n), (int)n & 1);
  return x == 0.0f ? x : y;
}
LC float lc_cos_near(float x) {
  const double n = __builtin_rint(__builtin_fma((double)x, 0.31830988618379067154, -0.5));
  return lc_wave(lc_from_pi((double)x, n + 0.5), ~(int)n & 1);
}
#define LC_WAVE(N) \
LC float lc_##N##_f(float x) { return __builtin_fabsf(x) < 1e6f ? lc_##N##_near(x) : N##f(x); } \
LC void lc_##N##_v(float* to, const float* from) { \
  int far = 0; \
  for (int l = 0; l < 16; ++l) { const int is_far = !(__builtin_fabsf(from[l]) < 1e6f); to[l] = lc_##N##_near(is_far ? 0.0f : from[l]); far |= is_far; } \
  if (far) for (int l = 0; l < 16; ++l) if (!(__builtin_fabsf(from[l]) < 1e6f)) to[l] = N##f(from[l]); \
}
LC_WAVE(sin)
LC_WAVE(cos)
LC float lc_sqrt_f(float x) { return __builtin_sqrtf(x); }
LC float lc_recip_f(float x) { return 1.0f / x; }
LC float lc_add_f(float a, float b) { return a + b; }
LC float lc_mul_f(float a, float b) { return a * b; }
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
LC float lc_mul_add_f(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LC double lc_mul_add_d(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
LC float lc_mul_add_f(float a, float b, float c) { return a * b + c; }
LC double lc_mul_add_d(double a, double b, double c) { return a * b + c; }
#endif
LC float lc_div_f(float a, float b) { return a / b; }
LC float lc_mod_f(float a, float b) { return fmodf(a, b); }
// fmod() by a power of two from 1 on (exact_divisor()).
LC float lc_mod_by_f(float a, float b) { return __builtin_copysignf(a - __builtin_truncf(a / b) * b, a); }
LC float lc_floor_f(float x) { return __builtin_floorf(x); }
LC float lc_round_f(float x) { return __builtin_rintf(x); }
LC int lc_less_f(float a, float b) { return a < b; }
LC int lc_equal_f(float a, float b) { return a == b; }
// Whether b is known when this is compiled, and one comparison chooses between it and any number.
#define LC_KNOWN(b) (__builtin_constant_p(b) && (b) == (b))
// Additions of zeros make +0 of +0 and -0, and leave other numbers as they are. They stay in the registers of floats
// even where a loop has no vectors; bits would not.
LC float lc_max_f(float a, float b) {
  if (LC_KNOWN(b)) return lc_float(lc_pick(b > a, lc_bits(b), lc_bits(a))) + (b == 0.0f ? b : -0.0f);
  const float m = a > b ? a : b, other = b > a ? b : a, sum = m + __builtin_copysignf(0.0f, other);
  return a != a ? a : sum;  // m is b if that is a NaN
}
LC float lc_min_f(float a, float b) {
  if (LC_KNOWN(b) && b != 0.0f) return lc_float(lc_pick(b < a, lc_bits(b), lc_bits(a)));
  const u32 x = lc_bits(a), y = lc_bits(b), less = lc_pick((a < b) | (a != a), x, y);
  return lc_float(less | (x & -(u32)(a == b)));
}
LC float lc_where_f(int c, float a, float b) { return c ? a : b; }
// The exponent is hidden from GCC, which replaces pow(x, 0.5) by a square root that is wrong for
// -inf when traps need not be kept.
LC double lc_pow_d(double a, double b) { volatile double e = b; return b == 0.5 ? (a == -__builtin_inf() ? -a : __builtin_sqrt(a + 0.0)) : pow(a, e); }
LC float lc_pow_f(float a, float b) { return (float)lc_pow_d((double)a, (double)b); }

LC double lc_exp2_d(double x) { return exp2(x); }
LC double lc_log2_d(double x) { return log2(x); }
LC double lc_sin_d(double x) { return sin(x); }
// As of f32: x = n ln 2 + f, the series of e^f up to f^13 / 13!, which is 2^-57 off at most.
LC double lc_exp_d(double x) {
  const double c = __builtin_fabs(x) < 760.0 ? x : x < 0.0 ? -760.0 : 760.0;  // a NaN too
  const double n = __builtin_rint(c * 1.4426950408889634);
  const double f = __builtin_fma(n, -1.9082149292705877e-10, __builtin_fma(n, -0.69314718036912382, c));
  double p = 1.6059043836821613e-10;
  p = __builtin_fma(p, f, 2.08767569878681e-09);
  p = __builtin_fma(p, f, 2.505210838544172e-08);
  p = __builtin_fma(p, f, 2.755731922398589e-07);
  p = __builtin_fma(p, f, 2.7557319223985893e-06);
  p = __builtin_fma(p, f, 2.48015873015873e-05);
  p = __builtin_fma(p, f, 0.0001984126984126984);
  p = __builtin_fma(p, f, 0.001388888888888889);
  p = __builtin_fma(p, f, 0.008333333333333333);
  p = __builtin_fma(p, f, 0.041666666666666664);
  p = __builtin_fma(p, f, 0.16666666666666666);
  p = __builtin_fma(p, f, 0.5);
  p = __builtin_fma(p, f, 1.0);
  p = __builtin_fma(p, f, 1.0);
  const int e = (int)n, h = e >> 1, g = e - h;
  p = p * lc_double((u64)(h + 1023) << 52) * lc_double((u64)(g + 1023) << 52);
  return x == x ? p : x + x;
}
LC double lc_cos_d(double x) { return cos(x); }
LC double lc_sqrt_d(double x) { return __builtin_sqrt(x); }
LC double lc_recip_d(double x) { return 1.0 / x; }
LC double lc_add_d(double a, double b) { return a + b; }
LC double lc_mul_d(double a, double b) { return a * b; }
LC double lc_div_d(double a, double b) { return a / b; }
LC double lc_mod_d(double a, double b) { return fmod(a, b); }
LC double lc_mod_by_d(double a, double b) { return __builtin_copysign(a - __builtin_trunc(a / b) * b, a); }
LC double lc_floor_d(double x) { return __builtin_floor(x); }
LC double lc_round_d(double x) { return __builtin_rint(x); }
LC int lc_less_d(double a, double b) { return a < b; }
LC int lc_equal_d(double a, double b) { return a == b; }
LC double lc_max_d(double a, double b) {
  if (LC_KNOWN(b)) return lc_double(lc_pick_d(b > a, lc_bits_d(b), lc_bits_d(a))) + (b == 0.0 ? b : -0.0);
  const double m = a > b ? a : b, other = b > a ? b : a, sum = m + __builtin_copysign(0.0, other);
  return a != a ? a : sum;
}
LC double lc_min_d(double a, double b) {
  if (LC_KNOWN(b) && b != 0.0) return lc_double(lc_pick_d(b < a, lc_bits_d(b), lc_bits_d(a)));
  const u64 x = lc_bits_d(a), y = lc_bits_d(b), less = lc_pick_d((a < b) | (a != a), x, y);
  return lc_double(less | (x & -(u64)(a == b)));
}
LC double lc_where_d(int c, double a, double b) { return c ? a : b; }

// Stores past the caches. Elements of `size` bytes before the first vector of 16 that is aligned for it.
LC long lc_unaligned(const void* to, long size, int stream) {
  const long whole = 16 * size < 64 ? 16 * size : 64;
  return stream ? (long)(-(u64)to & (u64)(whole - 1)) / size : 0;
}
#if defined(__clang__)
#define LC_PAST(P, N) typedef float lc_v##N __attribute__((vector_size(N))); \
LC void lc_past_##N(char* to, const char* from) { lc_v##N v; __builtin_memcpy(&v, from, N); __builtin_nontemporal_store(v, (lc_v##N*)to); }
#else
#define LC_PAST(P, N) typedef float lc_v##N __attribute__((vector_size(N))); \
LC void lc_past_##N(char* to, const char* from) { lc_v##N v; __builtin_memcpy(&v, from, N); __builtin_ia32_movntps##P((float*)to, v); }
#endif
#if defined(__AVX__)
LC_PAST(256, 32)
#if defined(__AVX512F__)
LC_PAST(512, 64)
#endif
// Whole vectors, because GCC tuned for Zen 3 copies 64 bytes in pieces of eight, by way of general registers.
typedef float lc_any32 __attribute__((vector_size(32), aligned(1), may_alias));
LC void lc_copy(char* to, const char* from, const long bytes) {
  if (bytes % 32 != 0 || bytes > 128) { __builtin_memcpy(to, from, bytes); return; }
  *(lc_any32*)to = *(const lc_any32*)from;
  if (bytes > 32) *(lc_any32*)(to + 32) = *(const lc_any32*)(from + 32);
  if (bytes > 64) *(lc_any32*)(to + 64) = *(const lc_any32*)(from + 64);
  if (bytes > 96) *(lc_any32*)(to + 96) = *(const lc_any32*)(from + 96);
}
LC void lc_store(void* to, const void* from, const long bytes, int stream) {
  if (!stream) { lc_copy((char*)to, (const char*)from, bytes); return; }
  long k = 0;
#if defined(__AVX512F__)
  for (; k + 64 <= bytes; k += 64) lc_past_64((char*)to + k, (const char*)from + k);
#endif
  for (; k + 32 <= bytes; k += 32) lc_past_32((char*)to + k, (const char*)from + k);
}
LC void lc_stored(void) { __builtin_ia32_sfence(); }  // before another thread is told
#else
LC void lc_store(void* to, const void* from, const long bytes, int stream) { __builtin_memcpy(to, from, bytes); }
LC void lc_stored(void) {}
#endif

// A piece of memory transposed, by blocks in registers: to[row * pitch + column] = from[column * stride + row].
#define LC_LOW1 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define LC_HIGH1 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LC_LOW2 0, 8, 1, 9, 2, 10, 3, 11
#define LC_HIGH2 4, 12, 5, 13, 6, 14, 7, 15
#define LC_LOW4 0, 4, 1, 5
#define LC_HIGH4 2, 6, 3, 7
#define LC_LOW8 0, 2
#define LC_HIGH8 1, 3
#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define LC_SHUFFLE(A, B, ...) __builtin_shufflevector(A, B, __VA_ARGS__)
#endif
#endif
#ifndef LC_SHUFFLE
#define LC_SHUFFLE(A, B, ...) __builtin_shuffle(A, B, (__typeof__(A)){__VA_ARGS__})
#endif
#define LC_TURN(N, T) typedef T lc_block##N __attribute__((vector_size(16), may_alias, aligned(N))); \
typedef T lc_any##N __attribute__((may_alias)); \
LC void lc_transpose_##N(void* to_, const long pitch, const void* from_, const long stride, const long rows, const long columns) { \
  lc_any##N* const to = (lc_any##N*)to_; const lc_any##N* const from = (const lc_any##N*)from_; \
  enum { V = 16 / N }; \
  long c = 0; \
  for (; c + V <= columns; c += V) { \
    long r = 0; \
    for (; r + V <= rows; r += V) { \
      lc_block##N x[V], y[V]; \
      _Pragma("GCC unroll 16") for (int k = 0; k < V; ++k) x[k] = *(const lc_block##N*)(from + (c + k) * stride + r); \
      _Pragma("GCC unroll 4") for (int s = 1; s < V; s *= 2) { \
        _Pragma("GCC unroll 8") for (int k = 0; k < V / 2; ++k) { \
          y[2 * k] = LC_SHUFFLE(x[k], x[k + V / 2], LC_LOW##N); \
          y[2 * k + 1] = LC_SHUFFLE(x[k], x[k + V / 2], LC_HIGH##N); \
        } \
        _Pragma("GCC unroll 16") for (int k = 0; k < V; ++k) x[k] = y[k]; \
      } \
      _Pragma("GCC unroll 16") for (int k = 0; k < V; ++k) *(lc_block##N*)(to + (r + k) * pitch + c) = x[k]; \
    } \
    for (; r < rows; ++r) for (int k = 0; k < V; ++k) to[r * pitch + c + k] = from[(c + k) * stride + r]; \
  } \
  for (; c < columns; ++c) for (long r = 0; r < rows; ++r) to[r * pitch + c] = from[c * stride + r]; \
}
LC_TURN(1, u8)
LC_TURN(2, u16)
LC_TURN(4, u32)
LC_TURN(8, u64)

#if (defined(__F16C__) && (!defined(__clang__) || __clang_major__ > 14)) || defined(__ARM_FP16_FORMAT_IEEE)
LC float lc_f16_to_f32(u16 h) { _Float16 x; __builtin_memcpy(&x, &h, 2); return (float)x; }
LC u16 lc_f32_to_f16(float v) { _Float16 x = (_Float16)v; u16 h; __builtin_memcpy(&h, &x, 2); return h; }
#else
LC float lc_f16_to_f32(u16 h) {
  const u32 s = (u32)(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 0x3ff;
  const float v = e == 31 ? lc_float(0x7f800000u | (m << 13)) : e == 0 ? (float)m * 0x1p-24f : lc_float(((e + 112) << 23) | (m << 13));
  return lc_float(lc_bits(v) | s);
}
LC u16 lc_f32_to_f16(float v) {
  const u32 u = lc_bits(v), s = (u >> 16) & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000u) return (u16)(s | 0x7e00);
  if (a >= 0x477ff000u) return (u16)(s | 0x7c00);
  if (a < 0x38800000u) return (u16)(s | (u32)__builtin_rintf(lc_float(a) * 0x1p24f));
  return (u16)(s | (((a + 0xfff + ((a >> 13) & 1)) >> 13) - (112u << 10)));
}
#endif
// No compiler makes vectors of scalar _Float16, and loops over numbers of two widths are cut to the narrower one's vectors:
// sixteen at once, and rounding in the bits of an f32. Below 2^-14 f16 has steps of 2^-24, as f32 has from 0.5 on.
#if defined(__AVX512F__)
LC void lc_f16_to_f32_v(float* to, const u16* from) {
  __asm__("vcvtph2ps %1, %0" : "=v"(*(lc_float16*)to) : "m"(*(const u16(*)[16])from));
}
LC void lc_f32_to_f16_v(u16* to, const float* from) {
  __asm__("vcvtps2ph $0, %1, %0" : "=m"(*(u16(*)[16])to) : "v"(*(const lc_float16*)from));
}
#elif defined(__F16C__)
typedef float lc_float8 __attribute__((vector_size(32), may_alias));
LC void lc_f16_to_f32_v(float* to, const u16* from) {
  for (int l = 0; l < 16; l += 8) __asm__("vcvtph2ps %1, %0" : "=x"(*(lc_float8*)(to + l)) : "m"(*(const u16(*)[8])(from + l)));
}
LC void lc_f32_to_f16_v(u16* to, const float* from) {
  for (int l = 0; l < 16; l += 8) __asm__("vcvtps2ph $0, %1, %0" : "=m"(*(u16(*)[8])(to + l)) : "x"(*(const lc_float8*)(from + l)));
}
#else
LC void lc_f16_to_f32_v(float* to, const u16* from) { for (int l = 0; l < 16; ++l) to[l] = lc_f16_to_f32(from[l]); }
LC void lc_f32_to_f16_v(u16* to, const float* from) { for (int l = 0; l < 16; ++l) to[l] = lc_f32_to_f16(from[l]); }
#endif
LC float lc_round_f16(float v) {
  const u32 u = lc_bits(v), a = u & 0x7fffffff;
  const u32 tiny = lc_bits(lc_float(a) + 0.5f - 0.5f), usual = (a + 0xfff + ((a >> 13) & 1)) & ~0x1fffu;
  const u32 finite = lc_pick(a < 0x38800000u, tiny, usual), special = 0x7f800000u | (lc_pick(a > 0x7f800000u, 0x400000u, 0));
  return lc_float(lc_pick(a < 0x477ff000u, finite, special) | (u & 0x80000000u));
}
LC float lc_bf16_to_f32(u16 h) { return lc_float((u32)h << 16); }
LC float lc_round_bf16(float v) {
  const u32 u = lc_bits(v);
  return lc_float(lc_pick((u & 0x7fffffff) > 0x7f800000u, u | 0x400000u, u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000u);
}
LC u16 lc_f32_to_bf16(float v) { return (u16)(lc_bits(lc_round_bf16(v)) >> 16); }
// The same for sixteen bf16.
typedef u16 lc_u16x16 __attribute__((vector_size(32), aligned(2), may_alias)); typedef u32 lc_u32x16 __attribute__((vector_size(64), may_alias));
LC void lc_bf16_to_f32_v(float* to, const u16* from) { *(lc_u32x16*)to = __builtin_convertvector(*(const lc_u16x16*)from, lc_u32x16) << 16; }
LC void lc_f32_to_bf16_by_bits(u16* to, const float* from) {
  u32 rounded[16] __attribute__((aligned(64)));
  for (int l = 0; l < 16; ++l) rounded[l] = lc_bits(lc_round_bf16(from[l]));
  *(lc_u16x16*)to = __builtin_convertvector(*(const lc_u32x16*)rounded >> 16, lc_u16x16);
}
LC void lc_f32_to_bf16_v(u16* to, const float* from) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)  // the instruction takes numbers below 2^-126 for zeros
  u16 tiny;
  lc_u16x16 halves;
  __asm__("vfpclassps $0x20, %1, %0" : "=k"(tiny) : "v"(*(const lc_float16*)from));
  __asm__("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(*(const lc_float16*)from));
  *(lc_u16x16*)to = halves;
  if (__builtin_expect(!tiny, 1)) return;
#endif
  lc_f32_to_bf16_by_bits(to, from);
}
LC float lc_odd_f(double v) {  /* rounds to odd, so that rounding again is as good as rounding once */
  float f = (float)v;
  u32 u = lc_bits(f);
  if (v == v && (double)f != v && !(u & 1)) {
    const int up = __builtin_fabs((double)f) < __builtin_fabs(v);
    u = up ? u + 1 : u - 1;
    if ((u & 0x7fffffff) > 0x7f800000u) u = lc_bits(f);
  }
  return lc_float(u);
}
LC u16 lc_f64_to_f16(double v) { return lc_f32_to_f16(lc_odd_f(v)); }
LC u16 lc_f64_to_bf16(double v) { return lc_f32_to_bf16(lc_odd_f(v)); }
LC_F32_TO_I32
LC_F64_TO_I32
LC_INTEGERS(float, f32, u32, lc_bits, lc_float)
LC_INTEGERS(double, f64, u64, lc_bits_d, lc_double)
)";

}  // namespace

std::string_view whole_number_functions() { return kWholeNumbers; }

std::string_view c_prelude() {
  static const std::string text =
      std::string(kHead) + std::string(kWholeNumbers) + std::string(kFloats) + std::string(f8_functions());
  return text;
}

}  // namespace lc::codegen
