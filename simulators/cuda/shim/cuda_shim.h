// CUDA C on the CPU: the subset of the language and its library that generated kernels use. It precedes a kernel's text
// and includes no system header, because those take longer to compile than the kernel.
#pragma once
// clang-format cannot format lists of macros without semicolons.
// clang-format off
#include "kernel_interface.h"

static LcScheduler* lc_scheduler;

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// All shared variables are in one section, so that the scheduler can overwrite them before each block. `used`: other
// code writes them during calls.
#define __shared__ static __attribute__((section("lc_shared"), used))
#define LC_DYNAMIC_SHARED(T, name) T* const name = (T*)lc_scheduler->dynamic_shared
#define threadIdx (lc_scheduler->thread->index)
#define blockIdx (lc_scheduler->block_index)
#define blockDim (lc_scheduler->block_size)
#define gridDim (lc_scheduler->grid_size)
#define warpSize 32
#define __syncthreads() lc_scheduler->block_barrier(__LINE__)

typedef unsigned long size_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;  // as in NVRTC on every system
typedef unsigned long long uint64_t;
#define memcpy __builtin_memcpy
#define memset __builtin_memset

#define LC_VECTOR2(name, T, bytes) \
  struct __attribute__((aligned(bytes))) name { \
    T x, y; \
  }; \
  static inline name make_##name(T x, T y) { return {x, y}; }
#define LC_VECTOR4(name, T, bytes) \
  struct __attribute__((aligned(bytes))) name { \
    T x, y, z, w; \
  }; \
  static inline name make_##name(T x, T y, T z, T w) { return {x, y, z, w}; }
LC_VECTOR2(float2, float, 8) LC_VECTOR2(int2, int, 8) LC_VECTOR2(uint2, unsigned, 8) LC_VECTOR2(double2, double, 16)
LC_VECTOR2(longlong2, long long, 16) LC_VECTOR2(short2, short, 4) LC_VECTOR2(ushort2, unsigned short, 4)
LC_VECTOR4(float4, float, 16) LC_VECTOR4(int4, int, 16) LC_VECTOR4(uint4, unsigned, 16)
LC_VECTOR4(short4, short, 8) LC_VECTOR4(ushort4, unsigned short, 8)
LC_VECTOR4(char4, signed char, 4) LC_VECTOR4(uchar4, unsigned char, 4)
#undef LC_VECTOR2
#undef LC_VECTOR4

#include "cuda_math.h"
#include "primitives.h"

template <class To, class From>
static inline To lc_bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "sizes");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
static inline float __int_as_float(int x) { return lc_bit_cast<float>(x); }
static inline float __uint_as_float(unsigned x) { return lc_bit_cast<float>(x); }
static inline int __float_as_int(float x) { return lc_bit_cast<int>(x); }
static inline unsigned __float_as_uint(float x) { return lc_bit_cast<unsigned>(x); }
static inline double __longlong_as_double(long long x) { return lc_bit_cast<double>(x); }
static inline long long __double_as_longlong(double x) { return lc_bit_cast<long long>(x); }

// Loads and stores with a cache hint.
#define LC_LOAD(name) \
  template <class T> \
  static inline T name(const T* p) { \
    return *p; \
  }
#define LC_STORE(name) \
  template <class T> \
  static inline void name(T* p, T v) { \
    *p = v; \
  }
LC_LOAD(__ldg) LC_LOAD(__ldcs) LC_LOAD(__ldca) LC_LOAD(__ldcg) LC_LOAD(__ldlu) LC_LOAD(__ldcv)
LC_STORE(__stcs) LC_STORE(__stcg) LC_STORE(__stwb) LC_STORE(__stwt)
#undef LC_LOAD
#undef LC_STORE

// Threads take turns and switch only at barriers, so plain reads and writes are atomic.
#define LC_ATOMIC(name, value) \
  template <class T> \
  static inline T name(T* p, T v) { \
    const T old = *p; \
    *p = value; \
    return old; \
  }
LC_ATOMIC(atomicAdd, old + v)
LC_ATOMIC(atomicSub, old - v)
LC_ATOMIC(atomicMax, old < v ? v : old)
LC_ATOMIC(atomicMin, v < old ? v : old)
LC_ATOMIC(atomicAnd, old & v)
LC_ATOMIC(atomicOr, old | v)
LC_ATOMIC(atomicXor, old ^ v)
LC_ATOMIC(atomicExch, v)
#undef LC_ATOMIC
template <class T>
static inline T atomicCAS(T* p, T expected, T v) {
  const T old = *p;
  if (old == expected) *p = v;
  return old;
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}

template <class T>
struct LcShuffle {
  T given, taken;
  int source;
};

