// The register tile of exact int8 products, of bytes. exact_words.inl.h has the one of AVX2.
#pragma once

#include "lightcone/backends/cpu/kernels/dense/exact_int8.inl.h"
#include "lightcone/backends/cpu/kernels/dense/int8_sums.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/register_tile.inl.h"

namespace lc::backends::cpu {
namespace {

#if defined(VNNI)
constexpr int kExactRows = WIDTH == 16 ? 14 : 6;
#elif defined(DOTPROD) || defined(I8MM)
constexpr int kExactRows = 6;
#else
constexpr int kExactRows = MR;
#endif
constexpr int kExactGroups = GROUPS, kExactK = 4;  // groups of columns of a tile, and k of its steps
constexpr int kExactA = kExactStepBytes<kExactRows>, kExactB = kExactBytes;
// If a sum is one vector, no struct is used, because the compiler would keep an array of structs in memory.
#if defined(VNNI) || defined(DOTPROD) || defined(I8MM)
using ExactSum = vi;
inline void add_products(ExactSum& sum, const Sums::Codes& b, const Sums::Word& a) {
  Sums s{reinterpret_cast<decltype(Sums::sum)>(sum)};
  s.add(b, a);
  sum = s.total();
}
inline vi total(const ExactSum& sum) { return sum; }
#else
using ExactSum = Sums;
inline void add_products(ExactSum& sum, const Sums::Codes& b, const Sums::Word& a) { sum.add(b, a); }
inline vi total(const ExactSum& sum) { return sum.total(); }
#endif

template <int H, int V>
struct ExactTile {
  static void run(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 columns, bool add,
                  const void* soon) {
    const auto* x = static_cast<const std::int8_t*>(a);
    const auto* y = static_cast<const u8*>(b);
    ExactSum sums[H][V] = {};
    tile_steps<H, V>((depth + kExactStep - 1) / kExactStep * (kExactStep / 4), c, c_m, soon, [&] {
      typename Sums::Codes codes[V];
      for (int t = 0; t < V; ++t)
        codes[t] = Sums::codes(words(y + t / kGroupVectors * b_group + t % kGroupVectors * WIDTH * 4) ^
                               (kOffset * 0x01010101u));
      LC_UNROLL_BY(16)
      for (int i = 0; i < H; ++i) {
        const auto s = Sums::splat(x + 4 * i);
        for (int t = 0; t < V; ++t) add_products(sums[i][t], codes[t], s);
      }
      x += 4 * kExactRows, y += 4 * kGroup;
    });
    const auto* start = reinterpret_cast<const std::int32_t*>(x);  // `start` follows the codes
    alignas(WIDTH * 4) vi whole[H][V];
    LC_UNROLL_BY(16)
    for (int i = 0; i < H; ++i) LC_UNROLL_BY(4)
    for (int t = 0; t < V; ++t) whole[i][t] = total(sums[i][t]) + start[i];
    put_tile(whole, c, c_m, columns, add);
  }
};

}  // namespace
}  // namespace lc::backends::cpu
