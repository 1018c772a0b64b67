// The text before the kernels: a head for each language, and the functions common to all. Mathematical functions are
// the language's own (each documents its error in units in the last place). Functions that must round exactly are
// written here.
#include "lightcone/codegen/c/prelude.h"
#include "lightcone/codegen/simt/dialect.h"
#include "lightcone/codegen/simt/filled.h"

namespace lc::codegen::simt {
namespace {

constexpr std::string_view kCudaHead = R"CUDA(
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef signed char lc_i8;
#define LC __device__ __forceinline__
#define LC_GLOBAL
#define LC_TABLE __device__ const
#define LC_LOCAL
#define LC_SHARED(T, NAME, N) __shared__ __align__(16) T NAME[N]
#define LC_GROUP blockIdx.x
#define LC_THREAD ((int)threadIdx.x)
#define LC_BARRIER __syncthreads()
#define LC_WARP 32
#define LC_UNROLL _Pragma("unroll")
#define LC_LOOP _Pragma("unroll 1")
#define LC_UNROLL_4 _Pragma("unroll 4")
LC u32 lc_bits(float x) { return __float_as_uint(x); }
LC float lc_float(u32 u) { return __uint_as_float(u); }
LC u64 lc_bits_d(double x) { return (u64)__double_as_longlong(x); }
LC double lc_double(u64 u) { return __longlong_as_double((long long)u); }
#define LC_EXP2(x) exp2f(x)
#define LC_LOG2(x) log2f(x)
#define LC_SIN(x) sinf(x)
#define LC_COS(x) cosf(x)
#define LC_EXP(x) expf(x)
#define LC_SQRT(x) sqrtf(x)
#define LC_POW(x, y) powf(x, y)
#define LC_FMOD(x, y) fmodf(x, y)
#define LC_FMA(x, y, z) fmaf(x, y, z)
#define LC_RINT(x) rintf(x)
#define LC_EXP2_D(x) exp2(x)
#define LC_LOG2_D(x) log2(x)
#define LC_SIN_D(x) sin(x)
#define LC_COS_D(x) cos(x)
#define LC_EXP_D(x) exp(x)
#define LC_SQRT_D(x) sqrt(x)
#define LC_POW_D(x, y) pow(x, y)
#define LC_FMOD_D(x, y) fmod(x, y)
#define LC_FMA_D(x, y, z) fma(x, y, z)
#define LC_FABS_D(x) fabs(x)
#define LC_HAS_F64 1
template <class T, int N> struct alignas(sizeof(T) * N) LcWide { T v[N]; };
#define LC_VECTOR(T, N, NAME) LcWide<T, N> NAME
#define LC_STOREV(T, N, TO, FROM) *(LcWide<T, N>*)(TO) = FROM
#define LC_LOADV_LOCAL LC_LOADV
#define LC_STOREV_LOCAL LC_STOREV
#define LC_AT(W, L) W.v[L]
#define LC_SHUFFLE(S, T, VIA) LC T lc_shuffle_##S(T v, int by) { return (T)__shfl_xor_sync(0xffffffffu, (VIA)v, by); }
// Where launches overlap, a kernel lets the next one begin, and waits for the end of the one before.
#if defined(LC_OVERLAP) && defined(LC_CUDA_SHIM)
#define LC_BEGIN lc_scheduler->wait_for_grid();
#elif defined(LC_OVERLAP)
#define LC_BEGIN asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
#else
#define LC_BEGIN
#endif
#ifdef LC_CUDA_SHIM  // the CPU stands in: simulators/cuda
#define LC_HAS_BF16_CONVERSIONS 1
#define LC_LOADV(T, N, TO, FROM) const LcWide<T, N> TO = *(const LcWide<T, N>*)(FROM)
#else
// Read as words: NVRTC takes what is read as halves apart into single ones where other memory is written in between.
template <int BYTES> struct LcWords { uint4 w[BYTES / 16]; };
template <> struct LcWords<8> { uint2 w; };
template <> struct LcWords<4> { u32 w; };
template <> struct LcWords<2> { u16 w; };
template <class T, int N> LC LcWide<T, N> lc_read_wide(const T* from) {
  union { LcWords<sizeof(T) * N> words; LcWide<T, N> wide; };
  words = *(const LcWords<sizeof(T) * N>*)from;
  return wide;
}
#define LC_LOADV(T, N, TO, FROM) const LcWide<T, N> TO = lc_read_wide<T, N>(FROM)
LC float lc_f16_to_f32(u16 h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
LC u16 lc_f32_to_f16(float f) { u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h; }
#if __CUDA_ARCH__ >= 800
LC float lc_bf16_to_f32(u16 h) { return lc_float((u32)h << 16); }
LC u16 lc_f32_to_bf16(float f) { u16 h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h; }
LC float lc_round_bf16(float f) { return lc_bf16_to_f32(lc_f32_to_bf16(f)); }
LC float lc_max_f(float a, float b) { float m; asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b)); return m; }
LC float lc_min_f(float a, float b) { float m; asm("min.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b)); return m; }
#define LC_HAS_BF16_CONVERSIONS 1
#define LC_HAS_BF16_ROUNDING 1
#define LC_HAS_NAN_WINS 1
#endif
#if __CUDA_ARCH__ >= 890
// By f16, in which both are exact: e5m2 is its upper half.
LC float lc_f8_e4m3fn_to_f32(u8 b) {
  float f;
  asm("{ .reg .b16 low, high; .reg .b32 both; cvt.rn.f16x2.e4m3x2 both, %1; mov.b32 {low, high}, both; cvt.f32.f16 %0, low; }"
      : "=f"(f) : "h"((u16)b));
  return f;
}
LC float lc_f8_e5m2_to_f32(u8 b) { return lc_f16_to_f32((u16)(b << 8)); }
#define LC_HAS_F8_WIDENING 1
#endif
#endif
#define LC_HAS_F16_CONVERSIONS 1
)CUDA";

constexpr std::string_view kOpenClHead = R"(
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define LC_HAS_F64 1
#endif
#define signed  // clang takes a signed char for another type than char, which is what vload and vstore know
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef char lc_i8;  // signed, and not another type beside it
#define LC static inline
#define LC_GLOBAL __global
#define LC_TABLE __constant
#define LC_LOCAL __local
#define LC_SHARED(T, NAME, N) __local T NAME[N]
#define LC_GROUP get_group_id(0)
#define LC_THREAD ((int)get_local_id(0))
#define LC_BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define LC_WARP 1
#define LC_UNROLL
#define LC_LOOP
#define LC_UNROLL_4
LC u32 lc_bits(float x) { return as_uint(x); }
LC float lc_float(u32 u) { return as_float(u); }
// (For PoCL 3.1 a power of a NaN that it knows is 0, and the remainder of infinity is infinity.)
#define LC_EXP2(x) ((x) == (x) ? exp2(x) : (x))
#define LC_LOG2(x) log2(x)
#define LC_SIN(x) sin(x)
#define LC_COS(x) cos(x)
#define LC_EXP(x) ((x) == (x) ? exp(x) : (x))
#define LC_SQRT(x) sqrt(x)
#define LC_POW(x, y) pow(x, y)
#define LC_FMOD(x, y) ((lc_bits(x) & 0x7fffffffu) < 0x7f800000u && (y) != 0.0f ? fmod(x, y) : lc_float(0x7fc00000u))
#define LC_FMA(x, y, z) fma(x, y, z)
#define LC_RINT(x) rint(x)
#ifdef LC_HAS_F64
LC u64 lc_bits_d(double x) { return as_ulong(x); }
LC double lc_double(u64 u) { return as_double(u); }
#define LC_EXP2_D(x) exp2(x)
#define LC_LOG2_D(x) log2(x)
#define LC_SIN_D(x) sin(x)
#define LC_COS_D(x) cos(x)
#define LC_EXP_D(x) exp(x)
#define LC_SQRT_D(x) sqrt(x)
#define LC_POW_D(x, y) pow(x, y)
#define LC_FMOD_D(x, y) (fabs(x) < lc_double(0x7ff0000000000000UL) && (y) != 0.0 ? fmod(x, y) : lc_double(0x7ff8000000000000UL))
#define LC_FMA_D(x, y, z) fma(x, y, z)
#define LC_FABS_D(x) fabs(x)
#endif
#define LC_LOADV(T, N, TO, FROM) T TO[N]; vstore##N(vload##N(0, FROM), 0, TO)
#define LC_VECTOR(T, N, NAME) T NAME[N]
#define LC_STOREV(T, N, TO, FROM) vstore##N(vload##N(0, FROM), 0, TO)
#define LC_LOADV_LOCAL LC_LOADV
#define LC_STOREV_LOCAL LC_STOREV
#define LC_AT(W, L) W[L]
)";

constexpr std::string_view kMetalHead = R"MSL(
#include <metal_stdlib>
using namespace metal;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef signed char lc_i8;
#define LC static inline
#define LC_GLOBAL device
#define LC_TABLE constant
#define LC_LOCAL threadgroup
#define LC_SHARED(T, NAME, N) threadgroup T NAME[N] __attribute__((aligned(16)))
#define LC_GROUP group_.x
#define LC_THREAD ((int)thread_.x)
#define LC_BARRIER threadgroup_barrier(mem_flags::mem_threadgroup)
#define LC_WARP 32
#define LC_UNROLL _Pragma("clang loop unroll(full)")
#define LC_LOOP _Pragma("clang loop unroll(disable)")
#define LC_UNROLL_4 _Pragma("clang loop unroll_count(4)")
LC u32 lc_bits(float x) { return as_type<u32>(x); }
LC float lc_float(u32 u) { return as_type<float>(u); }
#define LC_EXP2(x) precise::exp2(x)
#define LC_LOG2(x) precise::log2(x)
#define LC_SIN(x) precise::sin(x)
#define LC_COS(x) precise::cos(x)
#define LC_EXP(x) precise::exp(x)
#define LC_SQRT(x) precise::sqrt(x)
#define LC_POW(x, y) precise::pow(x, y)
#define LC_FMOD(x, y) precise::fmod(x, y)
#define LC_FMA(x, y, z) fma(x, y, z)
#define LC_RINT(x) rint(x)
template <class T, int N> struct alignas(sizeof(T) * N) LcWide { T v[N]; };
#define LC_LOADV(T, N, TO, FROM) const LcWide<T, N> TO = *(device const LcWide<T, N>*)(FROM)
#define LC_VECTOR(T, N, NAME) LcWide<T, N> NAME
#define LC_STOREV(T, N, TO, FROM) *(device LcWide<T, N>*)(TO) = FROM
#define LC_LOADV_LOCAL(T, N, TO, FROM) const LcWide<T, N> TO = *(const LcWide<T, N> threadgroup*)(FROM)
#define LC_STOREV_LOCAL(T, N, TO, FROM) *(LcWide<T, N> threadgroup*)(TO) = FROM
#define LC_AT(W, L) W.v[L]
#define LC_SHUFFLE(S, T, VIA) LC T lc_shuffle_##S(T v, int by) { return (T)simd_shuffle_xor((VIA)v, (ushort)by); }
#define LC_SHUFFLE_32_BITS 1
LC float lc_f16_to_f32(u16 h) { return (float)as_type<half>(h); }
LC u16 lc_f32_to_f16(float f) { return as_type<u16>((half)f); }
#define LC_HAS_F16_CONVERSIONS 1
)MSL";

