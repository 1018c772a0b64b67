// How the weight of a matrix product is stored. The matcher looks through a cast or a dequantisation and leaves the
// conversion to the kernel.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "lightcone/composites/block_formats.h"

namespace lc::lowering {

// Plain types, block formats and signed bytes: I8 for exact products with other bytes, Bytes for products with f32. The
// 8-bit floats come last: GPU kernels read them directly, and the CPU widens them first.
enum class WeightType : std::uint8_t {
  F32,
  F16,
  BF16,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  I8,
  Bytes,
  F8E4M3FN,
  F8E5M2
};
struct WeightInfo {
  WeightType type;
  std::string_view name;
  std::int64_t unit_bytes;  // bytes per unit of the stride Gemm::b_n
  std::optional<QuantFormat> format = {};
};
constexpr WeightInfo block_weights(WeightType t, QuantFormat f) { return {t, lc::info(f).name, 1, f}; }
inline constexpr WeightInfo kWeightTypes[] = {
    {WeightType::F32, "f32", 4},
    {WeightType::F16, "f16", 2},
    {WeightType::BF16, "bf16", 2},
    block_weights(WeightType::Q4_0, QuantFormat::Q4_0),
    block_weights(WeightType::Q4_1, QuantFormat::Q4_1),
    block_weights(WeightType::Q5_0, QuantFormat::Q5_0),
    block_weights(WeightType::Q5_1, QuantFormat::Q5_1),
    block_weights(WeightType::Q8_0, QuantFormat::Q8_0),
    block_weights(WeightType::Q2_K, QuantFormat::Q2_K),
    block_weights(WeightType::Q3_K, QuantFormat::Q3_K),
    block_weights(WeightType::Q4_K, QuantFormat::Q4_K),
    block_weights(WeightType::Q5_K, QuantFormat::Q5_K),
    block_weights(WeightType::Q6_K, QuantFormat::Q6_K),
    {WeightType::I8, "i8", 1},
    {WeightType::Bytes, "bytes", 1},
    {WeightType::F8E4M3FN, "f8_e4m3fn", 1},
    {WeightType::F8E5M2, "f8_e5m2", 1},
};
constexpr const WeightInfo& info(WeightType t) { return kWeightTypes[static_cast<int>(t)]; }

constexpr WeightType weight_type(QuantFormat f) {
  const WeightInfo* row = kWeightTypes;
  while (row->format != f) ++row;
  return row->type;
}
// Constant expressions use this and not block_format(t) != nullptr: with -fsanitize=undefined, GCC 12 cannot evaluate
// that an address is not null (PR 71962).
constexpr bool is_quantised(WeightType t) { return info(t).format.has_value(); }
constexpr const QuantInfo* block_format(WeightType t) {  // null for a plain type
  return info(t).format ? &lc::info(*info(t).format) : nullptr;
}
constexpr bool is_f8(WeightType t) { return t == WeightType::F8E4M3FN || t == WeightType::F8E5M2; }
constexpr std::int64_t unit_bytes(WeightType t) { return info(t).unit_bytes; }
constexpr std::string_view name(WeightType t) { return info(t).name; }

consteval bool weight_rows_follow_the_enum() {
  for (int i = 0; const WeightInfo& row : kWeightTypes)
    if (static_cast<int>(row.type) != i++) return false;
  for (const QuantInfo& q : kQuantFormats)
    if (*info(weight_type(q.format)).format != q.format || name(weight_type(q.format)) != q.name) return false;
  return std::size(kWeightTypes) == static_cast<std::size_t>(WeightType::F8E5M2) + 1;
}
static_assert(weight_rows_follow_the_enum(), "one row a type, in order, and one for every block format");

}  // namespace lc::lowering
