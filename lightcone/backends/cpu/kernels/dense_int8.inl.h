// Products of quantised activations and block weights, summed as whole numbers over a step and then in f32.
#include "lightcone/backends/cpu/kernels/exact_int8.inl.h"
#include "lightcone/backends/cpu/kernels/gemv_int8.inl.h"
#include "lightcone/backends/cpu/kernels/register_tile.inl.h"

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
constexpr DenseUnit unit(const char* name, Arithmetic a) {
  return {name,
          a,
          MR,
          GROUPS * kGroup,
          Step,
          sizeof(Quantised<MR, Step, Min>),
          PanelStep<Step, Min>::bytes,
          kLine,
          quantise<MR, Step, Min>,
          pack_b_int8,
          tile<Step, Min>,
          nullptr,
          nullptr,
          kArrangeInt8<Step, Min>,
          kGemvInt8<Step, Min>};
}

// ---- without scales -------------------------------------------------------------------------------

#if defined(VNNI)
constexpr int kExactRows = WIDTH == 16 ? 14 : 6;
#else
constexpr int kExactRows = MR;
#endif
// Of VNNI a vector is all there is: an array of structs would live in memory.
#if defined(VNNI)
using ExactSum = vi;
inline void add_products(ExactSum& sum, const Sums::Codes& b, const Sums::Word& a) {
  Sums s{reinterpret_cast<decltype(Sums::sum)>(sum)};
  s.add(b, a);
  sum = s.total();
}
inline vi total(const ExactSum& sum) { return sum; }
#else
using ExactSum = Sums;
inline void add_products(ExactSum& sum, const Sums::Codes& b, const Sums::Word& a) { sum.add(b, a); }
inline vi total(const ExactSum& sum) { return sum.total(); }
#endif

template <int H, int V>
struct ExactTile {
  static void run(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 columns, bool add,
                  const void* soon) {
    const auto* x = static_cast<const std::int8_t*>(a);
    const auto* y = static_cast<const u8*>(b);
    ExactSum sums[H][V] = {};
    tile_steps<H, V>((depth + kExactStep - 1) / kExactStep * (kExactStep / 4), c, c_m, soon, [&] {
      typename Sums::Codes codes[V];
      for (int t = 0; t < V; ++t)
        codes[t] = Sums::codes(words(y + t / kGroupVectors * b_group + t % kGroupVectors * WIDTH * 4));
#pragma GCC unroll 16
      for (int i = 0; i < H; ++i) {
        const auto s = Sums::splat(x + 4 * i);
        for (int t = 0; t < V; ++t) add_products(sums[i][t], codes[t], s);
      }
      x += 4 * kExactRows, y += 4 * kGroup;
    });
    const auto* start = reinterpret_cast<const std::int32_t*>(x);  // they lie behind the codes
    vi whole[H][V];
#pragma GCC unroll 16
    for (int i = 0; i < H; ++i)
#pragma GCC unroll 4
      for (int t = 0; t < V; ++t) whole[i][t] = total(sums[i][t]) + start[i];
    put_tile(whole, c, c_m, columns, add);
  }
};

}  // namespace

const DenseUnit UNITS[5] = {
    unit<32, false>(UNIT_NAME "_32", Arithmetic::Int8Step32),
    unit<32, true>(UNIT_NAME "_32_min", Arithmetic::Int8Step32Min),
    unit<16, false>(UNIT_NAME "_16", Arithmetic::Int8Step16),
    unit<16, true>(UNIT_NAME "_16_min", Arithmetic::Int8Step16Min),
    {UNIT_NAME "_exact", Arithmetic::Int8Exact, kExactRows, GROUPS* kGroup, kExactStep, kExactStepBytes<kExactRows>,
     kExactBytes, kFetched* kExactStep / 4, pack_exact_a<kExactRows>, pack_exact_b,
     register_tile<ExactTile, kExactRows, GROUPS * kGroupVectors>}};

}  // namespace lc::host
