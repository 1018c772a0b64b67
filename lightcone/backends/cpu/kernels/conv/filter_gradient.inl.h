// The register tile of filter gradients: R channels of one factor times V vectors of channels of the other, pixel by
// pixel.
#include <algorithm>

#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/register_tile.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kNr = VECTORS * WIDTH;
constexpr i64 kAhead = 8;  // pixels prefetched ahead

template <int R, int V, bool Ragged>
void pixels_tile(const float* rows, const float* from, const PixelPair* pixels, i64 count, float* c, i64 c_row,
                 i64 columns, bool add) {
  const i64 last = columns - (V - 1) * WIDTH;
  vf acc[R][V];
  LC_UNROLL_BY(16)
  for (int r = 0; r < R; ++r) LC_UNROLL_BY(4)
  for (int v = 0; v < V; ++v) acc[r][v] = vf{};
  for (i64 p = 0; p < count; ++p) {
    const float *a = rows + pixels[p].rows, *b = from + pixels[p].columns;
    const PixelPair& soon = pixels[std::min(p + kAhead, count - 1)];
    __builtin_prefetch(rows + soon.rows);
    vf x[V];
    LC_UNROLL_BY(4)
    for (int v = 0; v < V; ++v) {
      __builtin_prefetch(from + soon.columns + v * WIDTH);
      x[v] = Ragged && v == V - 1 ? load_part(b + v * WIDTH, last) : load(b + v * WIDTH);
    }
    LC_UNROLL_BY(8)
    for (int r = 0; r < R; ++r) add_products(acc[r], a + r, x, r);
  }
  put_tile(acc, c, c_row, columns, add);
}

using PixelsTile = void (*)(const float*, const float*, const PixelPair*, i64, float*, i64, i64, bool);
template <bool Ragged, int R, int... V>
constexpr std::array<PixelsTile, VECTORS> pixels_widths(std::integer_sequence<int, V...>) {
  return {pixels_tile<R, V + 1, Ragged>...};
}
template <bool Ragged, int... R>
constexpr std::array<std::array<PixelsTile, VECTORS>, MR> pixels_tiles(std::integer_sequence<int, R...>) {
  return {pixels_widths<Ragged, R + 1>(std::make_integer_sequence<int, VECTORS>())...};
}

void any_tile(const float* a, const float* b, const PixelPair* pixels, i64 count, float* c, i64 c_row, i64 rows,
              i64 columns, bool add) {
  static constexpr auto whole = pixels_tiles<false>(std::make_integer_sequence<int, MR>());
  static constexpr auto ragged = pixels_tiles<true>(std::make_integer_sequence<int, MR>());
  const auto& table = columns % WIDTH == 0 ? whole : ragged;
  table[static_cast<std::size_t>(rows - 1)][static_cast<std::size_t>((columns - 1) / WIDTH)](a, b, pixels, count, c,
                                                                                             c_row, columns, add);
}

}  // namespace

extern "C" void LC_ENTRY(filter_gradient_tile)(const float* a, const float* b, const PixelPair* pixels, i64 count,
                                               float* c, i64 c_row, i64 rows, i64 columns, bool add) {
  any_tile(a, b, pixels, count, c, c_row, rows, columns, add);
}

const FilterGradientTable TABLE = {MR, kNr, LC_ENTRY(filter_gradient_tile)};

}  // namespace lc::backends::cpu
