// Conversions of narrow floats. This file is part of the library of micro-kernels, which link nothing else of core.
#include "lightcone/core/narrow_floats.h"

#include <algorithm>
#include <cmath>

#include "lightcone/core/dtype.h"

namespace lc {

std::uint16_t narrow(double v, int mantissa, int emin, int emax, int bias) {
  const std::uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  const std::uint16_t inf = static_cast<std::uint16_t>((emax + bias + 1) << mantissa);
  if (std::isnan(v)) return static_cast<std::uint16_t>(sign | inf | (1u << (mantissa - 1)));
  v = std::fabs(v);
  if (v == 0) return sign;
  if (std::isinf(v)) return static_cast<std::uint16_t>(sign | inf);
  const int e = std::max(std::ilogb(v), emin);
  // nearbyint rounds to nearest even; a carry into the next power of two increments the exponent
  const double units = std::nearbyint(std::scalbn(v, mantissa - e));
  if (e > emax) return static_cast<std::uint16_t>(sign | inf);
  const auto base = static_cast<std::uint32_t>(e + bias - 1) << mantissa;  // exponent field - 1
  const auto bits = static_cast<std::uint32_t>(units) + base;
  return static_cast<std::uint16_t>(sign | (bits >= inf ? inf : bits));
}

float f16_to_f32(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000) << 16;
  const std::uint32_t exponent = (h >> 10) & 31, mantissa = h & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float v = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -v : v;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t f64_to_f16(double v) { return narrow(v, 10, -14, 15, 15); }
std::uint16_t f32_to_f16(float v) { return f64_to_f16(v); }

std::uint16_t f32_to_bf16(float v) {
  const auto u = std::bit_cast<std::uint32_t>(v);
  if (std::isnan(v)) return static_cast<std::uint16_t>((u >> 16) | 0x40);
  return static_cast<std::uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

// Both formats convert through f16: E5M2 is its upper half; E4M3FN has bias 7 instead of 15.
float f8_to_f32(std::uint8_t b, DType t) {
  if (t == DType::F8E5M2) return f16_to_f32(static_cast<std::uint16_t>(b << 8));
  if ((b & 0x7f) == 0x7f) return std::copysign(NAN, b == 0x7f ? 1.0f : -1.0f);
  return f16_to_f32(static_cast<std::uint16_t>((b & 0x80) << 8 | (b & 0x7f) << 7)) * 256;
}

std::uint8_t f64_to_f8(double v, DType t) {
  const unsigned bits = t == DType::F8E5M2 ? narrow(v, 2, -14, 15, 15) : narrow(v, 3, -6, 8, 7);
  const unsigned most = t == DType::F8E5M2 || std::isnan(v) ? 0x7f : 0x7e;
  return static_cast<std::uint8_t>((bits >> 8 & 0x80) | std::min(bits & 0x7fff, most));
}

}  // namespace lc
