// The standard library of Metal's shading language on the CPU. It precedes a kernel's text (translate.h) and includes
// no system header, because those take longer to compile than the kernel.
#pragma once

#include "kernel_interface.h"

static LcScheduler* lc_scheduler;

#define double there_is_no_type_double_in_Metal  // any use of double fails to compile
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
#if defined(__aarch64__)
typedef __fp16 half;
#else
typedef _Float16 half;
#endif

// As in Metal, bfloat is constructed only by explicit conversion.
struct bfloat {
  bfloat() = default;
  explicit bfloat(float f) {
    uint u;
    __builtin_memcpy(&u, &f, 4);
    bits = f != f ? ushort(0x7fc0) : ushort((u + 0x7fff + (u >> 16 & 1)) >> 16);
  }
  operator float() const {
    const uint u = uint(bits) << 16;
    float f;
    __builtin_memcpy(&f, &u, 4);
    return f;
  }
  ushort bits;
};

#include "vectors.h"

// These two use the vectors. An empty line keeps the order when the file is formatted.
#include "maths.h"
#include "simdgroup.h"

// ---- how a kernel is called ---------------------------------------------------------------------

// A parameter in memory: a pointer, or a reference, which the caller passes as a pointer.
template <class T>
struct LcMemory;
template <class T>
struct LcMemory<T*> {
  enum { alignment = alignof(T) };
  static T* get(void* p) { return (T*)p; }
};
template <class T>
struct LcMemory<T&> {
  enum { alignment = alignof(T) };
  static T& get(void* p) { return *(T*)p; }
};
template <class T>
static inline T lc_memory(void* p) {
  return LcMemory<T>::get(p);
}

// A position as a scalar or a vector.
template <class T>
struct LcPosition {
  static T get(LcDim3 d) { return T(d.x); }
  static T get(uint i) { return T(i); }
};
template <class T>
struct LcPosition<metal::vec<T, 2>> {
  static metal::vec<T, 2> get(LcDim3 d) { return metal::vec<T, 2>(T(d.x), T(d.y)); }
};
template <class T>
struct LcPosition<metal::vec<T, 3>> {
  static metal::vec<T, 3> get(LcDim3 d) { return metal::vec<T, 3>(T(d.x), T(d.y), T(d.z)); }
};
template <class T, class P>
static inline T lc_position(P p) {
  return LcPosition<T>::get(p);
}
static inline LcDim3 lc_thread_in_grid() {
  const LcDim3 b = lc_scheduler->block_index, s = lc_scheduler->block_size, t = lc_scheduler->thread->index;
  return {b.x * s.x + t.x, b.y * s.y + t.y, b.z * s.z + t.z};
}
static inline uint lc_threads() {
  const LcDim3 s = lc_scheduler->block_size;
  return s.x * s.y * s.z;
}
static inline uint lc_thread_index() { return lc_scheduler->thread->warp * 32 + lc_scheduler->thread->lane; }

#include "module.h"
// The linker defines these symbols at the ends of a section.
#define LC_SHARED_OF(section)                                                  \
  extern "C" {                                                                 \
  extern char __start_##section[] __attribute__((weak, visibility("hidden"))); \
  extern char __stop_##section[] __attribute__((weak, visibility("hidden")));  \
  }
#define LC_KERNELS(...)                                    \
  static const LcMetalKernel lc_kernels[] = {__VA_ARGS__}; \
  extern "C" const LcMetalModule lc_metal_module           \
      __attribute__((visibility("default"))) = {&lc_scheduler, lc_kernels, sizeof lc_kernels / sizeof *lc_kernels};
