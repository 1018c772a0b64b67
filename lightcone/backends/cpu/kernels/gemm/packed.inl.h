// Packed weights (weight_formats.h): a vector of WIDTH rows for every k.
#pragma once

#include <algorithm>
#include <array>

#include "lightcone/backends/cpu/kernels/abi/weight_formats.h"
#include "lightcone/backends/cpu/kernels/gemm/weights.inl.h"

namespace lc::backends::cpu {
namespace {

inline vf halves(const u8* p) { return from_half(reinterpret_cast<const std::uint16_t*>(p)); }
inline vi words(const u8* p) {
  vi v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
// Rotates each lane right.
inline vi rotated(vi v, int bits) {
#if WIDTH == 16
  return reinterpret_cast<vi>(
      _mm512_rorv_epi32(reinterpret_cast<__m512i>(v), _mm512_set1_epi32(static_cast<int>(bits & 31))));
#else
  typedef std::uint32_t vu __attribute__((vector_size(WIDTH * 4)));
  const vu u = reinterpret_cast<vu>(v);
  return bits % 32 == 0 ? v : reinterpret_cast<vi>(u >> (bits & 31) | u << (-bits & 31));
#endif
}

// Scales and minima of half a block of Q4_K or Q5_K: four steps of WIDTH rows. The first four are the lower six bits of
// the bytes of two words. The others are nibbles of a third word, with two more bits from the top of the first two.
struct FourScales {
  vf d, d_min;
  vi scales, minima;  // four bytes per lane
  FourScales() = default;
  FourScales(const u8* block, int half, int lane) : d(halves(block + 2 * lane)), d_min(halves(block + 32 + 2 * lane)) {
    const auto word = [&](int i) { return words(block + 64 + i * 64 + 4 * lane); };
    if (half == 0) {
      scales = word(0) & 0x3f3f3f3f, minima = word(1) & 0x3f3f3f3f;
    } else {
      scales = (word(2) & 0x0f0f0f0f) | (word(0) >> 2 & 0x30303030);
      minima = (word(2) >> 4 & 0x0f0f0f0f) | (word(1) >> 2 & 0x30303030);
    }
  }
  vf scale(int step) const { return d * as_float(scales >> 8 * step & 63); }
  vf min(int step) const { return d_min * as_float(minima >> 8 * step & 63) * -1.0f; }
};

// A step of 32 k for WIDTH rows: weight(k) = a * code(k) + b, where a is constant for `scaled` values of k.
template <WeightType T>
struct PackedStep {
  static constexpr PackedLayout layout = packed_layout(T);
  static constexpr bool has_min = packed_has_minima(T);
  static constexpr int scaled = Codec<T>::scaled;
  const u8 *block, *step;
  int index, lane;  // step within its block; first row within the 16

  PackedStep(const u8* group, i64 k, int first)
      : block(group + k / layout.block * layout.block_bytes()),
        index(static_cast<int>(k % layout.block / kStep)),
        lane(first) {
    step = block + layout.header + index * layout.step_bytes();
  }
  FourScales four() const { return FourScales(block, index / 4, lane); }
  vf scale(int k) const {
    if constexpr (has_min) return four().scale(index % 4);
    const vf d = halves(block + 2 * lane);
    if constexpr (T == WeightType::Q4_0 || T == WeightType::Q8_0) return d;
    return d * as_float(bytes(reinterpret_cast<const std::int8_t*>(step) + k / 16 * 16 + lane));
  }
  vf min() const { return four().min(index % 4); }

  vi nibble(int k) const { return words(step + layout.scales + k / 8 * 64 + 4 * lane) >> (k % 8 * 4); }
  // A word with the code's upper bits at bit 4.
  vi high(int k) const {
    const u8* p = step + layout.scales + layout.codes + 4 * lane;
    return T == WeightType::Q5_K ? rotated(words(p), k - 4) : rotated(words(p + k / 16 * 64), k % 16 * 2 - 4);
  }
  // Converts a byte by placing it in the low bits of 2^23 and subtracting 2^23 + 128, which is cheaper than a
  // conversion.
  vf byte(int k) const {
    const vi v = words(step + layout.scales + k / 4 * 64 + 4 * lane) >> (k % 4 * 8) & 255;
    return reinterpret_cast<vf>(v | 0x4b000000) - 8388736.0f;
  }
  // The code as a float.
  vf code(int k) const {
    if constexpr (T == WeightType::Q8_0) return byte(k);
    constexpr int bits = Codec<T>::bits;
    constexpr float offset = static_cast<float>(Codec<T>::format.q.bias);
#if WIDTH == 16
    const vf low = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const auto t = reinterpret_cast<__m512>(low + offset);
    if constexpr (bits == 4)
      return reinterpret_cast<vf>(_mm512_permutexvar_ps(reinterpret_cast<__m512i>(nibble(k)), t));
    if constexpr (bits == 5) {
      const vi both = joined(nibble(k), 4, high(k));
      return reinterpret_cast<vf>(
          _mm512_permutex2var_ps(t, reinterpret_cast<__m512i>(both), reinterpret_cast<__m512>(low + 16.0f)));
    }
#endif
    vi v = nibble(k) & 15;
    if constexpr (bits > 4) v = v | (high(k) & ((1 << bits) - 16));
    return as_float(v) + offset;
  }
};

constexpr i64 kAhead = 8192;  // bytes that a stream is prefetched ahead
// Number of vectors of a group's 16 rows that are multiplied by M rows of A in one pass; in a second pass, memory would
// be idle. Plain C++ takes one, because every copy of a loop adds to the library's build time.
#if WIDTH == 4 && !defined(NEON)
template <int M>
constexpr int kVectorsAtOnce = 1;
#else
template <int M>
constexpr int kVectorsAtOnce = std::max(1, PackedLayout::rows / WIDTH / M);
#endif
// Number of partial sums per row of A, enough to hide the latency of additions. Eight read Q4_0 from the cache 17 %
// faster than four.
template <int M>
constexpr int kPackedChains = 8 / M;
template <int N>
inline vf added(const vf (&v)[N]) {
  vf t[N];
  std::memcpy(t, v, sizeof t);
  for (int n = N / 2; n > 0; n /= 2)
    for (int i = 0; i < n; ++i) t[i] = t[i] + t[i + n];
  return t[0];
}
// Stores results of row m of A for up to WIDTH rows of B.
inline void put_rows(const Gemm& g, i64 m, i64 row, vf v) {
  store_part(g.c + m * g.c_m + row, v, std::min<i64>(WIDTH, g.n - row));
}

template <WeightType T, int M, int V>
void packed_rows(const Gemm& g, const float* sums, i64 group, int lane, i64 m0) {
  using Step = PackedStep<T>;
  constexpr PackedLayout layout = Step::layout;
  constexpr int kChains = kPackedChains<M>;
  constexpr i64 kBlock = kSumBlock * kStep;
  const u8* p = static_cast<const u8*>(g.b) + group * layout.group_bytes(g.k);
  const float* x[M];
  vf acc[V][M] = {};
  for (int m = 0; m < M; ++m) x[m] = g.a + (m0 + m) * g.a_m;
  BlockSums<V * M> blocks;
  for (i64 k = 0; k < g.k; k += kStep) {
    if (k > 0 && k % kBlock == 0) each_sum(acc, [&](vf& x, int n) { blocks.end(x, n); });
    for (int v = 0; v < V; ++v) {
      const Step step(p, k, lane + v * WIDTH);
      if (v == 0)
        for (int line = 0; line < layout.step_bytes(); line += 64) __builtin_prefetch(step.step + kAhead + line, 0, 3);
      LC_UNROLL_STEPS(2)
      for (int part = 0; part < kStep; part += Step::scaled) {
        vf sum[M][kChains] = {};
        LC_UNROLL_STEPS(32)
        for (int i = part; i < part + Step::scaled; ++i) {
          const vf w = step.code(i);
          for (int m = 0; m < M; ++m) sum[m][i % kChains] = fma(w, splat(x[m][k + i]), sum[m][i % kChains]);
        }
        const vf a = step.scale(part);
        for (int m = 0; m < M; ++m) acc[v][m] = fma(a, added(sum[m]), acc[v][m]);
      }
      if constexpr (Step::has_min)
        for (int m = 0; m < M; ++m)
          acc[v][m] = fma(step.min(), splat(sums[(m0 + m) * (g.k / kStep) + k / kStep]), acc[v][m]);
    }
  }
  if (g.k > kBlock) each_sum(acc, [&](vf& x, int n) { blocks.finish(x, n); });
  for (int v = 0; v < V; ++v)
    if (const i64 row = group * PackedLayout::rows + lane + v * WIDTH; row < g.n)
      for (int m = 0; m < M; ++m) put_rows(g, m0 + m, row, acc[v][m]);
}

// Calls f(groups) for groups [begin, end): one after another, or for one row, if memory is read faster that way
// (Machine::streams), as parallel streams with one group of each. Sums are the same either way.
constexpr int kParallelStreams = 4;
template <class F>
inline void in_streams(const Gemm& g, i64 begin, i64 end, const F& f) {
  const i64 each = g.m == 1 && g.caches.streams > 1 ? (end - begin) / kParallelStreams : 0;
  for (i64 i = begin; i < begin + each; ++i) {
    std::array<i64, kParallelStreams> groups;
    for (int q = 0; q < kParallelStreams; ++q) groups[q] = i + q * each;
    f(groups);
  }
  for (i64 i = begin + kParallelStreams * each; i < end; ++i) f(std::array<i64, 1>{i});
}

constexpr int kUnrolledPlain = 8;
// Value k of WIDTH rows of a group of plain weights that begins at p.
template <WeightType T>
inline vf packed_value(const u8* p, i64 k, int lane) {
  if constexpr (T == WeightType::F32) return load(reinterpret_cast<const float*>(p) + k * 16 + lane);
  if constexpr (T == WeightType::F16) return halves(p + k * 32 + 2 * lane);
  const vi pair = words(p + k / 2 * 64 + 4 * lane);
  return reinterpret_cast<vf>(k % 2 ? pair & -65536 : pair << 16);
}
// Sums of V vectors of rows of each of G groups, in chains.
template <int M, int V, std::size_t G>
using PlainSums = vf[G][V][M][kPackedChains<M>];
// Adds products [from, to) of k, a whole number of unrolled steps. Groups, and vectors of one group, alternate in short
// stretches, so that memory is read evenly.
template <WeightType T, int M, int V, std::size_t G>
inline void add_plain_products(const std::array<const u8*, G>& p, const float* const (&x)[M], i64 from, i64 to,
                               int lane, PlainSums<M, V, G>& acc) {
  constexpr PackedLayout layout = packed_layout(T);
  constexpr int kUnroll = kUnrolledPlain, kChains = kPackedChains<M>;
  constexpr i64 kFar = kAhead / static_cast<i64>(G);
  const i64 stretch = G > 1 ? 32 : V == 1 ? to - from : 16;
  for (i64 k0 = from; k0 < to; k0 += stretch)
    for (std::size_t q = 0; q < G; ++q)
      for (int v = 0; v < V; ++v) {
        vf sum[M][kChains];
        std::memcpy(sum, acc[q][v], sizeof sum);
        for (i64 k = k0; k < std::min(to, k0 + stretch); k += kUnroll) {
          const u8* at = p[q] + layout.group_bytes(k);
          for (int line = 64 * v; line < layout.group_bytes(kUnroll); line += 64 * V)  // each its share, no bursts
            __builtin_prefetch(at + kFar + line, 0, 3);
          LC_UNROLL_STEPS(8)
          for (int i = 0; i < kUnroll; ++i) {
            const vf w = packed_value<T>(at, i, lane + v * WIDTH);
            for (int m = 0; m < M; ++m) sum[m][i % kChains] = fma(w, splat(x[m][k + i]), sum[m][i % kChains]);
          }
        }
        std::memcpy(acc[q][v], sum, sizeof sum);
      }
}
// Long sums by blocks. This is a separate function because inlining it makes ordinary sums 4 % slower.
template <WeightType T, int M, int V, std::size_t G>
[[gnu::noinline]] void add_long_plain_products(const std::array<const u8*, G>& p, const float* const (&x)[M], i64 whole,
                                               int lane, PlainSums<M, V, G>& acc) {
  constexpr i64 kBlock = kSumBlock * kPackedChains<M>;
  BlockSums<static_cast<int>(G) * V * M * kPackedChains<M>> blocks;
  for (i64 k = 0; k < whole; k += kBlock) {
    if (k > 0) each_sum(acc, [&](vf& sum, int n) { blocks.end(sum, n); });
    add_plain_products<T, M, V, G>(p, x, k, std::min(whole, k + kBlock), lane, acc);
  }
  each_sum(acc, [&](vf& sum, int n) { blocks.finish(sum, n); });
}
template <WeightType T, int M, int V, std::size_t G>
void packed_plain_rows(const Gemm& g, const std::array<i64, G>& groups, int lane, i64 m0) {
  constexpr PackedLayout layout = packed_layout(T);
  const i64 whole = g.k / kUnrolledPlain * kUnrolledPlain;
  std::array<const u8*, G> p;
  const float* x[M];
  PlainSums<M, V, G> acc = {};
  for (std::size_t q = 0; q < G; ++q) p[q] = static_cast<const u8*>(g.b) + groups[q] * layout.group_bytes(g.k);
  for (int m = 0; m < M; ++m) x[m] = g.a + (m0 + m) * g.a_m;
  if (whole <= kSumBlock * kPackedChains<M>) {
    add_plain_products<T, M, V, G>(p, x, 0, whole, lane, acc);
  } else {
    PlainSums<M, V, G> sums = {};
    add_long_plain_products<T, M, V, G>(p, x, whole, lane, sums);
    std::memcpy(acc, sums, sizeof acc);
  }
  for (std::size_t q = 0; q < G; ++q)
    for (int v = 0; v < V; ++v) {
      const i64 row = groups[q] * PackedLayout::rows + lane + v * WIDTH;
      if (row >= g.n) break;
      for (i64 k = whole; k < g.k; ++k)
        for (int m = 0; m < M; ++m)
          acc[q][v][m][0] = fma(packed_value<T>(p[q], k, lane + v * WIDTH), splat(x[m][k]), acc[q][v][m][0]);
      for (int m = 0; m < M; ++m) put_rows(g, m0 + m, row, added(acc[q][v][m]));
    }
}

constexpr bool packed_not_exact(WeightType t) { return packed_layout(t).block > 0 && not_exact(t); }
template <class F>
inline void with_packed_type(WeightType t, const F& f) {
  with_type_among<packed_not_exact>(t, f);
}

// Computes the sums of 32 elements of A each, by which minima are multiplied.
[[maybe_unused]] void step_sums(const Gemm& g, float* to) {
  for (i64 m = 0; m < g.m; ++m)
    for (i64 k = 0; k < g.k; k += kStep) {
      vf s = {};
      for (int i = 0; i < kStep; i += WIDTH) s = s + load(g.a + m * g.a_m + k + i);
      *to++ = sum(s);
    }
}

template <WeightType T, int M>
void packed_group(const Gemm& g, const float* sums, i64 group, i64 m) {
  constexpr int V = kVectorsAtOnce<M>;
  for (int lane = 0; lane < PackedLayout::rows && group * PackedLayout::rows + lane < g.n; lane += V * WIDTH)
    if constexpr (is_quantised(T)) packed_rows<T, M, V>(g, sums, group, lane, m);
    else packed_plain_rows<T, M, V>(g, std::array{group}, lane, m);
}
[[maybe_unused]] void gemv_packed(const Gemm& g, const float* sums, i64 begin, i64 end) {
  with_packed_type(g.type, [&]<WeightType T>() {
    const auto rows_by_group = [&](i64 group) {
      i64 m = 0;
      for (; m + 2 <= g.m; m += 2) packed_group<T, 2>(g, sums, group, m);
      if (m < g.m) packed_group<T, 1>(g, sums, group, m);
    };
    if constexpr (is_quantised(T)) {
      for (i64 group = begin; group < end; ++group) rows_by_group(group);
    } else {
      in_streams(g, begin, end, [&]<std::size_t G>(const std::array<i64, G>& groups) {
        if constexpr (G == 1) return rows_by_group(groups[0]);
        constexpr int V = kVectorsAtOnce<1>;
        for (int lane = 0; lane < PackedLayout::rows; lane += V * WIDTH) packed_plain_rows<T, 1, V>(g, groups, lane, 0);
      });
    }
  });
}

// Unpacks values [k0, k0 + depth) of WIDTH rows of a group, from `lane` on, to a column of `to`.
template <WeightType T>
void unpack_rows(const u8* group, int lane, i64 k0, i64 depth, float* to, int stride) {
  if constexpr (!is_quantised(T)) {
    for (i64 k = 0; k < depth; ++k) store(to + k * stride, packed_value<T>(group, k0 + k, lane));
  } else {
    using Step = PackedStep<T>;
    for (i64 k = k0; k < k0 + depth; k += kStep) {
      const Step step(group, k, lane);
      for (int i = 0; i < kStep; ++i) {
        vf b = {};
        if constexpr (Step::has_min) b = step.min();
        store(to + (k - k0 + i) * stride, fma(step.code(i), step.scale(i), b));
      }
    }
  }
}
// As unpack_rows(), for `count` rows from n on.
[[maybe_unused]] void unpack_strip(const Gemm& g, i64 n, i64 count, i64 k0, i64 depth, float* to, int stride) {
  const i64 group_bytes = packed_layout(g.type).group_bytes(g.k);
  with_packed_type(g.type, [&]<WeightType T>() {
    for (i64 c = 0; c < count; c += WIDTH)
      unpack_rows<T>(static_cast<const u8*>(g.b) + (n + c) / PackedLayout::rows * group_bytes,
                     static_cast<int>((n + c) % PackedLayout::rows), k0, depth, to + c, stride);
  });
}

}  // namespace
}  // namespace lc::backends::cpu
