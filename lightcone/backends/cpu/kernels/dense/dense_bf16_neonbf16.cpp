// bf16 products by Arm's bfmmla instruction, which multiplies two rows of A and two columns of B over four k.
#define ISA neonbf16
#define WIDTH 4
#define NEON
#define F32_TABLE kGemmNeon
#include "lightcone/backends/cpu/kernels/dense/dense.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kMr = 6, kNchwBf16 = kMr / 2;
constexpr int kAStep = kMr * 4;  // bytes of two k
constexpr int kFetched = 32;

bfloat16x8_t words(const void* p) { return vreinterpretq_bf16_u8(vld1q_u8(static_cast<const u8*>(p))); }
uint32x4_t load_words(const void* p) { return vreinterpretq_u32_u8(vld1q_u8(static_cast<const u8*>(p))); }

// Packs A as u16 [k / 4][kMr][4]; the last one or two k are [kMr][2]. The instruction treats subnormal numbers as zero.
void pack_a(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int, void* to) {
  auto* out = static_cast<std::uint32_t*>(to);
  const i64 pairs = (depth + 1) / 2, whole = pairs / 2 * 2;
  for (i64 i = 0; i < rows; i += kMr, out += pairs * kMr)
    for (i64 r = 0; r < kMr; ++r)
      for (i64 k = 0; k < depth; k += 32) {
        alignas(16) float row[32];
        alignas(16) std::uint32_t pair[16];
        const i64 count = std::min<i64>(32, depth - k);
        load_row(a + (i + r) * a_m + k * a_k, a_k, r < rows - i ? count : 0, row);
        for (int e = 0; e < 16; e += WIDTH) *reinterpret_cast<vu_stored*>(pair + e) = bf16_pairs(row + 2 * e);
        for (i64 e = 0; e < (count + 1) / 2; ++e) {
          const i64 p = k / 2 + e;
          out[p < whole ? p / 2 * 2 * kMr + 2 * r + p % 2 : p * kMr + r] = pair[e];
        }
      }
}

struct Blocks {
  float32x4_t sum[kNchwBf16][8];  // sums of two rows and two columns each
  void add(const bfloat16x8_t (&a)[kNchwBf16], const bfloat16x8_t& b, int column) {
    for (int i = 0; i < kNchwBf16; ++i) sum[i][column] = vbfmmlaq_f32(sum[i][column], a[i], b);
  }
};

void tile(const void* a, const void* b, i64, i64 depth, float* c, i64 c_m, i64 rows, i64 columns, bool add,
          const void* soon) {
  const auto* x = static_cast<const std::byte*>(a);
  const auto* y = static_cast<const std::byte*>(b);
  Blocks blocks = {};
  const i64 pairs = (depth + 1) / 2;
  const auto* line = static_cast<const std::byte*>(soon);
  for (i64 p = 0; p + 2 <= pairs; p += 2, x += 2 * kAStep, y += 128, line += 2 * kFetched) {
    __builtin_prefetch(line, 0, 2);
    bfloat16x8_t rows_of_a[kNchwBf16];
    for (int i = 0; i < kNchwBf16; ++i) rows_of_a[i] = words(x + 16 * i);
#pragma GCC unroll 4
    for (int t = 0; t < 4; ++t) {
      const uint32x4_t first = load_words(y + 16 * t), second = load_words(y + 64 + 16 * t);
      blocks.add(rows_of_a, vreinterpretq_bf16_u32(vzip1q_u32(first, second)), 2 * t);
      blocks.add(rows_of_a, vreinterpretq_bf16_u32(vzip2q_u32(first, second)), 2 * t + 1);
    }
  }
  if (pairs % 2) {
    const uint32x4_t zero = vdupq_n_u32(0);
    bfloat16x8_t rows_of_a[kNchwBf16];
    for (int i = 0; i < kNchwBf16; ++i) {
      const uint32x2_t two = vreinterpret_u32_u8(vld1_u8(reinterpret_cast<const u8*>(x + 8 * i)));
      rows_of_a[i] = vreinterpretq_bf16_u32(vzip1q_u32(vcombine_u32(two, two), zero));
    }
#pragma GCC unroll 4
    for (int t = 0; t < 4; ++t) {
      const uint32x4_t last = load_words(y + 16 * t);
      blocks.add(rows_of_a, vreinterpretq_bf16_u32(vzip1q_u32(last, zero)), 2 * t);
      blocks.add(rows_of_a, vreinterpretq_bf16_u32(vzip2q_u32(last, zero)), 2 * t + 1);
    }
  }
  vf acc[kMr][4];
#pragma GCC unroll 3
  for (int i = 0; i < kNchwBf16; ++i)
#pragma GCC unroll 4
    for (int t = 0; t < 4; ++t) {
      const float64x2_t p = vreinterpretq_f64_f32(blocks.sum[i][2 * t]),
                        q = vreinterpretq_f64_f32(blocks.sum[i][2 * t + 1]);
      acc[2 * i][t] = reinterpret_cast<vf>(vzip1q_f64(p, q));
      acc[2 * i + 1][t] = reinterpret_cast<vf>(vzip2q_f64(p, q));
    }
  store_tile(acc, c, c_m, rows, columns, add);
}

}  // namespace

LC_MICROKERNEL_ENTRIES(bf16, pack_a, (pack_b_bf16<2>), tile)

const Microkernel kBf16NeonBf16 = {
    "bf16_" LC_ISA_NAME,   Arithmetic::Bf16,   kMr, kGroup, 2, kAStep, 64, kFetched, LC_ENTRY(bf16_pack_a),
    LC_ENTRY(bf16_pack_b), LC_ENTRY(bf16_tile)};

}  // namespace lc::backends::cpu