constexpr std::string_view kShared = R"(
#define __builtin_inff() lc_float(0x7f800000u)
#define __builtin_nanf(S) lc_float(0x7fc00000u)
#define __builtin_inf() lc_double(0x7ff0000000000000UL)
#define __builtin_nan(S) lc_double(0x7ff8000000000000UL)
LC float lc_exp2_f(float x) { return LC_EXP2(x); }
LC float lc_log2_f(float x) { return LC_LOG2(x); }
LC float lc_sin_f(float x) { return LC_SIN(x); }
LC float lc_cos_f(float x) { return LC_COS(x); }
LC float lc_exp_f(float x) { return LC_EXP(x); }
LC float lc_sqrt_f(float x) { return LC_SQRT(x); }
LC float lc_recip_f(float x) { return 1.0f / x; }
LC float lc_add_f(float a, float b) { return a + b; }
LC float lc_mul_f(float a, float b) { return a * b; }
// A block's sum A goes into the sum B of the blocks before it, what that rounds away into E (not the NaN that it is of
// infinities), and A begins anew.
#define LC_BLOCK(B, E, A) { \
  const float lc_sum_ = B + A, lc_of_ = lc_sum_ - B, lc_rest_ = (B - (lc_sum_ - lc_of_)) + (A - lc_of_); \
  B = lc_sum_; E += lc_rest_ == lc_rest_ ? lc_rest_ : 0.0f; A = 0.0f; }
