// Up to four quantized rows of A times packed weights in place. Words of weights are only shifted and masked; the codes
// of A are permuted to match their order.
#pragma once

#include <algorithm>
#include <array>

#include "lightcone/backends/cpu/kernels/abi/long_sums.h"
#include "lightcone/backends/cpu/kernels/dense/int8_sums.inl.h"

namespace lc::backends::cpu {
namespace {

// A step of a row of A. Weights of five or six bits take two products, of the lower four bits and of the upper bits (as
// multiples of 16), each with its own order of k.
template <WeightType T>
struct RowStep : std::conditional_t<packed_has_minima(T), RowSums<1>, NoSums> {
  static constexpr int step = PackedStep<T>::scaled, plain = step / 4;
  static constexpr int words = packed_layout(T).high ? 2 * plain : plain;  // words of four codes
  // The k of byte q of word w. Words of bytes are in order. A word of nibbles has every other k, and the next word the
  // ones between. A word of upper bits has k that are `plain` apart.
  static constexpr int place(int w, int q) {
    if (w >= plain) return w - plain + q * plain;
    return T == WeightType::Q8_0 ? 4 * w + q : w / 2 * 8 + 2 * q + w % 2;
  }
  float scale;
  std::int32_t start;  // as in Quantised
  std::int8_t codes[4 * words];
};

template <int N>
using Bytes __attribute__((vector_size(N))) = std::int8_t;

// Offset of the codes of B. Codes of fewer than eight bits are used as signed bytes unchanged.
template <WeightType T>
constexpr int kCodesOffset = T == WeightType::Q8_0 ? kCodeOffset : 0;

template <WeightType T>
void pack_steps(const Gemm& g, void* to) {
  using Row = RowStep<T>;
  static_assert(sizeof(Row) <= 4 * Row::step, "no longer than the f32 it is made of: gemm.cpp counts on it");
  auto* const out = static_cast<Row*>(to);
  for (i64 m = 0; m < g.m; ++m)
    for (i64 k = 0; k < g.k; k += kSteps * Row::step) {
      Bytes<Row::step> codes[kSteps];
      const auto row = [&](i64 s) -> Row& { return out[(k / Row::step + s) * g.m + m]; };
      quantise_steps<Row::step>(
          g.a + m * g.a_m + k, std::min<i64>(kSteps, (g.k - k) / Row::step),
          [&](i64 s) {
            return std::pair{&row(s).scale, reinterpret_cast<std::int8_t*>(&codes[s])};
          },
          [&](i64 s, std::int32_t sum) {
            Row& o = row(s);
            o.start = kWholeBits - (g.zero - kCodesOffset<T>)*sum;
            if constexpr (packed_has_minima(T)) o.sum[0] = o.scale * static_cast<float>(sum);
            const auto interleave = [&]<int W>() {
              const auto order = [](int i) { return Row::place(W + i / 4, i % 4); };
              Bytes<Row::step> ordered;
              put_lanes(ordered, codes[s], codes[s], order);
              std::memcpy(o.codes + 4 * W, &ordered, sizeof ordered);
            };
            interleave.template operator()<0>();
            if constexpr (Row::words > Row::plain) interleave.template operator()<Row::plain>();
          });
    }
}

// The codes of the part of a step that begins at k, in words of four. A stored word holds two words of nibbles, or the
// upper bits of all words.
template <WeightType T>
struct PartCodes {
  using Row = RowStep<T>;
  static constexpr bool of_bytes = T == WeightType::Q8_0;
  static constexpr int bits = T == WeightType::Q6_K ? 2 : 1;  // number of upper bits
  const u8* at;
  // The position of codes w within their stored word.
  static constexpr int which(int w) { return w >= Row::plain ? w - Row::plain : of_bytes ? 0 : w % 2; }
  vu word(int k, int w) const {
    if (w >= Row::plain) return reinterpret_cast<vu>(words(at + packed_layout(T).codes + k / Row::step * 64));
    return reinterpret_cast<vu>(words(at + (of_bytes ? k / 4 + w : k / 8 + w / 2) * 64));
  }
  using S = SumsOf<of_bytes ? 8 : 4 + bits>;
  // Returns whether the sums must be widened after word w, of lower bits or of upper bits (as multiples of 16).
  static constexpr bool full(int w) {
    const bool upper = w >= Row::plain;
    const int n = upper ? w + 1 - Row::plain : w + 1;
    return n == Row::plain || n % S::words(upper ? 4 + bits : 4) == 0;
  }
  static vi codes(vu x, int w) {
    if constexpr (of_bytes) return reinterpret_cast<vi>(x ^ (kCodeOffset * 0x01010101u));
    if (w < Row::plain) return reinterpret_cast<vi>((w % 2 ? x >> 4 : x) & 0x0f0f0f0fu);
    const int right = which(w) * bits - 4;
    return reinterpret_cast<vi>((right < 0 ? x << -right : x >> right) & (bits == 2 ? 0x30303030u : 0x10101010u));
  }
};

// Adds one step of V vectors of rows of B times M rows of A to `acc`. scale(v, part) and min(v) return B's scales and
// minima.
template <WeightType T, int M, int V, class Scale, class Min>
inline void int8_step(const PackedStep<T>& s, const RowStep<T>*& x, vf (&acc)[V][M], const Scale& scale,
                      const Min& min) {
  using Row = RowStep<T>;
  using Codes = PartCodes<T>;
  using S = typename Codes::S;
  const u8* const at = s.step + s.layout.scales + 4 * s.lane;
  LC_UNROLL_STEPS(2)
  for (int part = 0; part < kStep; part += Row::step, x += M) {
    S sums[V][M];
    for (int v = 0; v < V; ++v)
      for (int m = 0; m < M; ++m) sums[v][m].begin(x[m].start);
    vu word[V] = {};
    LC_UNROLL_STEPS(16)
    for (int w = 0; w < Row::words; ++w) {
      typename S::Word rows[M];
      for (int m = 0; m < M; ++m) rows[m] = S::splat(x[m].codes + 4 * w);
      for (int v = 0; v < V; ++v) {
        if (Codes::which(w) == 0) word[v] = Codes{at + 4 * WIDTH * v}.word(part, w);
        const auto four = S::codes(Codes::codes(word[v], w));
        for (int m = 0; m < M; ++m) {
          sums[v][m].add(four, rows[m]);
          if (Codes::full(w)) sums[v][m].widen();
        }
      }
    }
    for (int v = 0; v < V; ++v) {
      const vf b = scale(v, part);
      for (int m = 0; m < M; ++m) {
        acc[v][m] = fused(whole(sums[v][m].total()), splat(x[m].scale) * b, acc[v][m]);
        if constexpr (PackedStep<T>::has_min) acc[v][m] = fused(min(v), splat(x[m].sum[0]), acc[v][m]);
      }
    }
  }
}

// k per stretch of a stream: the range of k that one decoding of scales serves.
template <WeightType T>
constexpr i64 kTogether = PackedStep<T>::has_min ? 4 * kStep : kStep;

// Prefetches a step. Codes of eight bits may go to L2 (Machine::fetch_level), by which shorter codes would be slower.
template <WeightType T>
inline void fetch_step(const u8* step, bool second_level) {
  constexpr PackedLayout layout = packed_layout(T);
  if (layout.codes == 16 * kStep && second_level)
    for (int line = 0; line < layout.step_bytes(); line += 64) __builtin_prefetch(step + line, 0, 2);
  else
    for (int line = 0; line < layout.step_bytes(); line += 64) __builtin_prefetch(step + line, 0, 3);
}

// Processes the steps of a stretch, beginning with `first`, and advances x past them.
template <WeightType T, int M, int V>
inline void int8_turn(const PackedStep<T>& first, const RowStep<T>*& x, vf (&acc)[V][M], i64 ahead, bool second_level) {
  using Step = PackedStep<T>;
  constexpr PackedLayout layout = Step::layout;
  const auto vector = [](Step s, int v) {
    s.lane += WIDTH * v;
    return s;
  };
  if constexpr (Step::has_min) {
    if (first.index == 0)
      for (int line = 0; line < layout.header; line += 64) __builtin_prefetch(first.block + ahead + line, 0, 3);
    FourScales four[V];
    for (int v = 0; v < V; ++v) four[v] = vector(first, v).four();
    LC_UNROLL_BY(WIDTH == 16 ? 4 : 1)
    for (int i = 0; i < 4; ++i) {
      Step s = first;
      s.step += i * layout.step_bytes();
      fetch_step<T>(s.step + ahead, second_level);
      int8_step<T, M, V>(
          s, x, acc, [&](int v, int) { return four[v].scale(i); }, [&](int v) { return four[v].min(i); });
    }
  } else {
    fetch_step<T>(first.step + ahead, second_level);
    int8_step<T, M, V>(
        first, x, acc, [&](int v, int part) { return vector(first, v).scale(part); }, [](int) { return vf{}; });
  }
}

// Multiplies V vectors of rows of B, from `lane` on, of each group by M rows of A. Sums are grouped as by calls of
// `tile`: see Microkernel::gemv.
template <WeightType T, int M, int V, std::size_t G>
void int8_rows(const Gemm& g, const RowStep<T>* x, const std::array<i64, G>& groups, int lane) {
  constexpr PackedLayout layout = packed_layout(T);
  static_assert(kTileDepth % kTogether<T> == 0 && layout.block % kTogether<T> == 0);
  constexpr i64 kTogetherInC = kSumsOfTiles * kTileDepth;
  static_assert(kTogetherInC == kLongSum);
  const bool second_level = g.caches.fetch_into_l2;
  const u8* b[G];
  for (std::size_t q = 0; q < G; ++q) b[q] = static_cast<const u8*>(g.b) + groups[q] * layout.group_bytes(g.k);
  vf total[G][V][M] = {}, all[G][V][M] = {}, lost[G][V][M] = {};
  for (i64 k0 = 0; k0 < g.k; k0 += kTileDepth) {
    vf acc[G][V][M] = {};
    for (i64 k = k0; k < std::min(g.k, k0 + kTileDepth); k += kTogether<T>) {
      const RowStep<T>* behind = x;
      LC_UNROLL_BY(1)
      for (std::size_t q = 0; q < G; ++q) {
        behind = x;
        int8_turn<T, M, V>(PackedStep<T>(b[q], k, lane), behind, acc[q], kAhead / static_cast<i64>(G), second_level);
      }
      x = behind;
    }
    for (std::size_t q = 0; q < G; ++q)
      for (int v = 0; v < V; ++v)
        for (int m = 0; m < M; ++m)
          total[q][v][m] = k0 % kTogetherInC > 0 ? total[q][v][m] + acc[q][v][m] : acc[q][v][m];
    const i64 end = k0 + kTileDepth;
    if (g.k <= kLongSum || (end < g.k && end % kTogetherInC > 0)) continue;
    for (std::size_t q = 0; q < G; ++q)
      for (int v = 0; v < V; ++v)
        for (int m = 0; m < M; ++m)
          if (k0 < kTogetherInC) all[q][v][m] = total[q][v][m];
          else end_block(all[q][v][m], lost[q][v][m], total[q][v][m]);
  }
  // The last group may have fewer than 16 rows.
  for (std::size_t q = 0; q < G; ++q)
    for (int v = 0; v < V; ++v)
      if (const i64 row = groups[q] * PackedLayout::rows + lane + v * WIDTH; row < g.n)
        for (int m = 0; m < M; ++m)
          put_rows(g, m, row, g.k <= kLongSum ? total[q][v][m] : all[q][v][m] + lost[q][v][m]);
}

template <WeightType T, int M>
void int8_groups(const Gemm& g, const void* a, i64 begin, i64 end) {
  constexpr int kVectors = kVectorsAtOnce<M>;
  in_streams(g, begin, end, [&]<std::size_t G>(const std::array<i64, G>& groups) {
    if constexpr (G == 1 || M == 1)
      for (int lane = 0; lane < PackedLayout::rows && groups[0] * PackedLayout::rows + lane < g.n;
           lane += kVectors * WIDTH)
        int8_rows<T, M, kVectors>(g, static_cast<const RowStep<T>*>(a), groups, lane);
  });
}

// Calls f for the packed type t, if this arithmetic applies to it.
template <int Step, bool Min, class F>
inline void with_int8_type(WeightType t, const F& f) {
  with_packed_type(t, [&]<WeightType T>() {
    if constexpr (is_quantised(T))
      if constexpr (PackedStep<T>::scaled == Step && packed_has_minima(T) == Min) f.template operator()<T>();
  });
}
template <int Step, bool Min>
void pack_rows_int8(const Gemm& g, void* to) {
  with_int8_type<Step, Min>(g.type, [&]<WeightType T>() { pack_steps<T>(g, to); });
}
template <int Step, bool Min>
void gemv_int8(const Gemm& g, const void* a, i64 begin, i64 end) {
  with_int8_type<Step, Min>(g.type, [&]<WeightType T>() {
    switch (g.m) {
      case 1: return int8_groups<T, 1>(g, a, begin, end);
      case 2: return int8_groups<T, 2>(g, a, begin, end);
      case 3: return int8_groups<T, 3>(g, a, begin, end);
      default: return int8_groups<T, 4>(g, a, begin, end);
    }
  });
}

}  // namespace
}  // namespace lc::backends::cpu
