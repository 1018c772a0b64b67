// ggml's block formats as data: where the bits of value k of a block lie.
//
//   value(k) = d * scale(k) * q(k) - d_min * min(k), rounded to f32 once
//
// d and d_min are f16, the codes small integers. `I` is a number to read a block with, or a Dim to
// write the format as a graph; the reference, the definition in the twelve and the tests of every
// kernel come from this one table.
#pragma once

#include <cmath>
#include <cstdint>

#include "lightcone/core/dtype.h"
#include "lightcone/core/error.h"
#include "lightcone/core/op.h"

namespace lc {

template <class I>
struct QuantBits {  // (byte >> shift) mod 2^width, moved to bit `place`
  I byte = 0, shift = 0;
  int width = 0, place = 0;
};
template <class I>
struct QuantCode {  // the sum of its bits and the bias; two's complement of eight bits if is_signed
  QuantBits<I> low = {}, high = {};
  int bias = 0;
  bool is_signed = false;
};
template <class I>
struct QuantLayout {
  int d, d_min;  // bytes where the f16 scales begin; -1: there is none
  QuantCode<I> q, scale = {{}, {}, 1}, min = {};
};

template <class I>
QuantLayout<I> quant_layout(QuantFormat format, const I& k) {
  using Bits = QuantBits<I>;
  using Code = QuantCode<I>;
  const auto n = [](int v) { return I(v); };
  const I i = k / n(16), j = k / n(32), l = k % n(32), upper = k / n(128), half = k % n(128) / n(64);
  // small blocks: 16 low nibbles, then 16 high ones; perhaps a fifth bit each in four bytes
  const auto nibble = [&](int at) { return Bits{k % n(16) + n(at), i * n(4), 4, 0}; };
  const auto fifth = [&](int at) { return Bits{k / n(8) + n(at), k % n(8), 1, 4}; };
  // large blocks: 64 nibbles in 32 bytes; 128 codes of two bits in 32 bytes
  const auto big_nibble = [&](int at) { return Bits{k / n(64) * n(32) + l + n(at), j % n(2) * n(4), 4, 0}; };
  const auto pair = [&](int at, int place) { return Bits{upper * n(32) + l + n(at), j % n(4) * n(2), 2, place}; };
  // the six-bit scales and minima of Q4_K and Q5_K: eight of each in twelve bytes
  const Bits upper_scale{j + n(4) - upper * n(4), upper * n(2) + n(4), 2, 4};
  const Bits upper_min{j + n(8) - upper * n(4), upper * n(2) + n(4), 2, 4};
  const Code scale6{{j + n(4) + upper * n(4), 0, 4, 0}, upper_scale}, min6{{j + n(8), upper * n(4), 4, 0}, upper_min};
  const Bits low6{upper * n(64) + k % n(64), half * n(4), 4, 0};
  const Code scale3{{i % n(8) + n(96), i / n(8) * n(4), 4, 0}, {i % n(4) + n(104), i / n(4) * n(2), 2, 4}, -32};
  const Code one{{}, {}, 1}, minus_one{{}, {}, -1};
  // clang-format off
  switch (format) {
    case QuantFormat::Q4_0: return {0, -1, {nibble(2), {}, -8}};
    case QuantFormat::Q4_1: return {0, 2, {nibble(4)}, one, minus_one};
    case QuantFormat::Q5_0: return {0, -1, {nibble(6), fifth(2), -16}};
    case QuantFormat::Q5_1: return {0, 2, {nibble(8), fifth(4)}, one, minus_one};
    case QuantFormat::Q8_0: return {0, -1, {{k + n(2), 0, 8, 0}, {}, 0, true}};
    case QuantFormat::Q2_K: return {80, 82, {pair(16, 0)}, {{i, 0, 4, 0}}, {{i, 4, 4, 0}}};
    case QuantFormat::Q3_K: return {108, -1, {pair(32, 0), {l, j, 1, 2}, -4}, scale3};
    case QuantFormat::Q4_K: return {0, 2, {big_nibble(16)}, scale6, min6};
    case QuantFormat::Q5_K: return {0, 2, {big_nibble(48), {l + n(16), j, 1, 4}}, scale6, min6};
    case QuantFormat::Q6_K: return {208, -1, {low6, pair(128, 4), -32}, {{i + n(192), 0, 8, 0}, {}, 0, true}};
  }
  // clang-format on
  throw Error("dequantize", "no such block format");
}

// Value k of a block; `byte(i)` gives its bytes.
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