LC float lc_mul_add_f(float a, float b, float c) { return LC_FMA(a, b, c); }
LC float lc_div_f(float a, float b) { return a / b; }
LC float lc_mod_f(float a, float b) { return LC_FMOD(a, b); }
LC float lc_floor_f(float x) { return floor(x); }
LC float lc_round_f(float x) { return LC_RINT(x); }
LC int lc_less_f(float a, float b) { return a < b; }
LC int lc_equal_f(float a, float b) { return a == b; }
#ifndef LC_HAS_NAN_WINS
LC float lc_max_f(float a, float b) {
  const float m = a > b || a != a ? a : b;
  return a == b ? lc_float(lc_bits(a) & lc_bits(b)) : m;
}
LC float lc_min_f(float a, float b) {
  const float m = a < b || a != a ? a : b;
  return a == b ? lc_float(lc_bits(a) | lc_bits(b)) : m;
}
#endif
LC float lc_where_f(int c, float a, float b) { return c ? a : b; }
LC float lc_pow_f(float a, float b) { return LC_POW(a, b); }
#ifndef LC_HAS_F16_CONVERSIONS
LC float lc_f16_to_f32(u16 h) {
  const u32 s = (u32)(h & 0x8000) << 16, e = h & 0x7c00, m = h & 0x3ff;
  const float v = e == 0x7c00 ? lc_float(0x7f800000u | (m << 13)) : e == 0 ? (float)m * 0x1p-24f : lc_float(((e | m) << 13) + (112u << 23));
  return lc_float(lc_bits(v) | s);
}
LC u16 lc_f32_to_f16(float v) {
  const u32 u = lc_bits(v), s = (u >> 16) & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000u) return (u16)(s | 0x7e00);
  if (a >= 0x477ff000u) return (u16)(s | 0x7c00);
  if (a < 0x38800000u) return (u16)(s | (u32)LC_RINT(lc_float(a) * 0x1p24f));
  return (u16)(s | (((a + 0xfff + ((a >> 13) & 1)) >> 13) - (112u << 10)));
}
#endif
LC float lc_round_f16(float v) { return lc_f16_to_f32(lc_f32_to_f16(v)); }
#ifndef LC_HAS_BF16_CONVERSIONS
LC float lc_bf16_to_f32(u16 h) { return lc_float((u32)h << 16); }
#endif
#ifndef LC_HAS_BF16_ROUNDING
LC float lc_round_bf16(float v) {
  const u32 u = lc_bits(v);
  return lc_float(((u & 0x7fffffff) > 0x7f800000u ? u | 0x400000u : u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000u);
}
#endif
#ifndef LC_HAS_BF16_CONVERSIONS
LC u16 lc_f32_to_bf16(float v) { return (u16)(lc_bits(lc_round_bf16(v)) >> 16); }
#endif
LC_F32_TO_I32
LC_INTEGERS(float, f32, u32, lc_bits, lc_float)
#ifdef LC_HAS_F64
LC double lc_exp2_d(double x) { return LC_EXP2_D(x); }
LC double lc_log2_d(double x) { return LC_LOG2_D(x); }
LC double lc_sin_d(double x) { return LC_SIN_D(x); }
LC double lc_cos_d(double x) { return LC_COS_D(x); }
LC double lc_exp_d(double x) { return LC_EXP_D(x); }
LC double lc_sqrt_d(double x) { return LC_SQRT_D(x); }
LC double lc_recip_d(double x) { return 1.0 / x; }
LC double lc_add_d(double a, double b) { return a + b; }
LC double lc_mul_d(double a, double b) { return a * b; }
LC double lc_mul_add_d(double a, double b, double c) { return LC_FMA_D(a, b, c); }
LC double lc_div_d(double a, double b) { return a / b; }
LC double lc_mod_d(double a, double b) { return LC_FMOD_D(a, b); }
LC double lc_floor_d(double x) { return floor(x); }
LC double lc_round_d(double x) { return rint(x); }
LC int lc_less_d(double a, double b) { return a < b; }
LC int lc_equal_d(double a, double b) { return a == b; }
LC double lc_max_d(double a, double b) {
  const double m = a > b || a != a ? a : b;
  return a == b ? lc_double(lc_bits_d(a) & lc_bits_d(b)) : m;
}
LC double lc_min_d(double a, double b) {
  const double m = a < b || a != a ? a : b;
  return a == b ? lc_double(lc_bits_d(a) | lc_bits_d(b)) : m;
}
LC double lc_where_d(int c, double a, double b) { return c ? a : b; }
LC double lc_pow_d(double a, double b) { return LC_POW_D(a, b); }
LC float lc_odd_f(double v) {  // rounds to odd, so that rounding again is as good as rounding once
  const float f = (float)v;
  const u32 u = lc_bits(f);
  if (v != v || (double)f == v || (u & 1)) return f;
  const u32 odd = LC_FABS_D((double)f) < LC_FABS_D(v) ? u + 1 : u - 1;
  return (odd & 0x7fffffff) > 0x7f800000u ? f : lc_float(odd);
}
LC u16 lc_f64_to_f16(double v) { return lc_f32_to_f16(lc_odd_f(v)); }
LC u16 lc_f64_to_bf16(double v) { return lc_f32_to_bf16(lc_odd_f(v)); }
LC_F64_TO_I32
LC_INTEGERS(double, f64, u64, lc_bits_d, lc_double)
#endif
#ifdef LC_SHUFFLE
LC_SHUFFLE(f, float, float)
LC_SHUFFLE(c, signed char, int)
LC_SHUFFLE(s, short, int)
LC_SHUFFLE(i, int, int)
LC_SHUFFLE(b, u8, int)
LC_SHUFFLE(us, u16, int)
LC_SHUFFLE(u, u32, u32)
LC_SHUFFLE(t, int, int)
#ifndef LC_SHUFFLE_32_BITS
LC_SHUFFLE(l, long, long)
LC_SHUFFLE(ul, u64, u64)
LC_SHUFFLE(d, double, double)
#endif
#endif
)";

