// Attention of one block of rows, compiled for each instruction set: WIDTH floats per vector, KEYS keys times two
// vectors of rows in registers.
//
// With many rows, each row is a vector lane, so that the softmax needs no sums across lanes and keys and values are
// read in place, one broadcast element at a time. With at most kFew rows, most lanes would be idle, so the lanes run
// along the head instead.
#include <algorithm>
#include <limits>

#include "lightcone/backends/cpu/kernels/attention_masks.inl.h"
#include "lightcone/backends/cpu/kernels/attention_words.inl.h"
#include "lightcone/backends/cpu/kernels/entry.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kFew = WIDTH == 16 ? 8 : 4;
constexpr int kRows = 2 * WIDTH, kTile = 8 * KEYS;
static_assert(kRows <= kAttentionRows && kTile <= kAttentionTile && kTile % WIDTH == 0);
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// ---- a tile of keys or values: in place as it is stored, or widened and gathered into scratch ----

// Loads WIDTH stored numbers as f32.
template <CacheType T>
vf numbers(const std::byte* p) {
  if constexpr (T == CacheType::F16) return from_half(reinterpret_cast<const std::uint16_t*>(p));
  else if constexpr (T == CacheType::BF16) return from_bf16(reinterpret_cast<const std::uint16_t*>(p));
  else if constexpr (T == CacheType::I8) return as_float(bytes(reinterpret_cast<const std::int8_t*>(p)));
  else return load(reinterpret_cast<const float*>(p));
}
template <CacheType T>
float number(const std::byte* p) {
  if constexpr (T == CacheType::F16) return half(p);
  else if constexpr (T == CacheType::BF16) return bf16_to_f32(*reinterpret_cast<const std::uint16_t*>(p));
  else if constexpr (T == CacheType::I8) return *reinterpret_cast<const std::int8_t*>(p);
  else return *reinterpret_cast<const float*>(p);
}
template <class F>
auto with_type(CacheType t, const F& f) {
  switch (t) {
    case CacheType::F16: return f.template operator()<CacheType::F16>();
    case CacheType::BF16: return f.template operator()<CacheType::BF16>();
    case CacheType::I8: return f.template operator()<CacheType::I8>();
    default: return f.template operator()<CacheType::F32>();
  }
}

// Some keys or values of a block.
struct Tile {
  const std::byte* p;
  i64 row;  // bytes between keys
  CacheType type;
  const float* scale;  // per key, not yet applied; null: 1
  // Row j of a tile of F32.
  const float* at(i64 j) const { return reinterpret_cast<const float*>(p + j * row); }
};
// The keys or values of a block; strides in elements.
struct Cache {
  const std::byte* p;
  CacheType type;
  i64 key, step, length;
  const float* scale;
  i64 scale_key;
};
Cache keys_of(const AttentionBlock& b) {
  const AttentionProblem& a = *b.problem;
  return {b.k, a.k_type, a.k_key, a.k_depth, a.depth, b.k_scale, a.k_scale_key};
}
Cache values_of(const AttentionBlock& b) {
  const AttentionProblem& a = *b.problem;
  return {b.v, a.v_type, a.v_key, a.v_width, a.width, b.v_scale, a.v_scale_key};
}

