// Declarations of Metal's standard library for clang's checks. Address spaces are attributes: a pointer to one does not
// convert to a pointer to another or to none. Numbers and vectors are built-in types, because a class cannot be copied
// out of an address space.
#pragma once

#define device __attribute__((address_space(1)))
#define constant const __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#define thread
#define double there_is_no_type_double_in_Metal
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
typedef ulong size_t;
typedef _Float16 half;
enum bfloat : unsigned short {};  // converts to float implicitly and from float only explicitly, as Metal's does

namespace metal {

template <class T, int N>
using vec = T __attribute__((ext_vector_type(N)));
// float4(a, b, c, d) and float4(a) call a constructor function; float4 alone is the type.
#define LC_VECTORS(T)         \
  typedef vec<T, 2> T##2;     \
  typedef vec<T, 3> T##3;     \
  typedef vec<T, 4> T##4;     \
  T##2 lc_##T##2(T);          \
  T##2 lc_##T##2(T, T);       \
  T##3 lc_##T##3(T);          \
  T##3 lc_##T##3(T, T, T);    \
  T##4 lc_##T##4(T);          \
  T##4 lc_##T##4(T, T, T, T); \
  T##4 lc_##T##4(T##2, T##2); \
  template <class U>          \
  T##2 lc_##T##2(vec<U, 2>);  \
  template <class U>          \
  T##4 lc_##T##4(vec<U, 4>);
LC_VECTORS(float)
LC_VECTORS(half)
LC_VECTORS(int)
LC_VECTORS(uint)
LC_VECTORS(short)
LC_VECTORS(ushort)
LC_VECTORS(char)
LC_VECTORS(uchar)
LC_VECTORS(long)
LC_VECTORS(ulong)
#undef LC_VECTORS
#define float2(...) lc_float2(__VA_ARGS__)
#define float3(...) lc_float3(__VA_ARGS__)
#define float4(...) lc_float4(__VA_ARGS__)
#define half2(...) lc_half2(__VA_ARGS__)
#define half4(...) lc_half4(__VA_ARGS__)
#define int2(...) lc_int2(__VA_ARGS__)
#define int4(...) lc_int4(__VA_ARGS__)
#define uint2(...) lc_uint2(__VA_ARGS__)
#define uint3(...) lc_uint3(__VA_ARGS__)
#define uint4(...) lc_uint4(__VA_ARGS__)
#define ulong2(...) lc_ulong2(__VA_ARGS__)

#define LC_F1(name)         \
  float name(float);        \
  half name(half);          \
  template <class T, int N> \
  vec<T, N> name(vec<T, N>);
#define LC_F2(name)         \
  float name(float, float); \
  half name(half, half);    \
  template <class T, int N> \
  vec<T, N> name(vec<T, N>, vec<T, N>);
namespace precise {
LC_F1(exp)
LC_F1(exp2)
LC_F1(exp10)
LC_F1(log)
LC_F1(log2)
LC_F1(log10)
LC_F1(sin)
LC_F1(cos)
LC_F1(tan)
LC_F1(asin)
LC_F1(acos)
LC_F1(atan)
LC_F1(sinh)
LC_F1(cosh)
LC_F1(tanh)
LC_F1(asinh)
LC_F1(acosh)
LC_F1(atanh)
LC_F1(sqrt)
LC_F1(rsqrt)
LC_F1(floor)
LC_F1(ceil)
LC_F1(trunc)
LC_F1(round)
LC_F1(rint)
LC_F1(fabs)
LC_F2(pow)
LC_F2(powr)
LC_F2(fmod)
LC_F2(atan2)
LC_F2(fmax)
LC_F2(fmin)
LC_F2(copysign)
LC_F2(fdim)
}  // namespace precise
using namespace precise;
LC_F1(fract)
LC_F1(sign)
LC_F1(saturate)
LC_F1(abs)
LC_F2(max)
LC_F2(min)
#define LC_INTEGER(T) \
  T max(T, T);        \
  T min(T, T);
LC_INTEGER(char)
LC_INTEGER(uchar)
LC_INTEGER(short)
LC_INTEGER(ushort)
LC_INTEGER(int)
LC_INTEGER(uint)
LC_INTEGER(long)
LC_INTEGER(ulong)
int abs(int);
long abs(long);
float fma(float, float, float);
template <class T, int N>
vec<T, N> fma(vec<T, N>, vec<T, N>, vec<T, N>);
float ldexp(float, int);
float mix(float, float, float);
bool isnan(float);
bool isinf(float);
bool isfinite(float);
bool signbit(float);
template <class T>
T clamp(T, T, T);
template <class T>
T select(T, T, bool);
template <class T, int N>
T dot(vec<T, N>, vec<T, N>);
uint popcount(uint);
uint clz(uint);
uint ctz(uint);
uint mulhi(uint, uint);
int mulhi(int, int);
template <class To, class From>
To as_type(From);

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
mem_flags operator|(mem_flags, mem_flags);
void threadgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags);
#define LC_SIMD(name) \
  template <class T>  \
  T name(T);
LC_SIMD(simd_sum)
LC_SIMD(simd_product)
LC_SIMD(simd_max)
LC_SIMD(simd_min)
LC_SIMD(simd_and)
LC_SIMD(simd_or)
LC_SIMD(simd_xor)
#define LC_SHUFFLE(name) \
  template <class T>     \
  T name(T, ushort);
LC_SHUFFLE(simd_shuffle)
LC_SHUFFLE(simd_broadcast)
LC_SHUFFLE(simd_shuffle_xor)
LC_SHUFFLE(simd_shuffle_down)
LC_SHUFFLE(simd_shuffle_up)
bool simd_any(bool);
bool simd_all(bool);
bool simd_is_first();

template <class T>
struct lc_pair {
  typedef vec<T, 2> type;
};
template <>
struct lc_pair<bfloat> {
  typedef bfloat type[2];
};
template <class T, int R, int C>
struct simdgroup_matrix {
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T);
  typename lc_pair<T>::type& thread_elements();
  T elements[2];
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
template <class T, int R, int C>
simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T);
#define LC_MATRIX_MEMORY(space)                                                                                   \
  template <class T>                                                                                              \
  void simdgroup_load(simdgroup_matrix<T, 8, 8>&, const space T*, ulong = 8, ulong2 = ulong2(0ul), bool = false); \
  template <class T>                                                                                              \
  void simdgroup_store(simdgroup_matrix<T, 8, 8>, space T*, ulong = 8, ulong2 = ulong2(0ul), bool = false);
LC_MATRIX_MEMORY(device)
LC_MATRIX_MEMORY(threadgroup)
template <class D, class A, class B, class C>
void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>&, simdgroup_matrix<A, 8, 8>, simdgroup_matrix<B, 8, 8>,
                                   simdgroup_matrix<C, 8, 8>);
template <class D, class A, class B>
void simdgroup_multiply(simdgroup_matrix<D, 8, 8>&, simdgroup_matrix<A, 8, 8>, simdgroup_matrix<B, 8, 8>);

}  // namespace metal
using metal::as_type;
