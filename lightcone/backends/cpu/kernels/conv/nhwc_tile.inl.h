// The register tile of channels-last convolutions: R pixels, each an address, times V vectors of output channels. The
// template parameter Taps loads a vector of weights, broadcasts a pixel's tap, and adds their product.
#pragma once

#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/register_tile.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kNr = VECTORS * WIDTH;

template <class Taps, int R, int V>
void last_tile_of(const float* const* pixels, const TapRun* runs, i64 count, const float* w, const float* next,
                  float* c, i64 c_row, i64 columns, bool add) {
  vf acc[R][V];
  LC_UNROLL_BY(16)
  for (int r = 0; r < R; ++r) LC_UNROLL_BY(4)
  for (int v = 0; v < V; ++v) acc[r][v] = vf{};
  for (const TapRun* t = runs; t != runs + count; ++t) {
    const float* p[R];
    for (int r = 0; r < R; ++r) p[r] = pixels[r] + t->offset;
    for (i64 k = 0; k < t->length; ++k, w += kNr, next += 16) {
      typename Taps::Vector x[V];
      for (int v = 0; v < V; ++v) x[v] = Taps::weights(w + v * WIDTH);
      __builtin_prefetch(next, 0, 2);
      LC_UNROLL_BY(8)
      for (int r = 0; r < R; ++r) {
        const typename Taps::Vector s = Taps::repeated(p[r] + k);
        for (int v = 0; v < V; ++v) acc[r][v] = Taps::add(s, x[v], acc[r][v]);
      }
    }
  }
  put_tile(acc, c, c_row, columns, add);
}

using LastTile = void (*)(const float* const*, const TapRun*, i64, const float*, const float*, float*, i64, i64, bool);
template <class Taps, int R, int... V>
constexpr std::array<LastTile, VECTORS> last_widths(std::integer_sequence<int, V...>) {
  return {last_tile_of<Taps, R, V + 1>...};
}
template <class Taps, int... R>
constexpr std::array<std::array<LastTile, VECTORS>, MR> last_tiles(std::integer_sequence<int, R...>) {
  return {last_widths<Taps, R + 1>(std::make_integer_sequence<int, VECTORS>())...};
}

template <class Taps>
void last_tile(const float* const* pixels, const TapRun* runs, i64 count, const float* weights, const float* next,
               float* c, i64 c_row, i64 rows, i64 columns, bool add) {
  static constexpr auto table = last_tiles<Taps>(std::make_integer_sequence<int, MR>());
  table[static_cast<std::size_t>(rows - 1)][static_cast<std::size_t>((columns - 1) / WIDTH)](
      pixels, runs, count, weights, next, c, c_row, columns, add);
}

}  // namespace
}  // namespace lc::backends::cpu