template <CacheType T>
void widen_row(const Cache& c, const std::byte* from, float scale, float* to) {
  constexpr i64 size = cache_bytes(T);
  i64 i = 0;
  if (c.step == 1)
    for (; i + WIDTH <= c.length; i += WIDTH) store(to + i, numbers<T>(from + i * size) * splat(scale));
  for (; i < c.length; ++i) to[i] = number<T>(from + i * c.step * size) * scale;
}
// The keys [first, first + n) as f32 with their scales applied, in place if possible, else in `to`.
Tile widened(const Cache& c, i64 first, i64 n, float* to) {
  const i64 size = cache_bytes(c.type);
  const std::byte* from = c.p + first * c.key * size;
  if (c.type == CacheType::F32 && (c.step == 1 || c.length == 1)) return {from, c.key * size, c.type, nullptr};
  with_type(c.type, [&]<CacheType T>() {
    for (i64 j = 0; j < n; ++j)
      widen_row<T>(c, from + j * c.key * size, c.scale ? c.scale[(first + j) * c.scale_key] : 1.0f, to + j * c.length);
  });
  return {reinterpret_cast<const std::byte*>(to), c.length * 4, CacheType::F32, nullptr};
}
// The keys [first, first + n) as they are stored, with scales for the caller to apply to sums. Falls back to widened()
// if a scale times a stored number might not be finite.
Tile stored(const Cache& c, i64 first, i64 n, float* to, float* scales) {
  if (c.step != 1 && c.length != 1) return widened(c, first, n, to);
  const i64 size = cache_bytes(c.type);
  if (!c.scale) return {c.p + first * c.key * size, c.key * size, c.type, nullptr};
  float bad = 0;
  for (i64 j = 0; j < n; ++j) {
    scales[j] = c.scale[(first + j) * c.scale_key];
    bad += scales[j] * 128.0f * 0.0f;
  }
  if (bad != 0.0f) return widened(c, first, n, to);  // also if NaN
  return {c.p + first * c.key * size, c.key * size, c.type, scales};
}

// Prefetch during a loop over a tile: values while keys are scored, the next keys while values are added.
struct Ahead {
  const std::byte* p;
  i64 keys, row, bytes;  // keys 0: no prefetch; row: bytes between rows; bytes: of a row
  void fetch(i64 j, i64 n) const {
    for (const i64 end = std::min(j + n, keys); j < end; ++j)
      for (i64 b = 0; b < bytes; b += 64) __builtin_prefetch(p + j * row + b, 0, 2);
  }
};
Ahead ahead(const Cache& c, i64 first, i64 end) {
  const i64 size = cache_bytes(c.type), keys = c.step == 1 ? std::min<i64>(kTile, end - first) : 0;
  return {c.p + first * c.key * size, keys, c.key * size, c.length * size};
}

// Returns whether all values are finite. A zero weight times an infinity is NaN, which masking must not hide.
bool finite(const Tile& v, i64 n, i64 width) {
  vf bad[4] = {};
  float odd = 0;
  for (i64 j = 0; j < n; j += 4)
    for (int t = 0; t < 4; ++t) {
      const float* p = v.at(std::min(j + t, n - 1));
      i64 c = 0;
      for (; c + WIDTH <= width; c += WIDTH) bad[t] += load(p + c) * splat(0.0f);
      for (; c < width; ++c) odd += p[c] * 0.0f;
    }
  return sum((bad[0] + bad[1]) + (bad[2] + bad[3])) + odd == 0.0f;
}

// The scratch memory of a block.
struct Work {
  float *q, *scores, *sum, *top, *total, *shrink, *keys, *values, *scales;
  Work(const AttentionBlock& b, i64 rows) {
    const AttentionProblem& a = *b.problem;
    float* p = b.scratch;
    const auto take = [&](i64 floats) {
      float* mine = p;
      p += floats;
      return mine;
    };
    scores = take(rows * kTile), top = take(kRows), total = take(kRows), shrink = take(kRows);
    q = take(rows * a.depth), sum = take(rows * a.width);
    keys = take(kTile * a.depth), values = take(kTile * a.width), scales = take(kTile);
  }
};

// Returns whether the tile can be skipped. Fills in what the masks keep of it.
bool hidden(const AttentionBlock& b, i64 j0, i64 n, Kept& seen, const Work& w) {
  look_at_masks(b, j0, n, seen);
  return seen.nothing && finite(widened(values_of(b), j0, n, w.values), n, b.problem->width);
}

