// CPU properties of weight formats: the packed layout for streaming, and the arithmetic of int8 products. There is one
// row per type, also for types without a packed layout or int8 products. The rows of block formats derive from
// formats/block_formats.h.
//
// Packed weights interleave 16 rows, so that a vector lane is a row. The layout of every 16 rows, along k:
//
//   block formats  block:  d f16[16]; Q4_K, Q5_K: d_min f16[16], u32[3][16] the file's scales and minima
//                  step of 32 k:  Q6_K: scales, two i8[16]; low nibbles u32[4][16], nibble j of word v for k = 8 v + j;
//                  Q5_K: the fifth bits u32[16]; Q6_K: upper bit pairs u32[2][16]
//                  Q8_0: codes + 128 as u8[8][16][4], k = 4 v + j: the order of int8 dot-product instructions
//   bf16           [k / 2][16][2]: the order of bf16 dot-product instructions; an odd k is padded with zeros
//   i8             codes + 128 as u8[k / 4][16][4], padded to a multiple of 64 k
//   f16, f32       [k][16]; f32 microkernels read f32 in this layout
//
// Missing rows of the last group have zeros as scales or weights.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lightcone/formats/block_decode.h"
#include "lightcone/formats/weight_type.h"

namespace lc::backends::cpu {

// Arithmetic of a product. Split2 and Split3 split f32 into two or three bf16 parts; Int8Step* quantize A per step of
// 32 or 16 k, with or without minima of B; Int8Exact multiplies bytes exactly.
enum class Arithmetic : std::uint8_t {
  Bf16,
  Split2,
  Split3,
  Int8Step32,
  Int8Step32Min,
  Int8Step16,
  Int8Step16Min,
  Int8Exact,
  F32
};

// Sizes of the packed layout of 16 interleaved rows.
struct PackedLayout {
  int block = 0;                                    // k per header; 0: the type is not packed
  int header = 0, scales = 0, codes = 0, high = 0;  // in bytes: header per block, the others per step
  bool minima = false;                              // the header has d_min and the file's scales and minima
  static constexpr int rows = 16, step = 32;
  constexpr int step_bytes() const { return scales + codes + high; }
  constexpr int block_bytes() const { return header + (block > step ? block / step : 1) * step_bytes(); }
  constexpr std::int64_t group_bytes(std::int64_t k) const { return (k + block - 1) / block * block_bytes(); }
};

// The packed layouts. Other types are streamed as they are stored.
constexpr PackedLayout packed_layout_of(WeightType t) {
  switch (t) {
    case WeightType::F32: return {1, 0, 0, 64, 0};
    case WeightType::F16: return {1, 0, 0, 32, 0};
    case WeightType::BF16: return {2, 0, 0, 64, 0};
    case WeightType::I8: return {64, 0, 0, 512, 0};
    case WeightType::Q4_0:
    case WeightType::Q8_0:
    case WeightType::Q4_K:
    case WeightType::Q5_K:
    case WeightType::Q6_K: break;
    default: return {};
  }
  // d and with it d_min and their scales for each block, signed bytes as scales for each step; then the lower four bits
  // of the codes, or all eight, and the others.
  const QuantInfo& q = *block_format(t);
  const bool minima = q.d_min >= 0, scales = !minima && q.scale.low.packing.bits > 0;
  const int per_step = PackedLayout::rows * PackedLayout::step / 8;  // bytes for each bit of a code
  return {q.elements,
          PackedLayout::rows * (minima ? 2 * 2 + 12 : 2),
          scales ? PackedLayout::rows * PackedLayout::step / q.scaled() : 0,
          per_step * q.q.low.packing.bits,
          per_step * q.q.high.packing.bits,
          minima};
}
// Block formats with a decoder in the kernels (kernels/gemm/weights.inl.h). Blocks of others are decoded to bytes first
// (kernels/gemm/decoded_blocks.inl.h), and multiplied in f32.
constexpr bool has_codec(WeightType t) { return t >= WeightType::Q4_0 && t <= WeightType::Q6_K; }
constexpr bool is_decoded(WeightType t) { return is_quantised(t) && !has_codec(t); }

// A row of the table.
struct WeightFormat {
  WeightType type;
  PackedLayout packed;
  Arithmetic int8;  // F32: it has no int8 products
};
constexpr Arithmetic int8_arithmetic(WeightType t) {
  if (t == WeightType::I8) return Arithmetic::Int8Exact;
  if (!has_codec(t)) return Arithmetic::F32;
  const QuantInfo& q = *block_format(t);
  if (q.scaled() == 16) return q.d_min < 0 ? Arithmetic::Int8Step16 : Arithmetic::Int8Step16Min;
  return q.d_min < 0 ? Arithmetic::Int8Step32 : Arithmetic::Int8Step32Min;
}
// Without the 8-bit floats, which are widened before the product.
inline constexpr auto kWeightFormats = [] {
  std::array<WeightFormat, static_cast<std::size_t>(WeightType::F8E4M3FN)> all = {};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto t = static_cast<WeightType>(i);
    all[i] = {t, packed_layout_of(t), int8_arithmetic(t)};
  }
  return all;
}();
constexpr const WeightFormat& weight_format(WeightType t) { return kWeightFormats[static_cast<std::size_t>(t)]; }

constexpr const PackedLayout& packed_layout(WeightType t) { return weight_format(t).packed; }
constexpr bool packed_has_minima(WeightType t) { return packed_layout(t).minima; }
constexpr std::int64_t packed_bytes(WeightType t, std::int64_t n, std::int64_t k) {
  return (n + PackedLayout::rows - 1) / PackedLayout::rows * packed_layout(t).group_bytes(k);
}

// How a block format is multiplied in int8: as unsigned codes of `bits` bits that exceed their values by `zero`. `zero`
// is 0 for formats with minima and for plain types.
struct Int8Format {
  Arithmetic arithmetic;
  int zero;
  int bits = 8;
};
constexpr Int8Format int8_format(WeightType t) {
  if (!has_codec(t)) return {weight_format(t).int8, 0};
  const QuantInfo* q = block_format(t);
  return {weight_format(t).int8, q->q.is_signed ? 128 : -q->q.bias, q->q.low.packing.bits + q->q.high.packing.bits};
}

static_assert(std::all_of(kWeightFormats.begin(), kWeightFormats.end(),
                          [](const WeightFormat& w) {
                            return !is_decoded(w.type) || can_decode(*block_format(w.type));
                          }),
              "a format with minima needs a decoder in kernels/gemm/weights.inl.h");

}  // namespace lc::backends::cpu
