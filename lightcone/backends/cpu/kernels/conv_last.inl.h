// The register tile of convolutions with channels last: MR pixels x VECTORS vectors of output channels.
#include <array>
#include <utility>

#include "lightcone/backends/cpu/conv_last.h"
#include "lightcone/backends/cpu/kernels/vector.inl.h"

namespace lc::host {
namespace {

constexpr int kNr = VECTORS * WIDTH;

template <int R, int V>
void tile_of(const float* const* pixels, const TapRun* runs, i64 count, const float* w, const float* next, float* c,
             i64 c_row, i64 columns, bool add) {
  vf acc[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) acc[r][v] = splat(0.0f);
  for (const TapRun* t = runs; t != runs + count; ++t) {
    const float* p[R];
    for (int r = 0; r < R; ++r) p[r] = pixels[r] + t->offset;
    for (i64 k = 0; k < t->length; ++k, w += kNr, next += 16) {
      vf x[V];
      for (int v = 0; v < V; ++v) x[v] = load(w + v * WIDTH);
      __builtin_prefetch(next, 0, 2);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const vf s = splat(p[r][k]);
        for (int v = 0; v < V; ++v) acc[r][v] = fma(s, x[v], acc[r][v]);
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) {
      float* to = c + r * c_row + v * WIDTH;
      const i64 n = std::min<i64>(WIDTH, columns - v * WIDTH);
      if (n == WIDTH) store(to, add ? load(to) + acc[r][v] : acc[r][v]);
      else store_part(to, add ? load_part(to, n) + acc[r][v] : acc[r][v], n);
    }
}

using Tile = void (*)(const float* const*, const TapRun*, i64, const float*, const float*, float*, i64, i64, bool);
template <int R, int... V>
constexpr std::array<Tile, VECTORS> widths(std::integer_sequence<int, V...>) {
  return {tile_of<R, V + 1>...};
}
template <int... R>
constexpr std::array<std::array<Tile, VECTORS>, MR> tiles(std::integer_sequence<int, R...>) {
  return {widths<R + 1>(std::make_integer_sequence<int, VECTORS>())...};
}

void tile(const float* const* pixels, const TapRun* runs, i64 count, const float* weights, const float* next, float* c,
          i64 c_row, i64 rows, i64 columns, bool add) {
  static constexpr auto table = tiles(std::make_integer_sequence<int, MR>());
  table[static_cast<std::size_t>(rows - 1)][static_cast<std::size_t>((columns - 1) / WIDTH)](
      pixels, runs, count, weights, next, c, c_row, columns, add);
}

}  // namespace

const ConvLastTable TABLE = {MR, kNr, tile};

}  // namespace lc::host
