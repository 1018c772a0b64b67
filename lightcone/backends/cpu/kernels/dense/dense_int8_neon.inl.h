// Products of quantized activations and block-quantized weights on Arm, by its int8 instructions: 2x2 blocks (I8MM),
// dot products (DOTPROD), or multiply-adds of the base set. Results equal those of dense_int8.inl.h bit for bit. Packed
// layouts differ: codes are signed if the instructions are, and in block order for I8MM.
#include "lightcone/backends/cpu/kernels/dense/exact_tile.inl.h"
#include "lightcone/backends/cpu/kernels/dense/gemv_int8.inl.h"

namespace lc::backends::cpu {
namespace {

static_assert(GROUPS == 1);
constexpr int kTileVectors = kGroupVectors, kLine = 64;

#if defined(I8MM)
static_assert(MR % 2 == 0);
constexpr int kAcross = 2;  // vectors of columns that fit in registers with the tile

// Layouts: A [Step / 8][MR / 2][2][8], B [Step / 8][16][8].
template <int Step>
inline void products(const std::int8_t* a, const u8* b, vi (&sums)[MR][kAcross]) {
  int32x4_t block[MR / 2][2 * kAcross] = {};
  LC_UNROLL_BY(4)
  for (int k = 0; k < Step / 8; ++k) {
    int8x16_t rows[MR / 2];
    for (int i = 0; i < MR / 2; ++i) rows[i] = vld1q_s8(a + (k * (MR / 2) + i) * 16);
    for (int t = 0; t < 2 * kAcross; ++t) {
      const uint8x16_t columns = vld1q_u8(b + k * kGroup * 8 + t * 16);
      for (int i = 0; i < MR / 2; ++i) block[i][t] = vusmmlaq_s32(block[i][t], columns, rows[i]);
    }
  }
  for (int i = 0; i < MR / 2; ++i)
    for (int t = 0; t < kAcross; ++t) {
      sums[2 * i][t] = reinterpret_cast<vi>(vuzp1q_s32(block[i][2 * t], block[i][2 * t + 1]));
      sums[2 * i + 1][t] = reinterpret_cast<vi>(vuzp2q_s32(block[i][2 * t], block[i][2 * t + 1]));
    }
}
constexpr int kVectorBytes = 32;  // bytes of B per vector of columns: two words of each

template <int Step>
inline void interleave_rows(std::int8_t (&codes)[MR][Step]) {
  std::int8_t order[Step / 8][MR][8];
  for (int k = 0; k < Step / 8; ++k)
    for (int i = 0; i < MR; ++i) std::memcpy(order[k][i], codes[i] + 8 * k, 8);
  std::memcpy(codes, order, sizeof codes);
}
template <int Step>
inline void interleave_columns(std::uint32_t* codes) {
  for (int k = 0; k < Step / 4; k += 2, codes += 2 * kGroup) {
    uint32x4x2_t all[kGroup / 4];
    for (int c = 0; c < kGroup / 4; ++c) all[c] = {vld1q_u32(codes + 4 * c), vld1q_u32(codes + kGroup + 4 * c)};
    for (int c = 0; c < kGroup / 4; ++c) vst2q_u32(codes + 8 * c, all[c]);
  }
}
#else
template <int Step>
inline void interleave_rows(std::int8_t (&)[MR][Step]) {}
template <int Step>
inline void interleave_columns(std::uint32_t* codes) {
  for (int k = 0; k < Step / 4 * kGroup; k += 4)
    vst1q_u32(codes + k, veorq_u32(vld1q_u32(codes + k), vdupq_n_u32(0x80808080u)));
}
constexpr int kAcross = kTileVectors, kVectorBytes = 16;
#endif

#if defined(DOTPROD)
template <int Word>  // index of the word in each row's 16 codes
inline void add_word(const int8x16_t (&a)[MR], const u8* b, int32x4_t (&sum)[MR][kAcross]) {
  for (int t = 0; t < kAcross; ++t) {
    const int8x16_t columns = vld1q_s8(reinterpret_cast<const std::int8_t*>(b) + Word * kGroup * 4 + t * 16);
    for (int i = 0; i < MR; ++i) sum[i][t] = vdotq_laneq_s32(sum[i][t], columns, a[i], Word);
  }
}
template <int Step>
inline void products(const std::int8_t* a, const u8* b, vi (&sums)[MR][kAcross]) {
  int32x4_t sum[MR][kAcross] = {};
  LC_UNROLL_BY(2)
  for (int k = 0; k < Step; k += 16, b += kGroup * 16) {
    int8x16_t rows[MR];
    for (int i = 0; i < MR; ++i) rows[i] = vld1q_s8(a + i * Step + k);
    add_word<0>(rows, b, sum), add_word<1>(rows, b, sum), add_word<2>(rows, b, sum), add_word<3>(rows, b, sum);
  }
  std::memcpy(sums, sum, sizeof sums);
}
#elif !defined(I8MM)
// Signed int8 products. Two of them fit in 16 bits, because the codes of A are at least -127.
template <int Step>
inline void products(const std::int8_t* a, const u8* b, vi (&sums)[MR][kAcross]) {
  int32x4_t low[MR][kAcross] = {}, high[MR][kAcross] = {};
  LC_UNROLL_BY(4)
  for (int k = 0; k < Step; k += 8, b += kGroup * 8) {
    int8x8_t word[2][MR];
    for (int q = 0; q < 2; ++q)
      for (int i = 0; i < MR; ++i)
        word[q][i] = vreinterpret_s8_u32(
            vdup_n_u32(lc::backends::cpu::word(reinterpret_cast<const u8*>(a + i * Step + k + 4 * q))));
    for (int t = 0; t < kAcross; ++t) {
      const auto* at = reinterpret_cast<const std::int8_t*>(b) + t * 16;
      const int8x16_t first = vld1q_s8(at), second = vld1q_s8(at + kGroup * 4);
      for (int i = 0; i < MR; ++i) {
        const int16x8_t x = vmull_s8(vget_low_s8(first), word[0][i]), y = vmull_s8(vget_high_s8(first), word[0][i]);
        low[i][t] = vpadalq_s16(low[i][t], vmlal_s8(x, vget_low_s8(second), word[1][i]));
        high[i][t] = vpadalq_s16(high[i][t], vmlal_s8(y, vget_high_s8(second), word[1][i]));
      }
    }
  }
  for (int i = 0; i < MR; ++i)
    for (int t = 0; t < kAcross; ++t) sums[i][t] = reinterpret_cast<vi>(vpaddq_s32(low[i][t], high[i][t]));
}
#endif

template <int Step, bool Min>
void tile(const void* a, const void* b, i64, i64 depth, float* c, i64 c_m, i64 rows, i64 columns, bool add,
          const void* soon) {
  const auto* x = static_cast<const Quantised<MR, Step, Min>*>(a);
  PanelStep<Step, Min> panel{const_cast<std::byte*>(static_cast<const std::byte*>(b))};
  vf acc[MR][kTileVectors] = {};
  const auto* line = static_cast<const std::byte*>(soon);
  for (i64 k = 0; k < depth; k += Step, ++x, panel.at += panel.bytes, line += kLine) {
    __builtin_prefetch(line, 0, 2);
    LC_UNROLL_BY(4)
    for (int t = 0; t < kTileVectors; t += kAcross) {
      vi sums[MR][kAcross];
      products<Step>(x->codes[0], reinterpret_cast<const u8*>(panel.codes()) + t * kVectorBytes, sums);
      for (int v = 0; v < kAcross; ++v)
        for (int i = 0; i < MR; ++i)
          acc[i][t + v] = add_step<Min>(acc[i][t + v], sums[i][v] + x->start[i], *x, i, panel, (t + v) * WIDTH);
    }
  }
  store_tile(acc, c, c_m, rows, columns, add);
}

template <int Step, bool Min>
void pack_a(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int zero, void* to) {
  quantise<MR, Step, Min>(a, a_m, a_k, rows, depth, zero - kOffset, to);
  auto* x = static_cast<Quantised<MR, Step, Min>*>(to);
  for (i64 s = (rows + MR - 1) / MR * ((depth + Step - 1) / Step); s > 0; --s, ++x) interleave_rows(x->codes);
}
template <int Step, bool Min>
void pack_b(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  using Panel = PanelStep<Step, Min>;
  pack_b_int8(g, j0, columns, k0, depth, to, b_group);
  for (i64 j = 0; j < columns; j += kGroup, to = static_cast<std::byte*>(to) + b_group)
    for (i64 s = 0; s < (depth + kStep - 1) / kStep * (kStep / Step); ++s)
      interleave_columns<Step>(Panel{static_cast<std::byte*>(to) + s * Panel::bytes}.codes());
}

constexpr int kUnitColumns = kGroup;
constexpr bool kPanelsAsPacked = false;
template <int Step, bool Min>
constexpr auto kTile = &tile<Step, Min>;

}  // namespace
}  // namespace lc::backends::cpu

#include "lightcone/backends/cpu/kernels/dense/int8_units.inl.h"
