// The register tile of convolutions with channels last, MR pixels x VECTORS vectors of output channels, and Winograd's
// transforms over WIDTH channels at once.
#include "lightcone/backends/cpu/conv_last.h"
#include "lightcone/backends/cpu/kernels/register_tile.inl.h"
#include "lightcone/backends/cpu/kernels/winograd.inl.h"

namespace lc::host {
namespace {

constexpr int kNr = VECTORS * WIDTH;

template <int R, int V>
void tile_of(const float* const* pixels, const TapRun* runs, i64 count, const float* w, const float* next, float* c,
             i64 c_row, i64 columns, bool add) {
  vf acc[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = vf{};
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
  put_tile(acc, c, c_row, columns, add);
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

// ---- Winograd ----------------------------------------------------------------------------------

bool filters_in(const float* w, i64 tap, i64 count, float* to, i64 stride) {
  vi bad = {};
  for (i64 i = 0; i < count * kNr; i += WIDTH) {
    vf half[3][kTile];
    for (int x = 0; x < 3; ++x) {
      const vf line[3] = {load(w + i + x * tap), load(w + i + (3 + x) * tap), load(w + i + (6 + x) * tap)};
      for (const vf& v : line) bad |= large(v);
      filter_line(line, half[x]);
    }
    for (int y = 0; y < kTile; ++y) {
      vf u[kTile];
      filter_line({half[0][y], half[1][y], half[2][y]}, u);
      for (int x = 0; x < kTile; ++x) store(to + i + (y * kTile + x) * stride, u[x]);
    }
  }
  return none(bad);
}

bool image_in(const float* const* at, i64 channels, float* to, i64 stride) {
  vi bad = {};
  for (i64 c = 0; c < channels; c += WIDTH) {
    const i64 n = std::min<i64>(WIDTH, channels - c);
    vf half[kTile][kTile];  // [column][row]
    for (int x = 0; x < kTile; ++x) {
      vf d[kTile];
      for (int y = 0; y < kTile; ++y) {
        const float* from = at[y * kTile + x] + c;
        d[y] = n == WIDTH ? load(from) : load_part(from, n);
        bad |= large(d[y]);
      }
      image_line(d, half[x]);
    }
    for (int y = 0; y < kTile; ++y) {
      vf v[kTile];
      image_line({half[0][y], half[1][y], half[2][y], half[3][y], half[4][y], half[5][y]}, v);
      for (int x = 0; x < kTile; ++x) {
        float* p = to + c + (y * kTile + x) * stride;
        if (n == WIDTH) store(p, v[x]);
        else store_part(p, v[x], n);
      }
    }
  }
  return none(bad);
}

void pixels_out(const float* from, i64 stride, i64 channels, float* const* at) {
  for (i64 c = 0; c < channels; c += WIDTH) {
    const i64 n = std::min<i64>(WIDTH, channels - c);
    vf half[kTile][kOut];
    for (int x = 0; x < kTile; ++x) {
      vf m[kTile];
      for (int y = 0; y < kTile; ++y) {
        const float* p = from + c + (y * kTile + x) * stride;
        m[y] = n == WIDTH ? load(p) : load_part(p, n);
      }
      out_line(m, half[x]);
    }
    for (int y = 0; y < kOut; ++y) {
      vf r[kOut];
      out_line({half[0][y], half[1][y], half[2][y], half[3][y], half[4][y], half[5][y]}, r);
      for (int x = 0; x < kOut; ++x) {
        float* p = at[y * kOut + x];
        if (!p) continue;
        if (n == WIDTH) store(p + c, r[x]);
        else store_part(p + c, r[x], n);
      }
    }
  }
}

}  // namespace

const ConvLastTable TABLE = {MR, kNr, tile, filters_in, image_in, pixels_out};

}  // namespace lc::host