// Number of keys of a tile that must be computed: half of the tile if no row keeps a key of the second half, as along a
// diagonal.
i64 needed(const AttentionBlock& b, i64 j0, i64 n, Kept& seen, const Work& w) {
  constexpr i64 half = kTile / 2;
  const AttentionProblem& a = *b.problem;
  for (int i = a.skips; n > half && i < a.steps; ++i) {
    const ScoreStep& s = a.step[i];
    if (s.kind != ScoreStep::Mask) continue;
    i64 r = b.rows;
    while (r > 0 && count_unmasked(s, b.step[i][r - 1] + (j0 + half) * s.key, n - half) == 0) --r;
    if (r > 0 || !finite(widened(values_of(b), j0 + half, n - half, w.values), n - half, a.width)) continue;
    look_at_masks(b, j0, half, seen);
    return half;
  }
  return n;
}

// Factor that normalizes a row. A row that sees no keys is NaN, computed from its maximum.
float share(float top, float total) { return top == kLowest ? top - top : 1.0f / total; }

// Writes the result of row r, or its partial result. Element c of its weighted sum is sum[c * stride].
void finish(const AttentionBlock& b, i64 r, const float* sum, i64 stride, float top, float total) {
  const i64 width = b.problem->width;
  if (b.partial) {
    float* to = b.partial + r * (width + 2);
    for (i64 c = 0; c < width; ++c) to[c] = sum[c * stride];
    to[width] = top, to[width + 1] = total;
    return;
  }
  const float scale = share(top, total);
  for (i64 c = 0; c < width; ++c) b.out[r][c] = sum[c * stride] * scale;
}

// ---- many rows: V vectors of them side by side ------------------------------------------------------

