// Products of quantized activations and block-quantized weights, summed as integers over a step and then in f32.
#if defined(MADD)
#include "lightcone/backends/cpu/kernels/dense/exact_words.inl.h"
#else
#include "lightcone/backends/cpu/kernels/dense/exact_tile.inl.h"
#endif
#include "lightcone/backends/cpu/kernels/dense/gemv_int8.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kLine = 64;

// C is prefetched this many steps before it is needed: see tile_steps.
constexpr i64 kFetchC = 8;

// Offset that is removed from the codes of B before they are multiplied.
template <int Bits>
constexpr int kTileOffset = Bits == 8 ? kCodeOffset : 0;

// Codes of B have at most so many bits. Fewer may be multiplied faster.
template <int Step, bool Min, int Bits>
struct TileOf {
  using S = SumsOf<Bits>;
  template <int H, int V>
  struct Of {
    static void run(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 columns, bool add,
                    const void* soon) {
      using B = PanelStep<Step, Min>;
      const auto* x = static_cast<const Quantised<MR, Step, Min>*>(a);
      auto* y = const_cast<std::byte*>(static_cast<const std::byte*>(b));
      const auto* line = static_cast<const std::byte*>(soon);
      const i64 steps = (depth + Step - 1) / Step, late = std::max<i64>(0, steps - kFetchC);
      alignas(WIDTH * 4) vf acc[H][V] = {};
      for (i64 s = 0; s < steps; ++s, ++x, y += B::bytes, line += kLine) {
        __builtin_prefetch(line, 0, 2);
        if (s == late)
          for (int i = 0; i < H; ++i)
            for (int t = 0; t < V * WIDTH; t += 16) __builtin_prefetch(c + i * c_m + t, 1, 3);
        const auto panel = [&](int t) { return B{y + t / kGroupVectors * b_group}; };
        const auto lane = [](int t) { return t % kGroupVectors * WIDTH; };
        S sums[H][V];
        LC_UNROLL_BY(16)
        for (int i = 0; i < H; ++i)
          for (int t = 0; t < V; ++t) sums[i][t].begin(x->start[i]);
        LC_UNROLL_STEPS(8)
        for (int v = 0; v < Step / 4; ++v) {
          typename S::Codes codes[V];
          for (int t = 0; t < V; ++t)
            codes[t] = S::codes(words(reinterpret_cast<const u8*>(panel(t).codes() + v * kGroup + lane(t))) ^
                                (kTileOffset<Bits> * 0x01010101u));
          LC_UNROLL_BY(16)
          for (int i = 0; i < H; ++i) {
            const auto w = S::splat(x->codes[i] + 4 * v);
            for (int t = 0; t < V; ++t) {
              sums[i][t].add(codes[t], w);
              if ((v + 1) % S::words(Bits) == 0 || v + 1 == Step / 4) sums[i][t].widen();
            }
          }
        }
        LC_UNROLL_BY(4)
        for (int t = 0; t < V; ++t) LC_UNROLL_BY(16)
        for (int i = 0; i < H; ++i) acc[i][t] = add_step<Min>(acc[i][t], sums[i][t].total(), *x, i, panel(t), lane(t));
      }
      put_tile(acc, c, c_m, columns, add);
    }
  };
};

template <int Step, bool Min, int Bits = PanelStep<Step, Min>::bits>
void pack_a(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int zero, void* to) {
  quantise<MR, Step, Min>(a, a_m, a_k, rows, depth, zero - kTileOffset<Bits>, to);
}
template <int Step, bool Min>
void pack_b(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  pack_b_int8(g, j0, columns, k0, depth, to, b_group);
}
constexpr int kUnitColumns = GROUPS * kGroup;
constexpr bool kPanelsAsPacked = true;
template <int Step, bool Min, int Bits = PanelStep<Step, Min>::bits>
constexpr auto kTile = &register_tile<TileOf<Step, Min, Bits>::template Of, MR, GROUPS * kGroupVectors>;

}  // namespace
}  // namespace lc::backends::cpu

#include "lightcone/backends/cpu/kernels/dense/int8_units.inl.h"
