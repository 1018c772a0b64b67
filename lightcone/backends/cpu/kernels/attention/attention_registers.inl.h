// Products of attention with many rows on tile registers. TILES is a class of tiles.inl.h. Scores are keys times
// queries, whose rows are the lanes; a weighted sum is a row of weights times values, so weights are transposed in
// between.
#pragma once

#include "lightcone/backends/cpu/kernels/attention/attention_tile.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/tiles.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr i64 kRegister = 16;      // rows of a register, and words in a row of it
constexpr i64 kPairs = kTile / 2;  // words of a row of weights
static_assert(kNumbers == 2 && kPairs % kRegister == 0);

constexpr i64 whole_registers(i64 n) { return (n + kRegister - 1) / kRegister * kRegister; }
// Words of a key or a query. They fit into the scratch memory of as many numbers from a depth of 16 on.
constexpr i64 row_length(i64 depth) { return whole_registers(words(depth)); }

struct Operand {
  const float *first, *second;  // two registers; null: only one
  i64 stride, step;             // in floats: between rows, and between steps
};
// Adds the products of `steps` steps, each 64 bytes of a row of A, to the sums.
void add_dots(const Operand& a, const Operand& b, i64 steps) {
  const auto bytes = [](const Operand& o) { return o.stride * 4; };
  for (i64 s = 0; s < steps; ++s) {
    TILES::load<6>(b.first + s * b.step, bytes(b));
    TILES::load<4>(a.first + s * a.step, bytes(a));
    TILES::dot_bf16<0, 4, 6>();
    if (b.second) {
      TILES::load<7>(b.second + s * b.step, bytes(b));
      TILES::dot_bf16<1, 4, 7>();
    }
    if (!a.second) continue;
    TILES::load<5>(a.second + s * a.step, bytes(a));
    TILES::dot_bf16<2, 5, 6>();
    if (b.second) TILES::dot_bf16<3, 5, 7>();
  }
}

// The factor of scores that is left to the exponent, if they are only masked in between. With one in this range neither
// the exponent nor differences of scores overflow where a weight is not 0.
float late_scale(const AttentionProblem& a) {
  return a.skips == 0 && a.scale >= 0x1p-20f && a.scale <= 1 ? a.scale : 1;
}
void begin_blocks() { TILES::begin({64}); }
void end_blocks() { TILES::end(); }
template <int V>
void begin_rows(const AttentionBlock& b, const Work& w) {
  pack_queries<V>(b, row_length(b.problem->depth), w.q);
  std::fill(w.sum, w.sum + V * WIDTH * padded_width(b.problem->width), 0.0f);
}

// Converts a tile for score_tile. `to` may be the tile's own memory.
Tile for_scores(const AttentionProblem& a, const Tile& keys, i64 n, float* to) {
  return words_of_keys(keys, n, a.depth, row_length(a.depth), to);
}

// Computes scores[j][rows], but for late_scale(). There is memory behind the last key.
template <int V>
void score_tile(const AttentionProblem& a, const Work& w, const Tile& keys, i64 n, const Ahead& soon) {
  constexpr i64 R = V * WIDTH;
  const i64 row = row_length(a.depth);
  for (i64 j = 0; j < n; j += 2 * kRegister) {
    const float* first = keys.at(j);
    soon.fetch(j, 2 * kRegister);
    const bool two = n - j > kRegister;
    TILES::zero<0>(), TILES::zero<1>(), TILES::zero<2>(), TILES::zero<3>();
    add_dots({first, two ? first + kRegister * row : nullptr, row, kRegister},
             {w.q, R > kRegister ? w.q + kRegister : nullptr, R, kRegister * R}, row / kRegister);
    float* to = w.scores + j * R;
    TILES::store<0>(to, R * 4);
    if (R > kRegister) TILES::store<1>(to + kRegister, R * 4);
    to += kRegister * R;
    if (two) TILES::store<2>(to, R * 4);
    if (two && R > kRegister) TILES::store<3>(to + kRegister, R * 4);
  }
  if (a.scale == 1 || late_scale(a) != 1) return;
  for (i64 i = 0; i < n * R; i += WIDTH) store(w.scores + i, load(w.scores + i) * splat(a.scale));
}

// The second half of the scores, which is free, has weights as words of a row, [rows][kPairs].
template <int V>
float* weights_of(const Work& w) {
  return w.scores + kPairs * V * WIDTH;
}
// Turns the words of neighboring keys, [n / 2][rows], to words of a row, padded with zeros.
template <int V>
void turn_weights(const Work& w, i64 n) {
  float* const to = weights_of<V>(w);
  for (i64 j = 0; j < whole_registers(words(n)); j += WIDTH)
    for (i64 r = 0; r < V * WIDTH; r += WIDTH) {
      vf v[WIDTH];
      for (i64 i = 0; i < WIDTH; ++i) v[i] = j + i < words(n) ? load(w.scores + (j + i) * V * WIDTH + r) : vf{};
      transpose(v);
      for (i64 i = 0; i < WIDTH; ++i) store(to + (r + i) * kPairs + j, v[i]);
    }
}

// Converts a tile for add_tile: padded with keys of zeros. `to` may be the tile's own memory.
Tile for_sums(const AttentionProblem& a, const Tile& values, i64 n, float* to) {
  const Tile made = words_of_pairs(values, n, a.width, to);
  std::fill(to + words(n) * a.width, to + whole_registers(words(n)) * a.width, 0.0f);
  return made;
}

// sum[rows][c] = sum[rows][c] * shrink + weights * values. Columns beyond the width are of no use to anybody.
template <int V>
void add_tile(const AttentionProblem& a, const Work& w, const Tile& values, i64 n, const Ahead& next) {
  constexpr i64 R = V * WIDTH;
  const i64 width = a.width, row = padded_width(width), steps = whole_registers(words(n)) / kRegister;
  const float* const weights = weights_of<V>(w);
  next.fetch(0, kTile);
  for (i64 r = 0; r < R; ++r) {
    if (w.shrink[r] == 1) continue;
    const vf shrink = splat(w.shrink[r]);
    for (float* p = w.sum + r * row; p < w.sum + (r + 1) * row; p += WIDTH) store(p, load(p) * shrink);
  }
  const Operand rows{weights, R > kRegister ? weights + kRegister * kPairs : nullptr, kPairs, kRegister};
  for (i64 c = 0; c < width; c += 2 * kRegister) {
    const float* first = values.at(0) + c;
    const bool two = width - c > kRegister;
    float *top = w.sum + c, *bottom = top + kRegister * row;
    TILES::load<0>(top, row * 4);
    if (two) TILES::load<1>(top + kRegister, row * 4);
    if (rows.second) TILES::load<2>(bottom, row * 4);
    if (rows.second && two) TILES::load<3>(bottom + kRegister, row * 4);
    add_dots(rows, {first, two ? first + kRegister : nullptr, width, kRegister * width}, steps);
    TILES::store<0>(top, row * 4);
    if (two) TILES::store<1>(top + kRegister, row * 4);
    if (rows.second) TILES::store<2>(bottom, row * 4);
    if (rows.second && two) TILES::store<3>(bottom + kRegister, row * 4);
  }
}

template <int V>
void end_rows(const AttentionBlock& b, const Work& w) {
  const i64 row = padded_width(b.problem->width);
  for (i64 r = 0; r < b.rows; ++r) finish(b, r, w.sum + r * row, 1, w.top[r] * late_scale(*b.problem), w.total[r]);
}

}  // namespace
}  // namespace lc::backends::cpu
