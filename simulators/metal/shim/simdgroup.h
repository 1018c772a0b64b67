// Operations of the 32 threads of a SIMD group. All threads that have not returned take part.
#pragma once

namespace metal {

template <class T>
struct LcShuffle {
  T given, taken;
  uint source;
};
template <class T>
void lc_shuffle_lanes(void* const* lanes) {
  for (int i = 0; i < 32; ++i) {
    auto* to = (LcShuffle<T>*)lanes[i];
    if (!to) continue;
    auto* from = to->source < 32 ? (const LcShuffle<T>*)lanes[to->source] : nullptr;
    if (from) to->taken = from->given;
    else __builtin_memset((void*)&to->taken, 0xff, sizeof(T));  // an inactive thread's value is undefined
  }
}
template <class T>
inline T lc_shuffle(T v, uint source) {
  LcShuffle<T> s;
  s.given = v, s.source = source;
  lc_scheduler->warp_exchange(~0u, &s, lc_shuffle_lanes<T>);
  return s.taken;
}
inline uint lc_lane() { return lc_scheduler->thread->lane; }
template <class T>
inline T simd_shuffle(T v, ushort lane) {
  return lc_shuffle(v, lane);
}
template <class T>
inline T simd_broadcast(T v, ushort lane) {
  return lc_shuffle(v, lane);
}
template <class T>
inline T simd_shuffle_xor(T v, ushort mask) {
  return lc_shuffle(v, lc_lane() ^ mask);
}
template <class T>
inline T simd_shuffle_down(T v, ushort by) {
  return lc_shuffle(v, lc_lane() + by);
}
template <class T>
inline T simd_shuffle_up(T v, ushort by) {
  return lc_shuffle(v, lc_lane() - by);
}

// Reduces over the active threads, in pairs.
template <class T, class F>
void lc_reduce_lanes(void* const* lanes) {
  T values[32];
  int n = 0;
  for (int i = 0; i < 32; ++i)
    if (lanes[i]) values[n++] = *(const T*)lanes[i];
  for (; n > 1; n = (n + 1) / 2)
    for (int i = 0; i < n / 2; ++i) values[i] = F::of(values[i], values[n - 1 - i]);
  for (int i = 0; i < 32; ++i)
    if (lanes[i]) *(T*)lanes[i] = values[0];
}
#define LC_REDUCTION(name, expression)                                         \
  struct LcReduce_##name {                                                     \
    template <class T>                                                         \
    static T of(T a, T b) {                                                    \
      return expression;                                                       \
    }                                                                          \
  };                                                                           \
  template <class T>                                                           \
  inline T name(T v) {                                                         \
    lc_scheduler->warp_exchange(~0u, &v, lc_reduce_lanes<T, LcReduce_##name>); \
    return v;                                                                  \
  }
LC_REDUCTION(simd_sum, T(a + b))
LC_REDUCTION(simd_product, T(a* b))
LC_REDUCTION(simd_max, max(a, b))
LC_REDUCTION(simd_min, min(a, b))
LC_REDUCTION(simd_and, T(a& b))
LC_REDUCTION(simd_or, T(a | b))
LC_REDUCTION(simd_xor, T(a ^ b))
#undef LC_REDUCTION
inline bool simd_any(bool v) { return simd_or(uint(v)) != 0; }
inline bool simd_all(bool v) { return simd_and(uint(v)) != 0; }
inline bool simd_is_first() {
  uint lane = lc_lane();
  return simd_min(lane) == lane;
}

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
inline mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
inline void threadgroup_barrier(mem_flags, uint place = __builtin_LINE()) { lc_scheduler->block_barrier(place); }
inline void lc_meet(void* const*) {}
inline void simdgroup_barrier(mem_flags) { lc_scheduler->warp_exchange(~0u, nullptr, lc_meet); }

// Each thread holds two adjacent elements of an 8 x 8 matrix: thread 4 r + c those of row r from column 2 c on.
// (Devices use another order, on which no program may depend.)
template <class T, int R, int C>
struct simdgroup_matrix {
  static_assert(R == 8 && C == 8, "matrices of a SIMD group are 8 x 8");
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T diagonal) {
    for (int i = 0; i < 2; ++i) elements[i] = row() == column() + i ? diagonal : T(0.0f);
  }
  vec<T, 2>& thread_elements() { return elements; }
  static int row() { return int(lc_lane() >> 2); }
  static int column() { return int(lc_lane() & 3) * 2; }
  vec<T, 2> elements;
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int R, int C>
inline simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T v) {
  simdgroup_matrix<T, R, C> m;
  m.elements = vec<T, 2>(v, v);
  return m;
}
template <class M>
inline ulong lc_place(int i, ulong row_length, ulong2 origin, bool transpose) {
  const ulong r = ulong(M::row()), c = ulong(M::column() + i);
  return transpose ? (c + origin.y) * row_length + r + origin.x : (r + origin.y) * row_length + c + origin.x;
}
template <class T>
inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const T* p, ulong row_length = 8, ulong2 origin = ulong2(0),
                           bool transpose = false) {
  lc_scheduler->full_warp_exchange(nullptr, lc_meet);
  for (int i = 0; i < 2; ++i) m.elements[i] = p[lc_place<simdgroup_matrix<T, 8, 8>>(i, row_length, origin, transpose)];
}
template <class T>
inline void simdgroup_store(simdgroup_matrix<T, 8, 8> m, T* p, ulong row_length = 8, ulong2 origin = ulong2(0),
                            bool transpose = false) {
  lc_scheduler->full_warp_exchange(nullptr, lc_meet);
  for (int i = 0; i < 2; ++i) p[lc_place<simdgroup_matrix<T, 8, 8>>(i, row_length, origin, transpose)] = m.elements[i];
}

struct LcProduct {
  float a[2], b[2], c[2];
};
inline void lc_multiply_lanes(void* const* lanes) {
  float a[8][8], b[8][8];
  const auto each = [&](auto f) {
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 2; ++i) f(*(LcProduct*)lanes[lane], i, lane >> 2, (lane & 3) * 2 + i);
  };
  each([&](LcProduct& p, int i, int row, int column) { a[row][column] = p.a[i], b[row][column] = p.b[i]; });
  each([&](LcProduct& p, int i, int row, int column) {
    for (int k = 0; k < 8; ++k) p.c[i] += a[row][k] * b[k][column];
  });
}
template <class D, class A, class B, class C>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                                          simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<C, 8, 8> c) {
  LcProduct p;
  for (int i = 0; i < 2; ++i)
    p.a[i] = float(a.elements[i]), p.b[i] = float(b.elements[i]), p.c[i] = float(c.elements[i]);
  lc_scheduler->full_warp_exchange(&p, lc_multiply_lanes);
  d.elements = vec<D, 2>(D(p.c[0]), D(p.c[1]));
}
template <class D, class A, class B>
inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a, simdgroup_matrix<B, 8, 8> b) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>(D(0.0f)));
}

}  // namespace metal
