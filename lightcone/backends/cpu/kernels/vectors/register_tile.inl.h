// The parts of register tiles besides their products. A tile has H rows of V vectors of C, and prefetches during its
// products what it and later tiles will read from memory.
#pragma once

#include <array>
#include <utility>

#include "lightcone/backends/cpu/kernels/vectors/vector.inl.h"

namespace lc::backends::cpu {
namespace {

// Bytes that a step prefetches: a cache line in four steps, while the tile itself reads eight lines or more.
constexpr int kFetched = 16;

// Runs `step` in groups of four. C is prefetched late enough not to be evicted from L1 by the streams of A and B: its
// rows may be a power of two apart and share a few sets.
template <int H, int V, class F>
inline void tile_steps(i64 steps, float* c, i64 c_m, const void* soon, const F& step) {
  constexpr i64 kLate = 8;
  const auto* line = static_cast<const std::byte*>(soon);
  const i64 fours = steps / 4, late = std::max<i64>(0, fours - kLate);
  for (i64 s = 0; s < fours; ++s, line += 4 * kFetched) {
    __builtin_prefetch(line, 0, 2);
    if (s == late)
      for (i64 i = 0; i < H; ++i)
        for (int t = 0; t < V * WIDTH; t += 16) __builtin_prefetch(c + i * c_m + t, 1, 3);
    LC_UNROLL_BY(4)
    for (int u = 0; u < 4; ++u) step();
  }
  for (i64 s = 0; s < steps % 4; ++s) step();
}

// Addition to C, of f32 or of int32.
inline vf plus(vf a, vf b) { return a + b; }
inline vi plus(vi a, vi b) { return a + b; }

template <class Vector, int H, int V>
[[gnu::noinline]] void put_ragged(const Vector (&acc)[H][V], float* c, i64 c_m, i64 columns, bool add) {
  for (i64 i = 0; i < H; ++i)
    for (int t = 0; t < V; ++t) {
      float* p = c + i * c_m + t * WIDTH;
      const i64 n = std::clamp<i64>(columns - t * WIDTH, 0, WIDTH);
      const Vector sum = add ? plus(reinterpret_cast<Vector>(load_part(p, n)), acc[i][t]) : acc[i][t];
      store_part(p, reinterpret_cast<vf>(sum), n);
    }
}
// Stores or adds a tile to C. Indices are constant, because otherwise the sums would be kept in memory.
template <class Vector, int H, int V>
inline void put_tile(const Vector (&acc)[H][V], float* c, i64 c_m, i64 columns, bool add) {
  if (columns < V * WIDTH) {
    Vector copy[H][V];
    LC_UNROLL_BY(16)
    for (int i = 0; i < H; ++i) LC_UNROLL_BY(4)
    for (int t = 0; t < V; ++t) copy[i][t] = acc[i][t];
    return put_ragged(copy, c, c_m, columns, add);
  }
  const auto put = [&](const auto& value) {
    LC_UNROLL_BY(16)
    for (int i = 0; i < H; ++i) LC_UNROLL_BY(4)
    for (int t = 0; t < V; ++t) {
      float* p = c + i * c_m + t * WIDTH;
      store(p, reinterpret_cast<vf>(value(acc[i][t], p)));
    }
  };
  if (add) put([](Vector sum, const float* p) { return plus(reinterpret_cast<Vector>(load(p)), sum); });
  else put([](Vector sum, const float*) { return sum; });
}

// The table has Of<H, V>::run for every height and width, so that tiles at the edges of a product cost only what they
// hold. In plain C++ a tile always has full width: panels are whole, and excess results are not stored.
#if WIDTH == 4 && !defined(NEON)
constexpr bool kEveryWidth = false;
#else
constexpr bool kEveryWidth = true;
#endif
using RegisterTile = void (*)(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 columns,
                              bool add, const void* soon);
template <template <int, int> class Of, int H, int... V>
constexpr std::array<RegisterTile, sizeof...(V)> tile_widths(std::integer_sequence<int, V...>) {
  return {Of < H, kEveryWidth ? V + 1 : static_cast<int>(sizeof...(V)) > ::run...};
}
template <template <int, int> class Of, int Widths, int... H>
constexpr std::array<std::array<RegisterTile, Widths>, sizeof...(H)> tile_sizes(std::integer_sequence<int, H...>) {
  return {tile_widths<Of, H + 1>(std::make_integer_sequence<int, Widths>())...};
}
template <template <int, int> class Of, int Rows, int Vectors>
void register_tile(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 rows, i64 columns,
                   bool add, const void* soon) {
  static constexpr auto table = tile_sizes<Of, Vectors>(std::make_integer_sequence<int, Rows>());
  table[static_cast<std::size_t>(rows - 1)][static_cast<std::size_t>((columns - 1) / WIDTH)](a, b, b_group, depth, c,
                                                                                             c_m, columns, add, soon);
}

}  // namespace
}  // namespace lc::backends::cpu