template <class T>
static void lc_shuffle_lanes(void* const* lanes) {
  for (int lane = 0; lane < 32; ++lane) {
    auto* to = (LcShuffle<T>*)lanes[lane];
    if (to == nullptr) continue;
    if (auto* from = (const LcShuffle<T>*)lanes[to->source]) to->taken = from->given;
    else __builtin_memset(&to->taken, 0xff, sizeof(T));  // an inactive lane's value is undefined on the device
  }
}

template <class T>
static inline T lc_shuffle(unsigned mask, T v, int source) {
  LcShuffle<T> s;
  s.given = v, s.source = source & 31;
  lc_scheduler->warp_exchange(mask, &s, lc_shuffle_lanes<T>);
  return s.taken;
}
// Lanes form segments of `width`. If the source is outside the lane's own segment, the lane keeps its value.
static inline int lc_lane() { return (int)lc_scheduler->thread->lane; }
template <class T>
static inline T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
  return lc_shuffle(mask, v, (lc_lane() & -width) | (source & (width - 1)));
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  const int lane = lc_lane(), source = lane ^ bits;
  return lc_shuffle(mask, v, source > (lane | (width - 1)) ? lane : source);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const int lane = lc_lane(), source = lane + (int)by;
  return lc_shuffle(mask, v, source > (lane | (width - 1)) ? lane : source);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const int lane = lc_lane(), source = lane - (int)by;
  return lc_shuffle(mask, v, source < (lane & -width) ? lane : source);
}

struct LcVote {
  int vote;
  unsigned ballot, voters;
};
static inline void lc_count_votes(void* const* lanes) {
  unsigned ballot = 0, voters = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (auto* v = (const LcVote*)lanes[lane]) voters |= 1u << lane, ballot |= (unsigned)(v->vote != 0) << lane;
  for (int lane = 0; lane < 32; ++lane)
    if (auto* v = (LcVote*)lanes[lane]) v->ballot = ballot, v->voters = voters;
}
static inline LcVote lc_vote(unsigned mask, int vote) {
  LcVote v = {vote, 0, 0};
  lc_scheduler->warp_exchange(mask, &v, lc_count_votes);
  return v;
}
static inline unsigned __ballot_sync(unsigned mask, int p) { return lc_vote(mask, p).ballot; }
static inline int __any_sync(unsigned mask, int p) { return lc_vote(mask, p).ballot != 0; }
static inline int __all_sync(unsigned mask, int p) {
  const LcVote v = lc_vote(mask, p);
  return v.ballot == v.voters;
}
static inline void lc_meet(void* const*) {}
static inline void __syncwarp(unsigned mask = 0xffffffffu) { lc_scheduler->warp_exchange(mask, nullptr, lc_meet); }

// Calls a kernel of any signature through pointers to its arguments.
template <unsigned... I>
struct LcIndices {};
template <unsigned N, unsigned... I>
struct LcMakeIndices : LcMakeIndices<N - 1, N - 1, I...> {};
template <unsigned... I>
struct LcMakeIndices<0, I...> {
  typedef LcIndices<I...> type;
};
template <class... A>
struct LcSignature {
  static constexpr unsigned count = sizeof...(A);
  static constexpr unsigned sizes[] = {(unsigned)sizeof(A)..., 0};
  static constexpr unsigned alignments[] = {(unsigned)alignof(A)..., 0};
  template <void (*kernel)(A...), unsigned... I>
  static void call_each(void* const* p, LcIndices<I...>) {
    kernel(*(A*)p[I]...);
  }
  template <void (*kernel)(A...)>
  static void call(void* const* p) {
    call_each<kernel>(p, typename LcMakeIndices<count>::type());
  }
};
template <class... A>
static LcSignature<A...> lc_signature(void (*)(A...));

// The first argument of __launch_bounds__.
struct LcFirst {
  unsigned value;
  constexpr LcFirst(unsigned v, ...) : value(v) {}
};

#define LC_KERNEL(name, max_threads) \
  {#name, decltype(lc_signature(name))::call<name>, decltype(lc_signature(name))::sizes, \
   decltype(lc_signature(name))::alignments, decltype(lc_signature(name))::count, max_threads},
#define LC_MODULE(...) \
  extern "C" { \
  extern char __start_lc_shared[] __attribute__((weak, visibility("hidden"))); \
  extern char __stop_lc_shared[] __attribute__((weak, visibility("hidden"))); \
  static const LcKernel lc_kernels[] = {__VA_ARGS__}; \
  extern const LcModule lc_module __attribute__((visibility("default"))) = { \
      &lc_scheduler, __start_lc_shared, __stop_lc_shared, lc_kernels, sizeof lc_kernels / sizeof *lc_kernels}; \
  }
