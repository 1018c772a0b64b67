// Products of attention with many rows in vector registers: V vectors of rows side by side, KEYS keys at a time. Keys
// and values are read in place, one broadcast element at a time.
#pragma once

#include "lightcone/backends/cpu/kernels/attention/attention_tile.inl.h"

namespace lc::backends::cpu {
namespace {

// Convert a tile for score_keys and for add_values. `to` may be the tile's own memory.
Tile for_scores(const AttentionProblem& a, const Tile& t, i64 n, float* to) {
  return kNumbers == 1 ? t : words_of_keys(t, n, a.depth, words(a.depth), to);
}
Tile for_sums(const AttentionProblem& a, const Tile& t, i64 n, float* to) {
  return kNumbers == 1 ? t : words_of_pairs(t, n, a.width, to);
}

// Computes scores[j][rows] for KEYS keys from j on; missing keys repeat the last.
template <int V>
void score_keys(const float* q, const Tile& k, i64 j, i64 n, i64 depth, float scale, float* to) {
  constexpr int R = V * WIDTH;
  const float* p[KEYS];
  vf acc[KEYS][V] = {};
  for (int t = 0; t < KEYS; ++t) p[t] = k.at(std::min(j + t, n - 1));
  for (i64 c = 0; c < words(depth); ++c) {
    vf x[V];
    for (int v = 0; v < V; ++v) x[v] = load(q + c * R + v * WIDTH);
    for (int t = 0; t < KEYS; ++t) {
      const vf y = splat(p[t][c]);
      for (int v = 0; v < V; ++v) acc[t][v] = products(x[v], y, acc[t][v]);
    }
  }
  LC_UNROLL
  for (int t = 0; t < KEYS; ++t) {
    LC_UNROLL
    for (int v = 0; v < V; ++v) store(to + (j + t) * R + v * WIDTH, acc[t][v] * splat(scale));
  }
}

// sum[c][rows] = sum[c][rows] * shrink + weights * values, for C columns of V from c on.
template <int V, int C>
void add_values(const float* weight, const Tile& values, i64 n, i64 c, const float* shrink, float* sum) {
  constexpr int R = V * WIDTH;
  vf acc[C][V] = {};
  for (i64 j = 0; j < words(n); ++j) {
    const float* p = values.at(j) + c;
    vf x[V];
    for (int v = 0; v < V; ++v) x[v] = load(weight + j * R + v * WIDTH);
    for (int t = 0; t < C; ++t) {
      const vf y = splat(p[t]);
      for (int v = 0; v < V; ++v) acc[t][v] = products(x[v], y, acc[t][v]);
    }
  }
  LC_UNROLL
  for (int t = 0; t < C; ++t) {
    LC_UNROLL
    for (int v = 0; v < V; ++v) {
      float* to = sum + (c + t) * R + v * WIDTH;
      store(to, fma(load(to), load(shrink + v * WIDTH), acc[t][v]));
    }
  }
}

float late_scale(const AttentionProblem&) { return 1; }
void begin_blocks() {}
void end_blocks() {}
template <int V>
void begin_rows(const AttentionBlock& b, const Work& w) {
  pack_queries<V>(b, words(b.problem->depth), w.q);
  std::fill(w.sum, w.sum + V * WIDTH * b.problem->width, 0.0f);
}
template <int V>
void score_tile(const AttentionProblem& a, const Work& w, const Tile& keys, i64 n, const Ahead& soon) {
  for (i64 j = 0; j < n; j += KEYS) {
    soon.fetch(j, KEYS);
    score_keys<V>(w.q, keys, j, n, a.depth, a.scale, w.scores);
  }
}
template <int V>
void turn_weights(const Work&, i64) {}
template <int V>
void add_tile(const AttentionProblem& a, const Work& w, const Tile& values, i64 n, const Ahead& next) {
  i64 c = 0;
  for (; c + KEYS <= a.width; c += KEYS) {
    next.fetch(c, KEYS);
    add_values<V, KEYS>(w.scores, values, n, c, w.shrink, w.sum);
  }
  for (; c + 2 <= a.width; c += 2) add_values<V, 2>(w.scores, values, n, c, w.shrink, w.sum);
  for (; c < a.width; ++c) add_values<V, 1>(w.scores, values, n, c, w.shrink, w.sum);
}
template <int V>
void end_rows(const AttentionBlock& b, const Work& w) {
  const i64 width = b.problem->width;
  if (b.partial) {
    for (i64 r = 0; r < b.rows; ++r) finish(b, r, w.sum + r, V * WIDTH, w.top[r], w.total[r]);
    return;
  }
  for (i64 r = 0; r < b.rows; r += WIDTH)
    for (i64 c = 0; c < width; c += WIDTH) {
      const i64 m = std::min<i64>(WIDTH, width - c);
      vf v[WIDTH] = {};
      for (i64 i = 0; i < m; ++i) v[i] = load(w.sum + (c + i) * V * WIDTH + r);
      transpose(v);
      for (i64 i = 0; i < std::min<i64>(WIDTH, b.rows - r); ++i)
        store_part(b.out[r + i] + c, v[i] * splat(share(w.top[r + i], w.total[r + i])), m);
    }
}

}  // namespace
}  // namespace lc::backends::cpu
