// Weights in block formats that have no codec (weights.inl.h): the numbers of a whole block are decoded to bytes, and
// multiplied from there. A product of few rows decodes each block once.
#pragma once

#include "lightcone/backends/cpu/kernels/gemm/weights.inl.h"

namespace lc::backends::cpu {
namespace {

// k after which sums of blocks end (BlockSums): kSumBlock products per lane. It is a whole number of blocks of every
// format.
constexpr i64 kLongRow = kSumBlock * WIDTH;

// WIDTH values beginning at value k.
inline vf decoded_values(const DecodedBlock& b, i64 k) {
  static_assert(16 % WIDTH == 0, "one scale for all lanes");
  return as_float(bytes(b.numbers + k)) * splat(b.scales[k / 16]);
}

bool decoded_block(WeightType t, const u8* block, float* to) {
  const QuantInfo& f = *block_format(t);
  DecodedBlock b;
  decode_block(f.format, block, b);
  for (i64 k = 0; k < f.elements; k += WIDTH) store(to + k, decoded_values(b, k));
  return true;
}

template <int M>
void decoded_row(const Gemm& g, const QuantInfo& f, i64 row, i64 m0) {
  const u8* w = static_cast<const u8*>(g.b) + row * g.b_n;
  DecodedBlock b;
  vf acc[M] = {};
  BlockSums<M> blocks;
  for (i64 k0 = 0; k0 < g.k; k0 += f.elements, w += f.bytes) {
    if (k0 > 0 && k0 % kLongRow == 0)
      for (int m = 0; m < M; ++m) blocks.end(acc[m], m);
    for (int line = 0; line < f.bytes; line += 64) __builtin_prefetch(w + g.b_n + line, 0, 3);
    decode_block(f.format, w, b);
    for (i64 k = 0; k < f.elements; k += WIDTH) {
      const vf v = decoded_values(b, k);
      for (int m = 0; m < M; ++m) acc[m] = fma(v, load(g.a + (m0 + m) * g.a_m + k0 + k), acc[m]);
    }
  }
  for (int m = 0; m < M; ++m) {
    if (g.k > kLongRow) blocks.finish(acc[m], m);
    g.c[(m0 + m) * g.c_m + row] = sum(acc[m]);
  }
}
void decoded_gemv(const Gemm& g, i64 begin, i64 end) {
  const QuantInfo& f = *block_format(g.type);
  for (i64 row = begin; row < end; ++row) switch (g.m) {
      case 1: decoded_row<1>(g, f, row, 0); break;
      case 2: decoded_row<2>(g, f, row, 0); break;
      case 3: decoded_row<3>(g, f, row, 0); break;
      default: decoded_row<4>(g, f, row, 0); break;
    }
}

// Packs values [k0, k0 + depth) of rows [n, n + count), one column of `to` per row, `group` columns apart.
void pack_decoded(const Gemm& g, i64 n, i64 count, i64 k0, i64 depth, float* to, i64 group) {
  const QuantInfo& f = *block_format(g.type);
  for (i64 c = 0; c < count; c += WIDTH)
    for (i64 k = k0; k < k0 + depth;) {
      const i64 in_block = k % f.elements, d = std::min<i64>(f.elements - in_block, k0 + depth - k);
      alignas(64) float t[WIDTH][256];
      for (i64 r = 0; r < WIDTH; ++r) {
        if (c + r >= count) {
          std::memset(t[r], 0, sizeof t[r]);
          continue;
        }
        DecodedBlock b;
        decode_block(f.format, static_cast<const u8*>(g.b) + (n + c + r) * g.b_n + k / f.elements * f.bytes, b);
        for (i64 i = in_block; i < in_block + d; i += WIDTH) store(t[r] + i - in_block, decoded_values(b, i));
      }
      for (i64 i = 0; i < d; i += WIDTH) {
        vf v[WIDTH];
        for (int r = 0; r < WIDTH; ++r) v[r] = load(t[r] + i);
        transpose(v);
        for (i64 e = 0; e < std::min<i64>(WIDTH, d - i); ++e) store(to + (k - k0 + i + e) * group + c, v[e]);
      }
      k += d;
    }
}

}  // namespace
}  // namespace lc::backends::cpu
