// bf16 products by AVX-512's dot-product instruction, summed in f32.
#define ISA avx512bf16
#define WIDTH 16
#define MR 14
#define GROUPS 2
#define F32_TABLE kGemmAvx512
#include "lightcone/backends/cpu/kernels/dense/dense.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/register_tile.inl.h"

namespace lc::backends::cpu {
namespace {

// Bytes of a step of A, which is u16 [k / 2][MR][2]. The instruction treats subnormal numbers as zero.
constexpr int kAStep = MR * 4;

// Packs a column-major A, one pair of k after another, so that it is read once and in memory order.
void pack_columns(const float* a, i64 a_k, i64 rows, i64 depth, std::uint32_t* to) {
  for (i64 k = 0; k < depth; k += 2)
    for (i64 i = 0; i < rows; i += MR) {
      const float* from = a + k * a_k + i;
      const i64 h = std::min<i64>(MR, rows - i);
      const vf even = load_part(from, h), odd = k + 1 < depth ? load_part(from + a_k, h) : vf{};
      store_part(reinterpret_cast<float*>(to + i * ((depth + 1) / 2) + k / 2 * MR),
                 reinterpret_cast<vf>(bf16_words(even, odd)), MR);
    }
}

void pack_a(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int, void* to) {
  auto* out = static_cast<std::uint32_t*>(to);
  if (a_m == 1 && a_k != 1) return pack_columns(a, a_k, rows, depth, out);
  for (i64 i = 0; i < rows; i += MR, out += (depth + 1) / 2 * MR) {
    const i64 h = std::min<i64>(MR, rows - i);
    for (i64 k = 0; k < depth; k += 32) {
      const i64 count = std::min<i64>(32, depth - k);
      vf v[WIDTH] = {};
      for (i64 r = 0; r < h; ++r) {
        alignas(64) float row[32];
        load_row(a + (i + r) * a_m + k * a_k, a_k, count, row);
        v[r] = reinterpret_cast<vf>(bf16_pairs(row));
      }
      transpose(v);
      for (i64 e = 0; e < (count + 1) / 2; ++e) store_part(reinterpret_cast<float*>(out + (k / 2 + e) * MR), v[e], MR);
    }
  }
}

template <int H, int V>
struct TileOf {
  static void run(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 columns, bool add,
                  const void* soon) {
    const auto* x = static_cast<const std::int32_t*>(a);
    const auto* y = static_cast<const std::byte*>(b);
    alignas(WIDTH * 4) vf acc[H][V] = {};
    tile_steps<H, V>((depth + 1) / 2, c, c_m, soon, [&] {
      __m512i w[V];
      for (int g = 0; g < V; ++g) w[g] = _mm512_loadu_si512(y + g * b_group);
      LC_UNROLL_BY(16)
      for (int i = 0; i < H; ++i) {
        const __m512i s = _mm512_set1_epi32(x[i]);
        for (int g = 0; g < V; ++g) acc[i][g] = add_pairs(s, w[g], acc[i][g]);
      }
      x += MR, y += 64;
    });
    put_tile(acc, c, c_m, columns, add);
  }
};

}  // namespace

LC_MICROKERNEL_ENTRIES(bf16, pack_a, (pack_b_bf16<2>), (register_tile<TileOf, MR, GROUPS * kGroupVectors>))

const Microkernel kBf16Avx512Bf16 = {
    "bf16_" LC_ISA_NAME,   Arithmetic::Bf16,   MR, GROUPS* kGroup, 2, kAStep, 64, kFetched, LC_ENTRY(bf16_pack_a),
    LC_ENTRY(bf16_pack_b), LC_ENTRY(bf16_tile)};

}  // namespace lc::backends::cpu
