// The dense f32 microkernel, compiled for each instruction set: WIDTH floats per vector, MR x kNr accumulators.
#include <algorithm>

#include "lightcone/backends/cpu/kernels/abi/gemm_abi.h"
#include "lightcone/backends/cpu/kernels/gemm/gemv.inl.h"
#include "lightcone/backends/cpu/kernels/gemm/packed.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/register_tile.inl.h"

namespace lc::backends::cpu {
namespace {

void axpy(const Gemm& g, i64 begin, i64 end) {
  const float* b = static_cast<const float*>(g.b);
  for (i64 m = 0; m < g.m; ++m) {
    const float* a = g.a + m * g.a_m;
    float* c = g.c + m * g.c_m;
    i64 j = begin;
    for (; j + 4 * WIDTH <= end; j += 4 * WIDTH) {
      vf acc[4] = {};
      BlockSums<4> blocks;
      for (i64 k0 = 0; k0 < g.k; k0 += kSumBlock) {
        if (k0 > 0) LC_UNROLL_BY(4)
        for (int t = 0; t < 4; ++t) blocks.end(acc[t], t);
        for (i64 k = k0; k < std::min(g.k, k0 + kSumBlock); ++k) {
          const vf s = splat(a[k * g.a_k]);
          for (int t = 0; t < 4; ++t) acc[t] = fma(s, load(b + k * g.b_k + j + t * WIDTH), acc[t]);
        }
      }
      if (g.k > kSumBlock) LC_UNROLL_BY(4)
      for (int t = 0; t < 4; ++t) blocks.finish(acc[t], t);
      for (int t = 0; t < 4; ++t) store(c + j + t * WIDTH, acc[t]);
    }
    for (; j < end; ++j) {
      float acc = 0;
      float blocks = 0, lost = 0;
      for (i64 k = 0; k < g.k; ++k) {
        if (k > 0 && k % kSumBlock == 0) end_block(blocks, lost, acc);
        acc = __builtin_fmaf(a[k * g.a_k], b[k * g.b_k + j], acc);
      }
      c[j] = g.k > kSumBlock ? (end_block(blocks, lost, acc), blocks + lost) : acc;
    }
  }
}

// ---- packing and the register tile -------------------------------------------------------------

constexpr int kGroup = PackedLayout::rows;
constexpr int kNr = std::max(kGroup, 2 * WIDTH), kVectors = kNr / WIDTH;

// Interleaves h rows, each number converted by `as`. Whole vectors are stored: what they write past a row belongs to
// the next row. Only the last row of the strip ends exactly.
template <class As>
void pack_strip(const float* from, i64 a_m, i64 a_k, i64 h, i64 depth, float* to, const As& as) {
  constexpr int parts = (MR + WIDTH - 1) / WIDTH;  // vectors per row of the strip
  i64 k = 0;
  if (a_k == 1)
    for (; k + WIDTH <= depth; k += WIDTH) {
      vf v[parts][WIDTH];
      for (int p = 0; p < parts; ++p) {
        for (i64 r = 0; r < WIDTH; ++r) {
          const i64 row = p * WIDTH + r;
          v[p][r] = row < h ? as(load(from + row * a_m + k)) : vf{};
        }
        transpose(v[p]);
      }
      for (int e = 0; e < WIDTH; ++e)
        for (int p = 0; p < parts; ++p) {
          float* at = to + (k + e) * MR + p * WIDTH;
          if (e + 1 < WIDTH || (p + 1) * WIDTH <= MR) store(at, v[p][e]);
          else store_part(at, v[p][e], MR - p * WIDTH);
        }
    }
  for (; k < depth; ++k)
    for (i64 r = 0; r < MR; ++r) to[k * MR + r] = r < h ? as(splat(from[r * a_m + k * a_k]))[0] : 0.0f;
}

// Packs a column-major A, one k after another, so that it is read once and in memory order. Whole vectors are stored,
// except for the last k, which another strip follows.
template <class As>
void pack_columns(const float* a, i64 a_k, i64 rows, i64 depth, float* to, const As& as) {
  for (i64 k = 0; k < depth; ++k)
    for (i64 i = 0; i < rows; i += MR)
      for (i64 r = 0; r < MR; r += WIDTH) {
        const i64 n = std::min<i64>(WIDTH, MR - r), there = std::min<i64>(WIDTH, rows - i - r);
        const float* from = a + k * a_k + i + r;
        const vf x = there == WIDTH ? load(from) : there > 0 ? load_part(from, there) : vf{};
        float* at = to + i * depth + k * MR + r;
        if (k + 1 < depth) store(at, as(x));
        else store_part(at, as(x), n);
      }
}

template <class As>
void pack_strips(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, float* to, const As& as) {
  if (a_m == 1 && a_k != 1) return pack_columns(a, a_k, rows, depth, to, as);
  for (i64 i = 0; i < rows; i += MR)
    pack_strip(a + i * a_m, a_m, a_k, std::min<i64>(MR, rows - i), depth, to + i * depth, as);
}
void pack_a(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int /*zero*/, void* to) {
  pack_strips(a, a_m, a_k, rows, depth, static_cast<float*>(to), [](vf x) { return x; });
}
void pack_rounded_a(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int, void* to) {
  pack_strips(a, a_m, a_k, rows, depth, static_cast<float*>(to), [](vf x) { return reinterpret_cast<vf>(rounded(x)); });
}

// Packs values [k0, k0 + depth) of rows [n, n + count), one column of `to` per row: decodes 32 values at a time and
// transposes them in registers.
template <WeightType T>
void pack_rows(const Gemm& g, i64 n, i64 count, i64 k0, i64 depth, float* to) {
  for (i64 k = 0; k < depth; k += kStep)
    for (i64 c = 0; c < count; c += WIDTH) {
      alignas(64) float t[WIDTH][kStep];
      const i64 w = std::min<i64>(WIDTH, count - c), d = std::min<i64>(kStep, depth - k);
      if (w < WIDTH) std::memset(t, 0, sizeof t);
      for (i64 r = 0; r < w; ++r) {
        const auto* row = static_cast<const std::byte*>(g.b);
        if constexpr (is_quantised(T)) {
          using C = Codec<T>;
          const i64 at = k0 + k;
          const u8* block = reinterpret_cast<const u8*>(row + (n + c + r) * g.b_n) + at / C::elements * C::size;
          const typename C::Scale s = C::scales(block);
          for (int i = 0; i < kStep; i += WIDTH) {
            const vf v = values<T>(block, s, static_cast<int>(at % C::elements / kStep), i);
            store(t[r] + i, is_reordered(T) ? reordered(v) : v);
          }
        } else {
          const std::byte* p = row + ((n + c + r) * g.b_n + (k0 + k) * g.b_k) * Plain<T>::bytes;
          if (d == kStep && g.b_k == 1)
            for (int i = 0; i < kStep; i += WIDTH) store(t[r] + i, Plain<T>::get(p, i));
          else
            for (i64 i = 0; i < d; ++i) t[r][i] = Plain<T>::one(p, i * g.b_k);
        }
      }
      for (i64 i = 0; i < d; i += WIDTH) {
        vf v[WIDTH];
        for (int r = 0; r < WIDTH; ++r) v[r] = load(t[r] + i);
        transpose(v);
        for (i64 e = 0; e < std::min<i64>(WIDTH, d - i); ++e) store(to + (k + i + e) * kGroup + c, v[e]);
      }
    }
}

void pack_b(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, float* to) {
  if (columns < kGroup) std::memset(to, 0, static_cast<std::size_t>(depth * kGroup) * 4);
  if (g.packed) return unpack_strip(g, j0, columns, k0, depth, to, kGroup);
  if (is_decoded(g.type)) return pack_decoded(g, j0, columns, k0, depth, to, kGroup);
  if (g.type != WeightType::F32 || g.b_n != 1)
    return with_type(g.type, [&]<WeightType T>() { pack_rows<T>(g, j0, columns, k0, depth, to); });
  const float* from = static_cast<const float*>(g.b) + k0 * g.b_k + j0;
  for (i64 k = 0; k < depth; ++k, from += g.b_k, to += kGroup)
    for (i64 c = 0; c < kGroup; c += WIDTH) {
      if (columns - c >= WIDTH) store(to + c, load(from + c));
      else if (columns > c) store_part(to + c, load_part(from + c, columns - c), columns - c);
    }
}

void pack_groups(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  for (i64 j = 0; j < columns; j += kGroup)
    pack_b(g, j0 + j, std::min<i64>(kGroup, columns - j), k0, depth,
           reinterpret_cast<float*>(static_cast<std::byte*>(to) + j / kGroup * b_group));
}
// Packs and rounds a piece at a time, while it is still in L1.
void pack_rounded_groups(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  constexpr i64 kPiece = 64;
  for (i64 j = 0; j < columns; j += kGroup)
    for (i64 k = 0; k < depth; k += kPiece) {
      const i64 d = std::min(kPiece, depth - k);
      float* out = reinterpret_cast<float*>(static_cast<std::byte*>(to) + j / kGroup * b_group) + k * kGroup;
      pack_b(g, j0 + j, std::min<i64>(kGroup, columns - j), k0 + k, d, out);
      if (g.type == WeightType::BF16) continue;
      for (i64 i = 0; i < d * kGroup; i += WIDTH) store(out + i, reinterpret_cast<vf>(rounded(load(out + i))));
    }
}

// Number of products that are accumulated in registers before the sum is added to C. A longer chain loses more to
// rounding; a shorter one spends more time on additions to C.
constexpr i64 kChain = 192;

template <int H, int V>
struct TileOf {
  static void run(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 columns, bool add,
                  const void* soon) {
    const auto *x = static_cast<const float*>(a), *y = static_cast<const float*>(b);
    const i64 group = b_group / 4;
    i64 k = 0;
    do {  // runs once even without products, whose sum is 0
      alignas(WIDTH * 4) vf acc[H][V] = {};
      tile_steps<H, V>(std::min(kChain, depth - k), c, c_m, static_cast<const std::byte*>(soon) + k * kFetched, [&] {
        vf w[V];
        for (int t = 0; t < V; ++t) w[t] = load(y + t * WIDTH / kGroup * group + t * WIDTH % kGroup);
        LC_UNROLL_BY(16)
        for (int i = 0; i < H; ++i) add_products(acc[i], x + i, w, i);
        x += MR, y += kGroup;
      });
      put_tile(acc, c, c_m, columns, add || k > 0);
      k += kChain;
    } while (k < depth);
  }
};

}  // namespace

extern "C" {
bool LC_ENTRY(gemm_reorder_rows)(const Gemm* g, float* to) { return reorder_rows(*g, to); }
void LC_ENTRY(gemm_gemv)(const Gemm* g, i64 row_begin, i64 row_end) { gemv(*g, row_begin, row_end); }
void LC_ENTRY(gemm_step_sums)(const Gemm* g, float* to) { step_sums(*g, to); }
void LC_ENTRY(gemm_gemv_packed)(const Gemm* g, const float* sums, i64 group_begin, i64 group_end) {
  gemv_packed(*g, sums, group_begin, group_end);
}
void LC_ENTRY(gemm_axpy)(const Gemm* g, i64 begin, i64 end) { axpy(*g, begin, end); }
void LC_ENTRY(gemm_pack_b)(const Gemm* g, i64 j0, i64 columns, i64 k0, i64 depth, float* to) {
  pack_b(*g, j0, columns, k0, depth, to);
}
bool LC_ENTRY(gemm_dequantize)(WeightType t, const void* block, float* to) { return dequantize(t, block, to); }
}
LC_MICROKERNEL_ENTRIES(f32, pack_a, pack_groups, (register_tile<TileOf, MR, kVectors>))
LC_MICROKERNEL_ENTRIES(bf16, pack_rounded_a, pack_rounded_groups, (register_tile<TileOf, MR, kVectors>))

const GemmTable TABLE = {LC_ENTRY(gemm_reorder_rows), LC_ENTRY(gemm_gemv), LC_ENTRY(gemm_step_sums),
                         LC_ENTRY(gemm_gemv_packed),  LC_ENTRY(gemm_axpy), LC_ENTRY(gemm_pack_b),
                         LC_ENTRY(gemm_dequantize)};
const Microkernel UNIT = {
    "f32_" LC_ISA_NAME,   Arithmetic::F32,   MR, kNr, 1, MR * 4, kGroup * 4, kFetched, LC_ENTRY(f32_pack_a),
    LC_ENTRY(f32_pack_b), LC_ENTRY(f32_tile)};
// Without bf16 instructions, a bf16 product is an f32 product of rounded numbers.
const Microkernel BF16_UNIT = {
    "bf16_" LC_ISA_NAME,   Arithmetic::Bf16,   MR, kNr, 1, MR * 4, kGroup * 4, kFetched, LC_ENTRY(bf16_pack_a),
    LC_ENTRY(bf16_pack_b), LC_ENTRY(bf16_tile)};

}  // namespace lc::backends::cpu
