// Products of quantised activations and block weights, summed as whole numbers over a step and then in f32.
#include "lightcone/backends/cpu/kernels/exact_tile.inl.h"
#include "lightcone/backends/cpu/kernels/gemv_int8.inl.h"

namespace lc::host {
namespace {

constexpr int kTileVectors = GROUPS * kGroupVectors, kLine = 64;

template <int Step, bool Min>
void tile(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 rows, i64 columns, bool add,
          const void* soon) {
  using A = Quantised<MR, Step, Min>;
  using B = PanelStep<Step, Min>;
  const GroupsOf<GROUPS> groups(b, b_group, columns);
  const auto* x = static_cast<const A*>(a);
  vf acc[MR][kTileVectors] = {};
  const auto* line = static_cast<const std::byte*>(soon);
  for (i64 k = 0, offset = 0; k < depth; k += Step, offset += B::bytes, ++x, line += kLine) {
    __builtin_prefetch(line, 0, 2);
    const auto panel = [&](int t) { return B{const_cast<std::byte*>(groups.at[t / kGroupVectors]) + offset}; };
    const auto lane = [](int t) { return t % kGroupVectors * WIDTH; };
    Sums sums[MR][kTileVectors];
#pragma GCC unroll 8
    for (int v = 0; v < Step / 4; ++v) {
      typename Sums::Codes codes[kTileVectors];
      for (int t = 0; t < kTileVectors; ++t)
        codes[t] = Sums::codes(words(reinterpret_cast<const u8*>(panel(t).codes() + v * kGroup + lane(t))));
#pragma GCC unroll 16
      for (int i = 0; i < MR; ++i) {
        const auto w = Sums::splat(x->codes[i] + 4 * v);
        for (int t = 0; t < kTileVectors; ++t) sums[i][t].add(codes[t], w);
      }
    }
    for (int t = 0; t < kTileVectors; ++t)
      for (int i = 0; i < MR; ++i) acc[i][t] = add_step<Min>(acc[i][t], sums[i][t].total(), *x, i, panel(t), lane(t));
  }
  store_tile(acc, c, c_m, rows, columns, add);
}

template <int Step, bool Min>
void pack_a(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int zero, void* to) {
  quantise<MR, Step, Min>(a, a_m, a_k, rows, depth, zero, to);
}
template <int Step, bool Min>
void pack_b(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  pack_b_int8(g, j0, columns, k0, depth, to, b_group);
}
constexpr int kUnitColumns = GROUPS * kGroup;

}  // namespace
}  // namespace lc::host

#include "lightcone/backends/cpu/kernels/int8_units.inl.h"
