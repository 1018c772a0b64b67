// Attention of one block of rows, compiled for each instruction set: WIDTH floats per vector, KEYS keys times kVectors
// vectors of rows in registers. With TILES, a class of tiles.inl.h, products of many rows are computed on tile
// registers.
//
// With many rows, each row is a vector lane, so that the softmax needs no sums across lanes. With at most kFew rows,
// most lanes would be idle, so the lanes run along the head instead.
#include <algorithm>

#include "lightcone/backends/cpu/kernels/attention/attention_masks.inl.h"
#include "lightcone/backends/cpu/kernels/attention/attention_tile.inl.h"
#if defined(TILES)
#include "lightcone/backends/cpu/kernels/attention/attention_registers.inl.h"
#else
#include "lightcone/backends/cpu/kernels/attention/attention_lanes.inl.h"
#endif
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kFew = kRows == 32 ? 8 : 4;

// Whether values of a tile are finite. The blocks of a task ask for the same tiles.
class Finite {
 public:
  Finite(const AttentionBlock& b, float* scratch) : values_(values_of(b)), width_(b.problem->width), to_(scratch) {}
  // Returns that of keys [first, first + n) of the tile of keys [j0, j0 + all).
  bool of(i64 j0, i64 all, i64 first, i64 n) {
    if (j0 != known_) known_ = j0, all_ = look(j0, all);
    return all_ || (n < all && look(j0 + first, n));
  }

 private:
  bool look(i64 first, i64 n) const { return finite(widened(values_, first, n, to_), n, width_); }
  const Cache values_;
  const i64 width_;
  float* const to_;
  i64 known_ = -1;
  bool all_ = false;
};

// Returns whether the tile can be skipped. Fills in what the masks keep of it.
bool hidden(const AttentionBlock& b, i64 j0, i64 n, Kept& seen, Finite& values) {
  look_at_masks(b, j0, n, seen);
  return seen.nothing && values.of(j0, n, 0, n);
}

// Number of keys of a tile that must be computed: half of the tile if no row keeps a key of the second half, as along a
// diagonal.
i64 needed(const AttentionBlock& b, i64 j0, i64 n, Kept& seen, Finite& values) {
  constexpr i64 half = kTile / 2;
  const AttentionProblem& a = *b.problem;
  for (int i = a.skips; n > half && i < a.steps; ++i) {
    const ScoreStep& s = a.step[i];
    if (s.kind != ScoreStep::Mask) continue;
    i64 r = b.rows;
    while (r > 0 && count_unmasked(s, b.step[i][r - 1] + (j0 + half) * s.key, n - half) == 0) --r;
    if (r > 0 || !values.of(j0, n, half, n - half)) continue;
    look_at_masks(b, j0, half, seen);
    return half;
  }
  return n;
}

// ---- many rows: V vectors of them side by side ------------------------------------------------------

// Replaces the scores of V vectors of rows with weights, packed into words, and updates the running maximum and sum.
template <int V>
void weigh(float* s, i64 n, float exponent, const Work& w) {
  constexpr int R = V * WIDTH;
  const vf none = splat(kLowest), power = splat(exponent);
  vf top[V], base[V], total[V];  // total: per tile, so that long sums are sums of tiles
  for (int v = 0; v < V; ++v) top[v] = load(w.top + v * WIDTH), total[v] = vf{};
  for (i64 j = 0; j < n; ++j)
    for (int v = 0; v < V; ++v) top[v] = larger(load(s + j * R + v * WIDTH), top[v]);
  for (int v = 0; v < V; ++v) base[v] = top[v] == none ? vf{} : top[v];
  const auto word = [&](i64 j, int v, auto numbers) {
    vf e[2] = {};
    LC_UNROLL
    for (int t = 0; t < numbers; ++t) {
      e[t] = exp2_negative((load(s + (j + t) * R + v * WIDTH) - base[v]) * power);
      total[v] += e[t];
    }
    store(s + words(j) * R + v * WIDTH, paired(e[0], e[1]));
  };
  i64 j = 0;
  for (; j + kNumbers <= n; j += kNumbers)
    for (int v = 0; v < V; ++v) word(j, v, std::integral_constant<int, kNumbers>());
  for (int v = 0; j < n && v < V; ++v) word(j, v, std::integral_constant<int, 1>());
  for (int v = 0; v < V; ++v) {
    const vf shrink = exp2_negative((load(w.top + v * WIDTH) - base[v]) * power);
    store(w.top + v * WIDTH, top[v]), store(w.shrink + v * WIDTH, shrink);
    store(w.total + v * WIDTH, fma(load(w.total + v * WIDTH), shrink, total[v]));
  }
}

