// How a weight is stored, as far as a matrix product is concerned: its matcher looks through a cast or a dequantisation
// and leaves the conversion to the kernel.
#pragma once

#include <cstdint>
#include <string_view>

#include "lightcone/core/op.h"

namespace lc::lowering {

// Plain types, the block formats in the order of QuantFormat, and signed bytes, for exact products alone.
enum class WeightType : std::uint8_t { F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, I8 };
constexpr WeightType weight_type(QuantFormat f) { return static_cast<WeightType>(3 + static_cast<int>(f)); }
constexpr const QuantInfo* block_format(WeightType t) {  // null for a plain type
  return t > WeightType::BF16 && t < WeightType::I8 ? &kQuantFormats[static_cast<int>(t) - 3] : nullptr;
}
constexpr std::int64_t unit_bytes(WeightType t) {  // of Gemm::b_n
  return t == WeightType::F32 ? 4 : t == WeightType::F16 || t == WeightType::BF16 ? 2 : 1;
}

constexpr std::string_view name(WeightType t) {
  constexpr std::string_view plain[] = {"f32", "f16", "bf16"};
  if (t == WeightType::I8) return "i8";
  const QuantInfo* format = block_format(t);
  return format ? format->name : plain[static_cast<int>(t)];
}

}  // namespace lc::lowering