// Converts a tile for score_keys: words along each key. `to` may be the tile's own memory, because every word is read
// before it is written.
Tile for_scores(const Tile& t, i64 n, i64 depth, float* to) {
  if (kNumbers == 1) return t;
  const i64 row = words(depth);
  for (i64 j = 0; j < n; ++j)
    for (i64 c = 0; c < row; c += WIDTH)
      store_part(to + j * row + c, row_words(t.at(j) + c * kNumbers, std::min(kNumbers * WIDTH, depth - c * kNumbers)),
                 std::min<i64>(WIDTH, row - c));
  return {reinterpret_cast<const std::byte*>(to), row * 4, CacheType::F32, nullptr};
}
// Converts a tile for add_values: words of neighboring keys, padded with zeros.
Tile for_sums(const Tile& t, i64 n, i64 width, float* to) {
  if (kNumbers == 1) return t;
  for (i64 j = 0; j < n; j += kNumbers)
    for (i64 c = 0; c < width; c += WIDTH) {
      const i64 m = std::min<i64>(WIDTH, width - c);
      const vf odd = j + 1 < n ? load_part(t.at(j + 1) + c, m) : vf{};
      store_part(to + words(j) * width + c, paired(load_part(t.at(j) + c, m), odd), m);
    }
  return {reinterpret_cast<const std::byte*>(to), width * 4, CacheType::F32, nullptr};
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

// Replaces scores with weights, packed into words, and updates the running maximum and sum.
template <int V>
void weigh(float* s, i64 n, float exponent, const Work& w) {
  constexpr int R = V * WIDTH;
  const vf none = splat(kLowest), power = splat(exponent);
  for (int v = 0; v < V; ++v) {
    const vf old = load(w.top + v * WIDTH);
    vf top = old;
    for (i64 j = 0; j < n; ++j) top = larger(load(s + j * R + v * WIDTH), top);
    const vf base = top == none ? vf{} : top;
    const vf shrink = exp2_negative((old - base) * power);
    vf total = {};  // per tile, so that long sums are sums of tiles
    for (i64 j = 0; j < n; j += kNumbers) {
      vf e[2] = {};
      for (i64 t = 0; t < std::min(kNumbers, n - j); ++t) {
        e[t] = exp2_negative((load(s + (j + t) * R + v * WIDTH) - base) * power);
        total += e[t];
      }
      store(s + words(j) * R + v * WIDTH, paired(e[0], e[1]));
    }
    total = fma(load(w.total + v * WIDTH), shrink, total);
    store(w.top + v * WIDTH, top), store(w.total + v * WIDTH, total), store(w.shrink + v * WIDTH, shrink);
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

// Packs the queries with rows in lanes.
template <int V>
void pack_queries(const AttentionBlock& b, float* to) {
  const i64 step = b.problem->q_depth, depth = b.problem->depth, row = words(depth);
  for (i64 r = 0; r < V * WIDTH; r += WIDTH)
    for (i64 c = 0; c < row; c += WIDTH) {
      vf v[WIDTH] = {};
      for (i64 i = 0; i < std::min<i64>(WIDTH, b.rows - r); ++i)
        v[i] = row_words(b.q[r + i] + c * kNumbers * step, step, std::min(kNumbers * WIDTH, depth - c * kNumbers));
      transpose(v);
      for (i64 i = 0; i < std::min<i64>(WIDTH, row - c); ++i) store(to + (c + i) * V * WIDTH + r, v[i]);
    }
}

template <int V>
void finish_all(const AttentionBlock& b, const Work& w) {
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

template <int V>
void many(const AttentionBlock& b) {
  constexpr int R = V * WIDTH;
  const AttentionProblem& a = *b.problem;
  const Work w(b, R);
  const Cache all_keys = keys_of(b), all_values = values_of(b);
  pack_queries<V>(b, w.q);
  std::fill(w.sum, w.sum + R * a.width, 0.0f);
  std::fill(w.top, w.top + R, kLowest);
  std::fill(w.total, w.total + R, 0.0f);
  Kept seen;
  for (i64 j0 = b.begin; j0 < b.end; j0 += kTile) {
    i64 n = std::min<i64>(kTile, b.end - j0);
    if (hidden(b, j0, n, seen, w)) continue;
    n = needed(b, j0, n, seen, w);
    const Ahead soon = ahead(all_values, j0, b.end), next = ahead(all_keys, j0 + kTile, b.end);
    const Tile keys = for_scores(widened(all_keys, j0, n, w.keys), n, a.depth, w.keys);
    for (i64 j = 0; j < n; j += KEYS) {
      soon.fetch(j, KEYS);
      score_keys<V>(w.q, keys, j, n, a.depth, a.scale, w.scores);
    }

    apply_steps(b, j0, n, seen, {w.scores, 1, R});
    weigh<V>(w.scores, n, a.exponent, w);
    const Tile values = for_sums(widened(all_values, j0, n, w.values), n, a.width, w.values);
    i64 c = 0;
    for (; c + KEYS <= a.width; c += KEYS) {
      next.fetch(c, KEYS);
      add_values<V, KEYS>(w.scores, values, n, c, w.shrink, w.sum);
    }

    for (; c + 2 <= a.width; c += 2) add_values<V, 2>(w.scores, values, n, c, w.shrink, w.sum);
    for (; c < a.width; ++c) add_values<V, 1>(w.scores, values, n, c, w.shrink, w.sum);
  }
  finish_all<V>(b, w);
}

// ---- few rows: lanes along the head, up to four rows at a time against a tile in the first-level cache ---

// Computes scores of four keys from j on; missing keys repeat the last. The loops are unrolled to keep the sums in
// registers.
template <CacheType T, int M>
void score_four(const float* q, const Tile& k, i64 j, i64 n, i64 depth, float scale, float* to) {
  constexpr i64 size = cache_bytes(T);
  const std::byte* p[4];
  vf acc[M][4];
  LC_UNROLL_BY(4)
  for (int t = 0; t < 4; ++t) {
    p[t] = k.p + std::min(j + t, n - 1) * k.row;
    LC_UNROLL_BY(4)
    for (int m = 0; m < M; ++m) acc[m][t] = vf{};
  }
  i64 c = 0;
  for (; c + WIDTH <= depth; c += WIDTH) {
    vf y[4];
    LC_UNROLL_BY(4)
    for (int t = 0; t < 4; ++t) y[t] = numbers<T>(p[t] + c * size);
    LC_UNROLL_BY(4)
    for (int m = 0; m < M; ++m) {
      const vf x = load(q + m * depth + c);
      LC_UNROLL_BY(4)
      for (int t = 0; t < 4; ++t) acc[m][t] = fma(x, y[t], acc[m][t]);
    }
  }
  LC_UNROLL_BY(4)
  for (int m = 0; m < M; ++m) {
    const v4 s = sums(acc[m][0], acc[m][1], acc[m][2], acc[m][3]);
    *reinterpret_cast<v4_stored*>(to + m * kTile + j) = s * scale;
  }
  if (c == depth) return;
  for (int m = 0; m < M; ++m)
    for (int t = 0; t < 4; ++t) {
      float s = 0;
      for (i64 i = c; i < depth; ++i) s += q[m * depth + i] * number<T>(p[t] + i * size);
      to[m * kTile + j + t] += s * scale;
    }
}

float largest(vf v) {
  float t[WIDTH];
  std::memcpy(t, &v, sizeof t);
  for (int half = WIDTH / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) t[i] = t[i] > t[i + half] ? t[i] : t[i + half];
  return t[0];
}

void weigh_row(float* s, i64 n, float exponent, const Work& w, i64 m) {
  const i64 padded = (n + WIDTH - 1) / WIDTH * WIDTH;
  std::fill(s + n, s + padded, kLowest);
  const float old = w.top[m];
  vf tops = splat(old);
  for (i64 j = 0; j < padded; j += WIDTH) tops = larger(load(s + j), tops);
  const float top = largest(tops);
  const vf base = splat(top == kLowest ? 0.0f : top), power = splat(exponent);
  const float shrink = exp2_negative((splat(old) - base) * power)[0];
  vf total = {};
  for (i64 j = 0; j < padded; j += WIDTH) {
    const vf e = exp2_negative((load(s + j) - base) * power);
    store(s + j, e);
    total += e;
  }
  w.top[m] = top, w.shrink[m] = shrink;
  w.total[m] = w.total[m] * shrink + sum(total);
}

// Adds to C vectors of the weighted sums of M rows, from column c on.
template <CacheType T, int M, int C>
void add_columns(const float* weight, const Tile& values, const Ahead& next, i64 n, i64 c, i64 width, float* sum,
                 const float* shrink) {
  vf acc[M][C];
  LC_UNROLL
  for (int m = 0; m < M; ++m) {
    LC_UNROLL
    for (int t = 0; t < C; ++t) acc[m][t] = vf{};
  }
  constexpr i64 size = cache_bytes(T);
  const std::byte* p = values.p + c * size;
  for (i64 j = 0; j < n; ++j, p += values.row) {
    if (c == 0) next.fetch(j, 1);
    vf x[C];
    for (int t = 0; t < C; ++t) x[t] = numbers<T>(p + t * WIDTH * size);
    for (int m = 0; m < M; ++m) {
      const vf y = splat(weight[m * kTile + j]);
      for (int t = 0; t < C; ++t) acc[m][t] = fma(x[t], y, acc[m][t]);
    }
  }
  LC_UNROLL
  for (int m = 0; m < M; ++m) {
    LC_UNROLL
    for (int t = 0; t < C; ++t) {
      float* to = sum + m * width + c + t * WIDTH;
      store(to, fma(load(to), splat(shrink[m]), acc[m][t]));
    }
  }
}

using Rows = void (*)(const AttentionProblem&, const Work&, const Tile&, const Ahead&, i64 n, i64 m);
template <CacheType T, int M>
void score_rows(const AttentionProblem& a, const Work& w, const Tile& keys, const Ahead& next, i64 n, i64 m) {
  for (i64 j = 0; j < n; j += 4) {
    next.fetch(j, 4);
    score_four<T, M>(w.q + m * a.depth, keys, j, n, a.depth, a.scale, w.scores + m * kTile);
  }
}

template <CacheType T, int M>
void add_rows(const AttentionProblem& a, const Work& w, const Tile& values, const Ahead& next, i64 n, i64 m) {
  constexpr int C = WIDTH == 16 ? 4 : 2;
  const float *weight = w.scores + m * kTile, *shrink = w.shrink + m;
  float* sum = w.sum + m * a.width;
  i64 c = 0;
  for (; c + C * WIDTH <= a.width; c += C * WIDTH)
    add_columns<T, M, C>(weight, values, next, n, c, a.width, sum, shrink);
  for (; c + WIDTH <= a.width; c += WIDTH) add_columns<T, M, 1>(weight, values, next, n, c, a.width, sum, shrink);
  for (; c < a.width; ++c)
    for (int r = 0; r < M; ++r) {
      float s = 0;
      for (i64 j = 0; j < n; ++j)
        s += weight[r * kTile + j] * number<T>(values.p + j * values.row + c * cache_bytes(T));
      sum[r * a.width + c] = sum[r * a.width + c] * shrink[r] + s;
    }
}

void score_all(const AttentionProblem& a, const Work& w, const Tile& keys, Ahead next, i64 n, i64 rows) {
  with_type(keys.type, [&]<CacheType T>() {
    static constexpr Rows f[] = {score_rows<T, 1>, score_rows<T, 2>, score_rows<T, 3>, score_rows<T, 4>};
    for (i64 m = 0; m < rows; m += 4, next.keys = 0) f[std::min<i64>(4, rows - m) - 1](a, w, keys, next, n, m);
  });
}
void add_all(const AttentionProblem& a, const Work& w, const Tile& values, Ahead next, i64 n, i64 rows) {
  with_type(values.type, [&]<CacheType T>() {
    static constexpr Rows f[] = {add_rows<T, 1>, add_rows<T, 2>, add_rows<T, 3>, add_rows<T, 4>};
    for (i64 m = 0; m < rows; m += 4, next.keys = 0) f[std::min<i64>(4, rows - m) - 1](a, w, values, next, n, m);
  });
}

// Applies scales: a key's to its score, a value's to its weight.
void apply_scales(const Tile& t, const Work& w, i64 n, i64 rows) {
  if (!t.scale) return;
  for (i64 m = 0; m < rows; ++m)
    for (i64 j = 0; j < n; ++j) w.scores[m * kTile + j] *= t.scale[j];
}

void few(const AttentionBlock& b) {
  const AttentionProblem& a = *b.problem;
  const Work w(b, b.rows);
  const Cache all_keys = keys_of(b), all_values = values_of(b);
  for (i64 m = 0; m < b.rows; ++m) {
    for (i64 c = 0; c < a.depth; ++c) w.q[m * a.depth + c] = b.q[m][c * a.q_depth];
    w.top[m] = kLowest, w.total[m] = 0;
  }
  std::fill(w.sum, w.sum + b.rows * a.width, 0.0f);
  Kept seen;
  for (i64 j0 = b.begin; j0 < b.end; j0 += kTile) {
    const i64 n = std::min<i64>(kTile, b.end - j0);
    if (hidden(b, j0, n, seen, w)) continue;
    const Tile keys = stored(all_keys, j0, n, w.keys, w.scales);
    score_all(a, w, keys, ahead(all_values, j0, b.end), n, b.rows);
    apply_scales(keys, w, n, b.rows);
    apply_steps(b, j0, n, seen, {w.scores, kTile, 1});
    for (i64 m = 0; m < b.rows; ++m) weigh_row(w.scores + m * kTile, n, a.exponent, w, m);
    const Tile values = stored(all_values, j0, n, w.values, w.scales);
    apply_scales(values, w, n, b.rows);
    add_all(a, w, values, ahead(all_keys, j0 + kTile, b.end), n, b.rows);
  }
  for (i64 m = 0; m < b.rows; ++m) finish(b, m, w.sum + m * a.width, 1, w.top[m], w.total[m]);
}

void block(const AttentionBlock& b) { b.rows <= kFew ? few(b) : b.rows <= WIDTH ? many<1>(b) : many<2>(b); }

}  // namespace

extern "C" void LC_ENTRY(attention_block)(const AttentionBlock* b) { block(*b); }

const AttentionTable TABLE = {kRows, kTile, LC_ENTRY(attention_block)};

}  // namespace lc::backends::cpu
