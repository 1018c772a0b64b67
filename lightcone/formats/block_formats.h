// ggml's block formats in one table: number, names, sizes and bit positions of value k in a block.
//
//   value(k) = d * scale(k) * q(k) / 2^shift - d_min * min(k), rounded to f32 once
//
// q is a small integer: the code itself, or what a codebook has for it. Everything that reads blocks derives from this
// table: the reference, the composite's definition, the checkpoint readers, the weights of products (weight_type.h) and
// the text of GPU kernels. A back end may add faster code for a format, and needs none.
#pragma once

#include "lightcone/macros_off.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "lightcone/core/dtype.h"
#include "lightcone/formats/block_grids.h"

namespace lc {

// clang-format off
enum class QuantFormat : std::uint8_t {
  Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_1, Q8_K, Q1_0, Q2_0, TQ1_0, TQ2_0, IQ4_NL, IQ4_XS,
  MXFP4, NVFP4, IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S
};
// clang-format on

// Bit position of code k, which is `bits` bits:
//   byte  = k / values_per_step % byte_period + k / block_values * block_stride
//   shift = k / values_per_shift % shifts * shift_step + first_shift
// A shift of eight or more reaches into the bytes that follow. With `trits`, the code is a ternary digit, and bits
// is 8.
struct BitPacking {
  int bits = 0, values_per_step = 1, byte_period = 256, block_values = 256, block_stride = 0;
  int values_per_shift = 256, shifts = 256, shift_step = 0, first_shift = 0;
  bool trits = false;
  constexpr bool one_byte() const {
    return (std::min(shifts, 256 / values_per_shift) - 1) * shift_step + first_shift + bits <= 8;
  }
};
namespace quant {
// clang-format off
inline constexpr BitPacking
    kBytes{8},                                    // one byte per code
    kNibbles{4, 1, 16, 256, 0, 16, 256, 4},       // 16 low nibbles, then 16 high nibbles
    kBits{1, 8, 256, 256, 0, 1, 8, 1},            // consecutive bits
    kBitPairs{2, 4, 256, 256, 0, 1, 4, 2},        // consecutive bit pairs
    kTrits{8, 1, 256, 256, 0, 1, 5, 1, 0, true},  // five ternary digits in a byte, 32 bytes, 16 and 4 at a time
    kWideNibbles{4, 1, 32, 64, 32, 32, 2, 4},     // 32 low nibbles, then 32 high nibbles
    kHalfNibbles{4, 1, 64, 128, 64, 64, 2, 4},    // 64 low nibbles, then 64 high nibbles
    kNibbles16{4, 1, 16, 32, 16, 16, 2, 4},       // kNibbles for every 32 values
    kNibbles8{4, 1, 8, 16, 8, 8, 2, 4},           // eight low nibbles, then eight high nibbles
    kPairs{2, 1, 32, 128, 32, 32, 4, 2},          // 32 lowest bit pairs, then 32 of the next; four times in 32 bytes
    kStrips{1, 1, 32, 256, 0, 32, 256, 1},        // 32 lowest bits, then 32 of the next; eight times in 32 bytes
    // one code per 16 values
    kGroupBytes{8, 16}, kGroupLow{4, 16}, kGroupHigh{4, 16, 256, 256, 0, 256, 256, 0, 4},
    kGroupNibbles{4, 16, 8, 256, 0, 128, 256, 4}, kGroupPairs{2, 16, 4, 256, 0, 64, 256, 2},
    kPairOfNibbles{4, 32, 256, 256, 0, 16, 2, 4},
    // one code per 32 values: 6-bit scales and minima of Q4_K and Q5_K, eight of each in twelve bytes
    kSix{4, 32, 256, 128, 4}, kSixMinima{4, 32, 256, 256, 0, 128, 256, 4},
    kSixUpper{2, 32, 256, 128, -4, 128, 256, 2, 4},
    kNibblePer32{4, 64, 256, 256, 0, 32, 2, 4}, kBitPairPer32{2, 128, 256, 256, 0, 32, 4, 2},
    // one code per eight or four values: entries of grids, and their signs
    kEights{8, 8}, kFours{8, 4}, kEightsOfWords{8, 8, 4, 32, 8}, kEightsOfPairs{8, 256, 256, 8, 2},
    kNinthBit{1, 256, 256, 8, 2}, kSignsOfPairs{7, 256, 256, 8, 2, 256, 256, 0, 1},
    kUpperPairs{2, 32, 256, 256, 0, 8, 4, 2}, kUpperBits{1, 32, 256, 256, 0, 4, 8, 1};
// The upper bits of four entries, four groups of signs, or the one scale of 32 values, in words of `bytes` bytes.
constexpr BitPacking in_words(int bytes, int bits, int per_shift, int shift_step, int first_shift = 0) {
  return {bits, 256, 256, 32, bytes, per_shift, 4, shift_step, first_shift};
}
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
// How d is stored. The exponent byte of E8M0 stands for 2^(e - 128), half of what OCP's MX formats define, because the
// codes are doubled. Nibbles: the upper nibbles of four 16-bit words are an f16.
enum class QuantScale : std::uint8_t { F16, F32, E8M0, Nibbles, None };
// What a format has beyond bit fields.
struct QuantMore {
  QuantScale d = QuantScale::F16;
  QuantBook book = {};
  // With a grid, per eight values: eight bits, the signs; seven, the signs of which the last makes their number even;
  // one bit, a shift of all numbers by one, down if it is set.
  QuantField signs = {};
  int shift = 0;
  bool float_scale = false;  // the scale is an unsigned 8-bit float, E4M3, halved as E8M0 is; 0x7f stands for 0
};
struct QuantInfo {
  QuantFormat format;
  std::uint32_t ggml;  // type number in GGUF files
  std::string_view name, ggml_name;
  int elements, bytes, d, d_min;  // per block; byte offsets of d and d_min, -1 if absent
  QuantSum<QuantField> q, scale = {{}, {}, 1}, min = {};
  QuantMore more = {};
  // Values that share a scale: 16 or more.
  constexpr int scaled() const {
    const BitPacking &low = scale.low.packing, &high = scale.high.packing;
    if (low.bits == 0) return elements;
    const auto least = [](const BitPacking& p) {
      int n = p.values_per_step < p.block_values ? p.values_per_step : p.block_values;
      return p.shift_step && p.values_per_shift < n ? p.values_per_shift : n;
    };
    return high.bits && least(high) < least(low) ? least(high) : least(low);
  }
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
    {QuantFormat::Q8_1, 9,  "q8_1", "Q8_1", 32,  36,  0,   -1, {{quant::kBytes, 4}, {}, 0, true}},
    {QuantFormat::Q8_K, 15, "q8_k", "Q8_K", 256, 292, 0,   -1, {{quant::kBytes, 4}, {}, 0, true}, {{}, {}, 1}, {}, {QuantScale::F32}},
    {QuantFormat::Q1_0, 41, "q1_0", "Q1_0", 128, 18,  0,   -1, {{quant::kBits, 2, 1}, {}, -1}},
    {QuantFormat::Q2_0, 42, "q2_0", "Q2_0", 64,  18,  0,   -1, {{quant::kBitPairs, 2}, {}, -1}},
    {QuantFormat::TQ1_0, 34, "tq1_0", "TQ1_0", 256, 54, 52, -1, {{quant::kTrits}, {}, -1}},
    {QuantFormat::TQ2_0, 35, "tq2_0", "TQ2_0", 256, 66, 64, -1, {{quant::kPairs}, {}, -1}},
    {QuantFormat::IQ4_NL, 20, "iq4_nl", "IQ4_NL", 32, 18, 0, -1, {{quant::kNibbles, 2}}, {{}, {}, 1}, {}, {QuantScale::F16, quant::kIq4}},
    {QuantFormat::IQ4_XS, 23, "iq4_xs", "IQ4_XS", 256, 136, 0, -1, {{quant::kNibbles16, 8}}, {{quant::kNibblePer32, 4}, {quant::kBitPairPer32, 2, 4}, -32}, {}, {QuantScale::F16, quant::kIq4}},
    {QuantFormat::MXFP4, 39, "mxfp4", "MXFP4", 32, 17, 0, -1, {{quant::kNibbles, 1}}, {{}, {}, 1}, {}, {QuantScale::E8M0, quant::kFp4}},
    {QuantFormat::NVFP4, 40, "nvfp4", "NVFP4", 64, 36, -1, -1, {{quant::kNibbles8, 4}}, {{quant::kGroupBytes}}, {}, {QuantScale::None, quant::kFp4, {}, 0, true}},
    {QuantFormat::IQ1_S, 19, "iq1_s", "IQ1_S", 256, 50, 0, -1, {{quant::kEights, 2}, {quant::in_words(2, 3, 8, 3), 34, 8}}, {{quant::in_words(2, 3, 256, 0, 12), 34, 1}, {}, 1}, {}, {QuantScale::F16, quant::kIq1, {quant::in_words(2, 1, 256, 0, 15), 34}, 3}},
    {QuantFormat::IQ1_M, 29, "iq1_m", "IQ1_M", 256, 56, 48, -1, {{quant::kEights}, {{3, 16, 256, 256, 0, 8, 2, 4}, 32, 8}}, {{{3, 256, 256, 64, 2, 16, 4, 3}, 48, 1}, {}, 1}, {}, {QuantScale::Nibbles, quant::kIq1, {{1, 16, 256, 256, 0, 8, 2, 4, 3}, 32}, 3}},
    {QuantFormat::IQ2_XXS, 16, "iq2_xxs", "IQ2_XXS", 256, 66, 0, -1, {{quant::kEightsOfWords, 2}}, {{quant::in_words(8, 4, 256, 0, 28), 6, 1}, {}, 1}, {}, {QuantScale::F16, quant::kIq2Xxs, {quant::in_words(8, 7, 8, 7), 6}, 3}},
    {QuantFormat::IQ2_XS, 17, "iq2_xs", "IQ2_XS", 256, 74, 0, -1, {{quant::kEightsOfPairs, 2}, {quant::kNinthBit, 3, 8}}, {{quant::kPairOfNibbles, 66, 1}, {}, 1}, {}, {QuantScale::F16, quant::kIq2Xs, {quant::kSignsOfPairs, 3}, 3}},
    {QuantFormat::IQ2_S, 22, "iq2_s", "IQ2_S", 256, 82, 0, -1, {{quant::kEights, 2}, {quant::kUpperPairs, 66, 8}}, {{quant::kPairOfNibbles, 74, 1}, {}, 1}, {}, {QuantScale::F16, quant::kIq2S, {quant::kEights, 34}, 3}},
    {QuantFormat::IQ3_XXS, 18, "iq3_xxs", "IQ3_XXS", 256, 98, 0, -1, {{quant::kFours, 2}}, {{quant::in_words(4, 4, 256, 0, 28), 66, 1}, {}, 1}, {}, {QuantScale::F16, quant::kIq3Xxs, {quant::in_words(4, 7, 8, 7), 66}, 2}},
    {QuantFormat::IQ3_S, 21, "iq3_s", "IQ3_S", 256, 110, 0, -1, {{quant::kFours, 2}, {quant::kUpperBits, 66, 8}}, {{quant::kNibblePer32, 106, 1}, {}, 1}, {}, {QuantScale::F16, quant::kIq3S, {quant::kEights, 74}, 0}},
};
// clang-format on
constexpr const QuantInfo& info(QuantFormat f) { return kQuantFormats[static_cast<int>(f)]; }
static_assert(
    [] {
      for (int i = 0; const QuantInfo& row : kQuantFormats)
        if (static_cast<int>(row.format) != i++) return false;
      return true;
    }(),
    "one row a format, in order");

// Bit positions for value k. `I` is an integer to read a block, or a Dim to express the format as a graph.
template <class I>
struct QuantBits {  // width bits above `shift`, which counts from `byte`, moved to bit `place`
  I byte = 0, shift = 0;
  int width = 0, place = 0;
  bool one_byte = true, trits = false;  // trits: digit `shift` of the ternary number byte / 256
};
template <class I>
using QuantCode = QuantSum<QuantBits<I>>;
template <class I>
struct QuantLayout {
  QuantCode<I> q, scale, min;
  QuantBits<I> signs;
};
template <class I>
QuantBits<I> quant_bits(const QuantField& f, const I& k) {
  const BitPacking& w = f.packing;
  if (w.bits == 0) return {};
  if (w.trits) {  // 160 values in 32 bytes, 80 in 16, 16 in 4
    const I first = I(1) - k / I(160), last = k / I(240), middle = I(1) - first - last;
    return {I(f.at) + first * (k % I(32)) + middle * (k % I(16) + I(32)) + last * (k % I(4) + I(48)),
            first * (k / I(32)) + middle * (k / I(16) - I(10)) + last * (k / I(4) - I(60)),
            w.bits,
            f.place,
            true,
            true};
  }
  const I byte = k / I(w.values_per_step) % I(w.byte_period) + k / I(w.block_values) * I(w.block_stride);
  return {byte + I(f.at), k / I(w.values_per_shift) % I(w.shifts) * I(w.shift_step) + I(w.first_shift), w.bits, f.place,
          w.one_byte()};
}
template <class I>
QuantLayout<I> quant_layout(const QuantInfo& f, const I& k) {
  const auto code = [&](const QuantSum<QuantField>& c) -> QuantCode<I> {
    return {quant_bits(c.low, k), quant_bits(c.high, k), c.bias, c.is_signed};
  };
  return {code(f.q), code(f.scale), code(f.min), quant_bits(f.more.signs, k)};
}

// The functions below read a block; `byte(i)` returns byte i.
template <class I, class Byte>
int quant_read(const QuantBits<I>& b, const Byte& byte) {
  if (b.width == 0) return 0;
  if (b.trits) {
    int x = byte(b.byte);
    for (I n = 0; n < b.shift; ++n) x *= 3;
    return (x & 255) * 3 >> 8;
  }
  int word = byte(b.byte + b.shift / 8);
  if (!b.one_byte) word |= byte(b.byte + (b.shift + b.width - 1) / 8) << 8;
  return (word >> b.shift % 8 & ((1 << b.width) - 1)) << b.place;
}
template <class I, class Byte>
int quant_read(const QuantCode<I>& c, const Byte& byte) {
  const int v = quant_read(c.low, byte) + quant_read(c.high, byte);
  return (c.is_signed && v > 127 ? v - 256 : v) + c.bias;
}
template <class Byte>
double quant_d(const QuantInfo& f, int at, const Byte& byte) {
  std::uint32_t bits = 0;
  switch (f.more.d) {
    case QuantScale::None: return 1;
    case QuantScale::E8M0:
      bits = static_cast<std::uint32_t>(byte(at));
      return std::bit_cast<float>(bits < 2 ? std::uint32_t{1} << (21 + bits) : (bits - 1) << 23);
    case QuantScale::F32:
      for (int i = 0; i < 4; ++i) bits |= static_cast<std::uint32_t>(byte(at + i)) << (8 * i);
      return std::bit_cast<float>(bits);
    case QuantScale::Nibbles:
      for (int i = 0; i < 4; ++i) bits |= static_cast<std::uint32_t>(byte(at + 2 * i + 1) >> 4) << (4 * i);
      return f16_to_f32(static_cast<std::uint16_t>(bits));
    case QuantScale::F16: break;
  }
  return f16_to_f32(static_cast<std::uint16_t>(byte(at) | byte(at + 1) << 8));
}
// The 8-bit float of NVFP4's scales, halved.
constexpr double quant_float_scale(int code) {
  if (code == 0x7f) return 0;
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  double v = exponent ? 8 + mantissa : mantissa;
  for (int e = exponent ? exponent : 1; e < 11; ++e) v /= 2;
  for (int e = exponent; e > 11; --e) v *= 2;
  return v;
}
// The factor of the numbers q(k): d * scale(k) / 2^shift.
template <class Byte>
double quant_scale(const QuantInfo& f, std::int64_t k, const Byte& byte) {
  const int code = quant_read(quant_layout<std::int64_t>(f, k).scale, byte);
  const double scale = f.more.float_scale ? quant_float_scale(code) : code;
  return quant_d(f, f.d, byte) * scale / (1 << f.more.shift);
}
template <class Byte>
int quant_number(const QuantInfo& f, std::int64_t k, const Byte& byte) {
  const QuantLayout<std::int64_t> l = quant_layout<std::int64_t>(f, k);
  const int code = quant_read(l.q, byte);
  if (f.more.book.width == 0) return code;
  const int v = f.more.book.number(code, static_cast<int>(k));
  const int signs = quant_read(l.signs, byte), lane = static_cast<int>(k % 8);
  if (l.signs.width == 1) return v + 1 - 2 * signs;
  const bool negative = lane < l.signs.width ? signs >> lane & 1 : std::popcount(static_cast<unsigned>(signs)) & 1;
  return l.signs.width && negative ? -v : v;
}
// Decodes value k of a block.
template <class Byte>
float quant_value(QuantFormat format, std::int64_t k, const Byte& byte) {
  const QuantInfo& f = info(format);
  const double v = quant_scale(f, k, byte) * quant_number(f, k, byte);
  if (f.d_min < 0) return static_cast<float>(v);
  return static_cast<float>(v - quant_d(f, f.d_min, byte) * quant_read(quant_layout<std::int64_t>(f, k).min, byte));
}
// Sets d and d_min of a block to about `size` (E8M0: to a power of two). put(i, byte) writes byte i. The 8-bit scales
// of a format without d are set to it instead.
template <class Put>
void put_quant_scales(QuantFormat format, double size, const Put& put) {
  const QuantInfo& f = info(format);
  const std::uint16_t half = f64_to_f16(size);
  const std::uint32_t full = std::bit_cast<std::uint32_t>(static_cast<float>(size));
  switch (f.more.d) {
    case QuantScale::E8M0: return put(f.d, std::clamp(std::ilogb(size) + 128, 0, 255));
    case QuantScale::F32:
      for (int i = 0; i < 4; ++i) put(f.d + i, static_cast<int>(full >> 8 * i & 255));
      return;
    case QuantScale::Nibbles:
      for (int i = 0; i < 4; ++i) put(f.d + 2 * i + 1, half >> 4 * i << 4 & 0xf0);  // loses a part of the scales
      return;
    case QuantScale::None:
      for (int i = 0; i < f.elements / 16; ++i)
        put(f.scale.low.at + i, f64_to_f8(std::min(2 * size, 448.0), DType::F8E4M3FN));
      return;
    case QuantScale::F16: break;
  }
  for (const int at : {f.d, f.d_min})
    if (at >= 0) put(at, half & 255), put(at + 1, half >> 8);
}

}  // namespace lc
#include "lightcone/macros_on.h"
