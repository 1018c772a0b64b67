// How the weight of a matrix product is stored. The matcher looks through a cast or a dequantisation and leaves the
// conversion to the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "lightcone/formats/block_formats.h"

namespace lc {

// Plain types; every block format, numbered as QuantFormat is; signed bytes: I8 for exact products with other bytes,
// Bytes for products with f32. The 8-bit floats come last: GPU kernels read them directly, and the CPU widens them
// first. The block formats that are called by name have code of their own in a back end.
inline constexpr int kFirstBlocks = 3, kBlockFormats = static_cast<int>(std::size(kQuantFormats)),
                     kBehindBlocks = kFirstBlocks + kBlockFormats;
constexpr int of_blocks(QuantFormat f) { return kFirstBlocks + static_cast<int>(f); }
enum class WeightType : std::uint8_t {
  F32,
  F16,
  BF16,
  Q4_0 = of_blocks(QuantFormat::Q4_0),
  Q4_1 = of_blocks(QuantFormat::Q4_1),
  Q5_0 = of_blocks(QuantFormat::Q5_0),
  Q5_1 = of_blocks(QuantFormat::Q5_1),
  Q8_0 = of_blocks(QuantFormat::Q8_0),
  Q2_K = of_blocks(QuantFormat::Q2_K),
  Q3_K = of_blocks(QuantFormat::Q3_K),
  Q4_K = of_blocks(QuantFormat::Q4_K),
  Q5_K = of_blocks(QuantFormat::Q5_K),
  Q6_K = of_blocks(QuantFormat::Q6_K),
  I8 = kBehindBlocks,
  Bytes,
  F8E4M3FN,
  F8E5M2
};
constexpr WeightType weight_type(QuantFormat f) { return static_cast<WeightType>(of_blocks(f)); }

struct WeightInfo {
  WeightType type;
  std::string_view name;
  std::int64_t unit_bytes;  // bytes per unit of the stride Gemm::b_n
  std::optional<QuantFormat> format = {};
};
inline constexpr auto kWeightTypes = [] {
  std::array<WeightInfo, kBehindBlocks + 4> all = {
      {{WeightType::F32, "f32", 4}, {WeightType::F16, "f16", 2}, {WeightType::BF16, "bf16", 2}}};
  for (const QuantInfo& q : kQuantFormats)
    all[static_cast<std::size_t>(of_blocks(q.format))] = {weight_type(q.format), q.name, 1, q.format};
  std::size_t at = kBehindBlocks;
  for (const WeightInfo& w :
       {WeightInfo{WeightType::I8, "i8", 1}, WeightInfo{WeightType::Bytes, "bytes", 1},
        WeightInfo{WeightType::F8E4M3FN, "f8_e4m3fn", 1}, WeightInfo{WeightType::F8E5M2, "f8_e5m2", 1}})
    all[at++] = w;
  return all;
}();
constexpr const WeightInfo& info(WeightType t) { return kWeightTypes[static_cast<std::size_t>(t)]; }

// Constant expressions use this and not block_format(t) != nullptr: with -fsanitize=undefined, GCC 12 cannot evaluate
// that an address is not null (PR 71962).
constexpr bool is_quantised(WeightType t) { return info(t).format.has_value(); }
constexpr const QuantInfo* block_format(WeightType t) {  // null for a plain type
  return info(t).format ? &info(*info(t).format) : nullptr;
}
constexpr bool is_f8(WeightType t) { return t == WeightType::F8E4M3FN || t == WeightType::F8E5M2; }
constexpr std::int64_t unit_bytes(WeightType t) { return info(t).unit_bytes; }
constexpr std::string_view name(WeightType t) { return info(t).name; }

}  // namespace lc
