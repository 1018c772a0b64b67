// What all ways to compute a block of attention share: tiles of keys and values, in place as they are stored or widened
// and gathered into scratch, the scratch memory, and how a row ends.
#pragma once

#include <algorithm>
#include <limits>

#include "lightcone/backends/cpu/kernels/abi/attention_abi.h"
#include "lightcone/backends/cpu/kernels/attention/attention_words.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/vector.inl.h"

namespace lc::backends::cpu {
namespace {

// Vectors of rows side by side: with tile registers 32 rows, two registers.
#if defined(TILES)
constexpr int kVectors = 32 / WIDTH;
#else
constexpr int kVectors = 2;
#endif
constexpr int kRows = kVectors * WIDTH, kTile = 8 * KEYS;
static_assert(kRows <= kAttentionRows && kTile <= kAttentionTile && kTile % WIDTH == 0);
constexpr float kLowest = -std::numeric_limits<float>::infinity();

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

// The scratch memory of a block, the part of block `number` of those that share tiles.
struct Work {
  float *keys, *values, *scales, *scores, *top, *total, *shrink, *q, *sum;
  Work(const AttentionBlock& b, i64 rows, int number = 0) {
    const AttentionProblem& a = *b.problem;
    float* p = b.scratch;
    const auto take = [&](i64 floats) {
      float* mine = p;
      p += floats;
      return mine;
    };
    keys = take(kTile * a.depth), values = take(kTile * a.width), scales = take(kTile);
    p += number * rows * (kTile + 3 + a.depth + padded_width(a.width));
    scores = take(rows * kTile), top = take(rows), total = take(rows), shrink = take(rows);
    q = take(rows * a.depth), sum = take(rows * padded_width(a.width));
  }
};

// Packs the queries with rows in lanes: as `row` words a lane, padded with zeros.
template <int V>
void pack_queries(const AttentionBlock& b, i64 row, float* to) {
  const i64 step = b.problem->q_depth, depth = b.problem->depth;
  for (i64 r = 0; r < V * WIDTH; r += WIDTH)
    for (i64 c = 0; c < row; c += WIDTH) {
      vf v[WIDTH];
      for (i64 i = std::max<i64>(0, b.rows - r); i < WIDTH; ++i) v[i] = vf{};
      for (i64 i = 0; i < std::min<i64>(WIDTH, b.rows - r); ++i)
        v[i] = row_words(b.q[r + i] + c * kNumbers * step, step, word_numbers(c, depth));
      transpose(v);
      for (i64 i = 0; i < std::min<i64>(WIDTH, row - c); ++i) store(to + (c + i) * V * WIDTH + r, v[i]);
    }
}

// Words along each of n keys, `row` of them, padded with zeros. `to` may be the tile's own memory, because every word
// is read before it is written.
Tile words_of_keys(const Tile& t, i64 n, i64 depth, i64 row, float* to) {
  for (i64 j = 0; j < n; ++j)
    for (i64 c = 0; c < row; c += WIDTH)
      store_part(to + j * row + c, row_words(t.at(j) + c * kNumbers, word_numbers(c, depth)),
                 std::min<i64>(WIDTH, row - c));
  return {reinterpret_cast<const std::byte*>(to), row * 4, CacheType::F32, nullptr};
}
// Words of neighboring keys; an odd one's neighbor is zeros. `to` may be the tile's own memory.
Tile words_of_pairs(const Tile& t, i64 n, i64 width, float* to) {
  for (i64 j = 0; j < n; j += kNumbers) {
    const bool both = j + 1 < n;
    float* const word = to + words(j) * width;
    i64 c = 0;
    for (; both && c + WIDTH <= width; c += WIDTH) store(word + c, paired(load(t.at(j) + c), load(t.at(j + 1) + c)));
    for (; c < width; c += WIDTH) {
      const i64 m = std::min<i64>(WIDTH, width - c);
      const vf odd = both ? load_part(t.at(j + 1) + c, m) : vf{};
      store_part(word + c, paired(load_part(t.at(j) + c, m), odd), m);
    }
  }
  return {reinterpret_cast<const std::byte*>(to), width * 4, CacheType::F32, nullptr};
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
  i64 c = 0;
  for (; stride == 1 && c + WIDTH <= width; c += WIDTH) store(b.out[r] + c, load(sum + c) * splat(scale));
  for (; c < width; ++c) b.out[r][c] = sum[c * stride] * scale;
}

}  // namespace
}  // namespace lc::backends::cpu