constexpr Dialect kDialects[] = {
    {"CUDA C", kCudaHead, "extern \"C\" __global__ void __launch_bounds__($THREADS$LEAST)", "$Cvoid* p$K_",
     "const long n$K_", "", "", "  LC_BEGIN\n", "($C$T*)p$K_", true},
    {"OpenCL C", kOpenClHead, "__kernel __attribute__((reqd_work_group_size($THREADS, 1, 1))) void",
     "__global $Cchar* p$K_, const long o$K_", "const long n$K_", "", "", "", "(__global $C$T*)(p$K_ + o$K_)", true},
    {"Metal", kMetalHead, "[[max_total_threads_per_threadgroup($THREADS)]] kernel void",
     "device $Cchar* p$K_ [[buffer($K)]]", "", "constant long* n_ [[buffer($K)]]",
     "uint3 group_ [[threadgroup_position_in_grid]], uint3 thread_ [[thread_position_in_threadgroup]]", "",
     "(device $C$T*)p$K_", false},
};

}  // namespace

const Dialect& dialect(Language l) { return kDialects[static_cast<int>(l)]; }

std::string prelude(Language l) {
  const Dialect& d = dialect(l);
  return std::string(d.head) + std::string(whole_number_functions()) + std::string(kShared) +
         std::string(f8_functions());
}