// What blocks with the same keys and values need of a tile.
struct Needs {
  i64 most = 0, n[kAttentionBlocks] = {};  // keys, of all and of each
  Kept seen[kAttentionBlocks];
};
void look_at_tile(const AttentionBlock* b, int count, i64 j0, Finite& values, Needs& all) {
  all.most = 0;
  for (int i = 0; i < count; ++i) {
    const i64 n = std::min<i64>(kTile, b[i].end - j0);
    all.n[i] = hidden(b[i], j0, n, all.seen[i], values) ? 0 : needed(b[i], j0, n, all.seen[i], values);
    all.most = std::max(all.most, all.n[i]);
  }
}

// Each tile of keys and values is converted once for all blocks. A tile's scores wait until all blocks have theirs,
// because loads of what tile registers have just stored wait for the stores to leave the core.
template <int V>
void many(const AttentionBlock* b, int count) {
  constexpr int R = V * WIDTH;
  const AttentionProblem& a = *b->problem;
  const Cache all_keys = keys_of(*b), all_values = values_of(*b);
  const Work shared(*b, R);
  begin_blocks();
  for (int i = 0; i < count; ++i) {
    const Work w(b[i], R, i);
    begin_rows<V>(b[i], w);
    std::fill(w.top, w.top + R, kLowest);
    std::fill(w.total, w.total + R, 0.0f);
  }
  Finite all_finite(*b, shared.values);
  Needs needs;
  for (i64 j0 = b->begin; j0 < b->end; j0 += kTile) {
    look_at_tile(b, count, j0, all_finite, needs);
    const i64 most = needs.most;
    if (most == 0) continue;
    const auto each = [&](Ahead ahead, const auto& f) {
      for (int i = 0; i < count; ++i)
        if (needs.n[i] > 0) f(i, Work(b[i], R, i), needs.n[i], ahead), ahead.keys = 0;
    };
    const Tile keys = for_scores(a, widened(all_keys, j0, most, shared.keys), most, shared.keys);
    each(ahead(all_values, j0, b->end),
         [&](int, const Work& w, i64 n, const Ahead& soon) { score_tile<V>(a, w, keys, n, soon); });
    each({}, [&](int i, const Work& w, i64 n, const Ahead&) {
      apply_steps(b[i], j0, n, needs.seen[i], {w.scores, 1, R});
      weigh<V>(w.scores, n, a.exponent * late_scale(a), w);
      turn_weights<V>(w, n);
    });
    const Tile values = for_sums(a, widened(all_values, j0, most, shared.values), most, shared.values);
    each(ahead(all_keys, j0 + kTile, b->end),
         [&](int, const Work& w, i64 n, const Ahead& next) { add_tile<V>(a, w, values, n, next); });
  }
  for (int i = 0; i < count; ++i) end_rows<V>(b[i], Work(b[i], R, i));
  end_blocks();
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
  Finite all_finite(b, w.values);
  for (i64 j0 = b.begin; j0 < b.end; j0 += kTile) {
    const i64 n = std::min<i64>(kTile, b.end - j0);
    if (hidden(b, j0, n, seen, all_finite)) continue;
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

void blocks(const AttentionBlock* b, int count) {
  int wide = 0;
  while (wide < count && b[wide].rows > kRows / 2) ++wide;
  if (wide > 0) many<kVectors>(b, wide);
  for (int i = wide; i < count; ++i) b[i].rows <= kFew ? few(b[i]) : many<kVectors / 2>(b + i, 1);
}

}  // namespace

extern "C" void LC_ENTRY(attention_blocks)(const AttentionBlock* b, int count) { blocks(b, count); }

// Tiles that are read in place need no sharing.
const AttentionTable TABLE = {kRows, kTile, kNumbers == 1 ? 1 : kAttentionBlocks, LC_ENTRY(attention_blocks)};

}  // namespace lc::backends::cpu