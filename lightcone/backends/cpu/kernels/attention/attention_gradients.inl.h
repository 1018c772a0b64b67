// The parts of the attention gradients, compiled for each instruction set: products by tiles of MR rows and VECTORS
// vectors, and the softmax of a row of scores with its derivative.
#include "lightcone/backends/cpu/kernels/abi/attention_abi.h"
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/register_tile.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kNr = VECTORS * WIDTH;

struct TileOf {
  const float* a;
  i64 a_row, a_step;
  const float* b;
  i64 b_row, depth;
  float* c;
  i64 c_row, columns;
  bool add;
};

template <int R, int V, bool Ragged>
void small_tile(const TileOf& t) {
  const i64 last = t.columns - (V - 1) * WIDTH;
  vf acc[R][V];
  LC_UNROLL_BY(16)
  for (int r = 0; r < R; ++r) LC_UNROLL_BY(4)
  for (int v = 0; v < V; ++v) acc[r][v] = vf{};
  const float *a = t.a, *b = t.b;
  for (i64 k = 0; k < t.depth; ++k, a += t.a_step, b += t.b_row) {
    vf x[V];
    LC_UNROLL_BY(4)
    for (int v = 0; v < V; ++v) x[v] = Ragged && v == V - 1 ? load_part(b + v * WIDTH, last) : load(b + v * WIDTH);
    LC_UNROLL_BY(8)
    for (int r = 0; r < R; ++r) add_products(acc[r], a + r * t.a_row, x, r);
  }
  put_tile(acc, t.c, t.c_row, t.columns, t.add);
}

using SmallTile = void (*)(const TileOf&);
template <bool Ragged, int R, int... V>
constexpr std::array<SmallTile, VECTORS> small_widths(std::integer_sequence<int, V...>) {
  return {small_tile<R, V + 1, Ragged>...};
}
template <bool Ragged, int... R>
constexpr std::array<std::array<SmallTile, VECTORS>, MR> small_tiles(std::integer_sequence<int, R...>) {
  return {small_widths<Ragged, R + 1>(std::make_integer_sequence<int, VECTORS>())...};
}

void products(const float* a, i64 a_row, i64 a_step, const float* b, i64 b_row, i64 depth, float* c, i64 c_row,
              i64 rows, i64 columns, bool add) {
  static constexpr auto whole = small_tiles<false>(std::make_integer_sequence<int, MR>());
  static constexpr auto ragged = small_tiles<true>(std::make_integer_sequence<int, MR>());
  for (i64 n = 0; n < columns; n += kNr) {
    const i64 here = std::min<i64>(kNr, columns - n);
    const auto& table = here % WIDTH == 0 ? whole : ragged;
    table[static_cast<std::size_t>(rows - 1)][static_cast<std::size_t>((here - 1) / WIDTH)](
        {a, a_row, a_step, b + n, b_row, depth, c + n, c_row, here, add});
  }
}

float weigh(float* s, i64 n, float exponent) {
  vf tops = load(s);
  for (i64 j = WIDTH; j < n; j += WIDTH) tops = larger(load(s + j), tops);
  float t[WIDTH];
  std::memcpy(t, &tops, sizeof t);
  float top = t[0];
  for (int i = 1; i < WIDTH; ++i) top = t[i] > top ? t[i] : top;
  const vf base = splat(top), power = splat(exponent);
  vf total = {};
  for (i64 j = 0; j < n; j += WIDTH) {
    const vf e = exp2_negative((load(s + j) - base) * power);
    store(s + j, e);
    total += e;
  }
  const float all = sum(total);
  const vf share = splat(1 / all);
  for (i64 j = 0; j < n; j += WIDTH) store(s + j, load(s + j) * share);
  return all;
}

void slopes(const float* p, float* slope, i64 n, float scale) {
  vf total = {};
  for (i64 j = 0; j < n; j += WIDTH) total = fma(load(p + j), load(slope + j), total);
  const vf mean = splat(sum(total)), by = splat(scale);
  for (i64 j = 0; j < n; j += WIDTH) store(slope + j, load(p + j) * (load(slope + j) - mean) * by);
}

}  // namespace

extern "C" {
void LC_ENTRY(attention_gradients_products)(const float* a, i64 a_row, i64 a_step, const float* b, i64 b_row, i64 depth,
                                            float* c, i64 c_row, i64 rows, i64 columns, bool add) {
  products(a, a_row, a_step, b, b_row, depth, c, c_row, rows, columns, add);
}
float LC_ENTRY(attention_gradients_weigh)(float* scores, i64 n, float exponent) { return weigh(scores, n, exponent); }
void LC_ENTRY(attention_gradients_slopes)(const float* p, float* slope, i64 n, float scale) {
  slopes(p, slope, n, scale);
}
}

const AttentionGradientsTable TABLE = {MR,
                                       kNr,
                                       WIDTH,
                                       LC_ENTRY(attention_gradients_products),
                                       LC_ENTRY(attention_gradients_weigh),
                                       LC_ENTRY(attention_gradients_slopes)};

}  // namespace lc::backends::cpu