std::string begin_kernel(Language l, std::string_view name, int threads, std::span<const Parameter> parameters,
                         std::size_t sizes, std::string_view index, int resident, std::string_view first) {
  const Dialect& d = dialect(l);
  std::string list(first), body(d.begin);
  const auto add = [&](std::string_view parameter) {
    if (!parameter.empty()) list += (list.empty() ? "" : ", ") + std::string(parameter);
  };
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const std::string kept = parameters[k].written ? "" : "const ";
    const Names names = {{"K", std::to_string(k)}, {"T", std::string(parameters[k].type)}, {"C", kept}};
    add(filled(d.buffer, names));
    body += "  LC_GLOBAL " + kept + parameters[k].type + "* const " + parameters[k].name + " = " +
            filled(d.pointer, names) + ";\n";
  }
  for (std::size_t k = 0; k < sizes; ++k) {
    const std::string n = std::to_string(k);
    add(filled(d.size, {{"K", n}}));
    body += "  const " + std::string(index) + " n" + n + " = (" + std::string(index) + ")" +
            (d.size.empty() ? "n_[" + n + "]" : "n" + n + "_") + ";\n";
  }
  if (sizes) add(filled(d.sizes, {{"K", std::to_string(parameters.size())}}));
  add(d.last);
  const std::string least = resident > 1 ? ", " + std::to_string(resident) : "";
  return filled(d.start, {{"THREADS", std::to_string(threads)}, {"LEAST", least}}) + " " + std::string(name) + "(" +
         list + ") {\n" + body;
}

}  // namespace lc::codegen::simt
