// CPU properties of weight formats: the packed layout for streaming, and the arithmetic of int8 products. There is one
// row per type, also for types without a packed layout or int8 products.
#pragma once

#include <cstdint>
#include <iterator>

#include "lightcone/composites/block_formats.h"
#include "lightcone/lowering/weight_type.h"

namespace lc::backends::cpu {

using lowering::block_format;
using lowering::is_quantised;
using lowering::WeightType;

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

// Sizes of the packed layout of 16 interleaved rows, which packed_weights.h describes.
struct PackedLayout {
  int block = 0;                                    // k per header; 0: the type is not packed
  int header = 0, scales = 0, codes = 0, high = 0;  // in bytes: header per block, the others per step
  bool minima = false;                              // the header has d_min and the file's scales and minima
  static constexpr int rows = 16, step = 32;
  constexpr int step_bytes() const { return scales + codes + high; }
  constexpr int block_bytes() const { return header + (block > step ? block / step : 1) * step_bytes(); }
  constexpr std::int64_t group_bytes(std::int64_t k) const { return (k + block - 1) / block * block_bytes(); }
};

// A row of the table.
struct WeightFormat {
  WeightType type;
  PackedLayout packed;
  Arithmetic int8;  // for block formats; others have no int8 products
};
inline constexpr PackedLayout kNotPacked = {};
inline constexpr WeightFormat kWeightFormats[] = {
    {WeightType::F32, {1, 0, 0, 64, 0}, Arithmetic::F32},
    {WeightType::F16, {1, 0, 0, 32, 0}, Arithmetic::F32},
    {WeightType::BF16, {2, 0, 0, 64, 0}, Arithmetic::F32},
    {WeightType::Q4_0, {32, 32, 0, 256, 0}, Arithmetic::Int8Step32},
    {WeightType::Q4_1, kNotPacked, Arithmetic::Int8Step32Min},
    {WeightType::Q5_0, kNotPacked, Arithmetic::Int8Step32},
    {WeightType::Q5_1, kNotPacked, Arithmetic::Int8Step32Min},
    {WeightType::Q8_0, {32, 32, 0, 512, 0}, Arithmetic::Int8Step32},
    {WeightType::Q2_K, kNotPacked, Arithmetic::Int8Step16Min},
    {WeightType::Q3_K, kNotPacked, Arithmetic::Int8Step16},
    {WeightType::Q4_K, {256, 256, 0, 256, 0, true}, Arithmetic::Int8Step32Min},
    {WeightType::Q5_K, {256, 256, 0, 256, 64, true}, Arithmetic::Int8Step32Min},
    {WeightType::Q6_K, {256, 32, 32, 256, 128}, Arithmetic::Int8Step16},
    {WeightType::I8, {64, 0, 0, 512, 0}, Arithmetic::Int8Exact},
    {WeightType::Bytes, kNotPacked, Arithmetic::F32},
    // 8-bit floats are widened before the product.
};
constexpr const WeightFormat& weight_format(WeightType t) { return kWeightFormats[static_cast<int>(t)]; }

constexpr const PackedLayout& packed_layout(WeightType t) { return weight_format(t).packed; }
constexpr bool packed_has_minima(WeightType t) { return packed_layout(t).minima; }
constexpr std::int64_t packed_bytes(WeightType t, std::int64_t n, std::int64_t k) {
  return (n + PackedLayout::rows - 1) / PackedLayout::rows * packed_layout(t).group_bytes(k);
}

// How a block format is multiplied in int8: as unsigned bytes that exceed their values by `zero`. `zero` is 0 for
// formats with minima and for plain types.
struct Int8Format {
  Arithmetic arithmetic;
  int zero;
};
constexpr Int8Format int8_format(WeightType t) {
  if (!is_quantised(t)) return {weight_format(t).int8, 0};
  const QuantInfo* q = block_format(t);
  return {weight_format(t).int8, q->q.is_signed ? 128 : -q->q.bias};
}

consteval bool weight_formats_are_complete() {
  for (int i = 0; const WeightFormat& row : kWeightFormats) {
    if (static_cast<int>(row.type) != i++) return false;
    if (!is_quantised(row.type)) continue;
    const QuantInfo* q = block_format(row.type);
    const bool min = row.int8 == Arithmetic::Int8Step32Min || row.int8 == Arithmetic::Int8Step16Min;
    if (!min && row.int8 != Arithmetic::Int8Step32 && row.int8 != Arithmetic::Int8Step16) return false;
    if (min != (q->d_min >= 0) || (row.packed.block > 0 && row.packed.block != q->elements)) return false;
  }
  return std::size(kWeightFormats) == static_cast<std::size_t>(WeightType::F8E4M3FN);
}
static_assert(weight_formats_are_complete(),
              "one row a type, in order, with the sizes and minima of composites/block_formats.h");

}  // namespace lc::backends::cpu
