// ggml's block formats in one table: number, names, sizes and bit positions of value k in a block.
//
//   value(k) = d * scale(k) * q(k) - d_min * min(k), rounded to f32 once
//
// d and d_min are f16, the codes small integers. The reference, the composite's definition, the checkpoint readers and
// the kernel tests all use this table; each device chooses how it multiplies a format.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <iterator>
#include <string_view>

#include "lightcone/base/error.h"
#include "lightcone/core/dtype.h"
#include "lightcone/core/op.h"

namespace lc {

enum class QuantFormat : std::uint8_t { Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K };

// Bit position of code k, which is `bits` bits of one byte:
//   byte  = k / values_per_step % byte_period + k / block_values * block_stride
//   shift = k / values_per_shift % shifts * shift_step + first_shift
struct BitPacking {
  int bits = 0, values_per_step = 1, byte_period = 256, block_values = 256, block_stride = 0;
  int values_per_shift = 256, shifts = 256, shift_step = 0, first_shift = 0;
};
namespace quant {
// clang-format off
inline constexpr BitPacking
    kBytes{8},                                    // one byte per code
    kNibbles{4, 1, 16, 256, 0, 16, 256, 4},       // 16 low nibbles, then 16 high nibbles
    kBits{1, 8, 256, 256, 0, 1, 8, 1},            // consecutive bits
    kWideNibbles{4, 1, 32, 64, 32, 32, 2, 4},     // 32 low nibbles, then 32 high nibbles
    kHalfNibbles{4, 1, 64, 128, 64, 64, 2, 4},    // 64 low nibbles, then 64 high nibbles
    kPairs{2, 1, 32, 128, 32, 32, 4, 2},          // 32 lowest bit pairs, then 32 of the next; four times in 32 bytes
    kStrips{1, 1, 32, 256, 0, 32, 256, 1},        // 32 lowest bits, then 32 of the next; eight times in 32 bytes
    // one code per 16 values
    kGroupBytes{8, 16}, kGroupLow{4, 16}, kGroupHigh{4, 16, 256, 256, 0, 256, 256, 0, 4},
    kGroupNibbles{4, 16, 8, 256, 0, 128, 256, 4}, kGroupPairs{2, 16, 4, 256, 0, 64, 256, 2},
    // one code per 32 values: 6-bit scales and minima of Q4_K and Q5_K, eight of each in twelve bytes
    kSix{4, 32, 256, 128, 4}, kSixMinima{4, 32, 256, 256, 0, 128, 256, 4},
    kSixUpper{2, 32, 256, 128, -4, 128, 256, 2, 4};
// clang-format on
}  // namespace quant
struct QuantField {
  BitPacking packing = {};
  int at = 0, place = 0;  // first byte of the field; lowest bit of the code that it fills
};
template <class Bits>
struct QuantSum {  // low + high + bias, in 8-bit two's complement if is_signed
  Bits low = {}, high = {};
  int bias = 0;
  bool is_signed = false;
};
struct QuantInfo {
  QuantFormat format;
  std::uint32_t ggml;  // type number in GGUF files
  std::string_view name, ggml_name;
  int elements, bytes, d, d_min;  // per block; byte offsets of the f16 scales, -1 if absent
  QuantSum<QuantField> q, scale = {{}, {}, 1}, min = {};
};

// clang-format off
inline constexpr QuantInfo kQuantFormats[] = {
    {QuantFormat::Q4_0, 2,  "q4_0", "Q4_0", 32,  18,  0,   -1, {{quant::kNibbles, 2}, {}, -8}},
    {QuantFormat::Q4_1, 3,  "q4_1", "Q4_1", 32,  20,  0,   2,  {{quant::kNibbles, 4}}, {{}, {}, 1}, {{}, {}, -1}},
    {QuantFormat::Q5_0, 6,  "q5_0", "Q5_0", 32,  22,  0,   -1, {{quant::kNibbles, 6}, {quant::kBits, 2, 4}, -16}},
    {QuantFormat::Q5_1, 7,  "q5_1", "Q5_1", 32,  24,  0,   2,  {{quant::kNibbles, 8}, {quant::kBits, 4, 4}}, {{}, {}, 1}, {{}, {}, -1}},
    {QuantFormat::Q8_0, 8,  "q8_0", "Q8_0", 32,  34,  0,   -1, {{quant::kBytes, 2}, {}, 0, true}},
    {QuantFormat::Q2_K, 10, "q2_k", "Q2_K", 256, 84,  80,  82, {{quant::kPairs, 16}}, {{quant::kGroupLow}}, {{quant::kGroupHigh}}},
    {QuantFormat::Q3_K, 11, "q3_k", "Q3_K", 256, 110, 108, -1, {{quant::kPairs, 32}, {quant::kStrips, 0, 2}, -4}, {{quant::kGroupNibbles, 96}, {quant::kGroupPairs, 104, 4}, -32}},
    {QuantFormat::Q4_K, 12, "q4_k", "Q4_K", 256, 144, 0,   2,  {{quant::kWideNibbles, 16}}, {{quant::kSix, 4}, {quant::kSixUpper, 4, 4}}, {{quant::kSixMinima, 8}, {quant::kSixUpper, 8, 4}}},
    {QuantFormat::Q5_K, 13, "q5_k", "Q5_K", 256, 176, 0,   2,  {{quant::kWideNibbles, 48}, {quant::kStrips, 16, 4}}, {{quant::kSix, 4}, {quant::kSixUpper, 4, 4}}, {{quant::kSixMinima, 8}, {quant::kSixUpper, 8, 4}}},
    {QuantFormat::Q6_K, 14, "q6_k", "Q6_K", 256, 210, 208, -1, {{quant::kHalfNibbles}, {quant::kPairs, 128, 4}, -32}, {{quant::kGroupBytes, 192}, {}, 0, true}},
};
// clang-format on
constexpr const QuantInfo& info(QuantFormat f) { return kQuantFormats[static_cast<int>(f)]; }
static_assert(std::size(kQuantFormats) == static_cast<std::size_t>(QuantFormat::Q6_K) + 1);
static_assert(
    [] {
      for (int i = 0; const QuantInfo& row : kQuantFormats)
        if (static_cast<int>(row.format) != i++) return false;
      return true;
    }(),
    "one row a format, in order");

// Bit positions for value k. `I` is an integer to read a block, or a Dim to express the format as a graph.
template <class I>
struct QuantBits {  // (byte >> shift) mod 2^width, moved to bit `place`
  I byte = 0, shift = 0;
  int width = 0, place = 0;
};
template <class I>
using QuantCode = QuantSum<QuantBits<I>>;
template <class I>
struct QuantLayout {
  int d, d_min;
  QuantCode<I> q, scale, min;
};
template <class I>
QuantBits<I> quant_bits(const QuantField& f, const I& k) {
  const BitPacking& w = f.packing;
  if (w.bits == 0) return {};
  const I byte = k / I(w.values_per_step) % I(w.byte_period) + k / I(w.block_values) * I(w.block_stride);
  return {byte + I(f.at), k / I(w.values_per_shift) % I(w.shifts) * I(w.shift_step) + I(w.first_shift), w.bits,
          f.place};
}
template <class I>
QuantLayout<I> quant_layout(QuantFormat format, const I& k) {
  const auto code = [&](const QuantSum<QuantField>& c) -> QuantCode<I> {
    return {quant_bits(c.low, k), quant_bits(c.high, k), c.bias, c.is_signed};
  };
  const QuantInfo& f = info(format);
  return {f.d, f.d_min, code(f.q), code(f.scale), code(f.min)};
}

// Decodes value k of a block; `byte(i)` returns byte i.
template <class Byte>
float quant_value(QuantFormat format, std::int64_t k, const Byte& byte) {
  const QuantLayout<std::int64_t> l = quant_layout<std::int64_t>(format, k);
  const auto code = [&](const QuantCode<std::int64_t>& c) {
    const auto bits = [&](const QuantBits<std::int64_t>& b) {
      return b.width ? (static_cast<int>(byte(b.byte)) >> b.shift & ((1 << b.width) - 1)) << b.place : 0;
    };
    const int v = bits(c.low) + bits(c.high);
    return static_cast<double>((c.is_signed && v > 127 ? v - 256 : v) + c.bias);
  };
  const auto half = [&](int at) {
    return static_cast<double>(f16_to_f32(static_cast<std::uint16_t>(byte(at) | byte(at + 1) << 8)));
  };
  const double v = half(l.d) * code(l.scale) * code(l.q);
  return static_cast<float>(l.d_min < 0 ? v : v - half(l.d_min) * code(l.min));
}

}  // namespace lc
#include "lightcone/macros_on.h"
