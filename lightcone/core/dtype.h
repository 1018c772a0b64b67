// DType: the element types, described by one table.
#pragma once

#include "lightcone/macros_off.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lc {

enum class DType : std::uint8_t { F32, F64, F16, BF16, F8E4M3FN, F8E5M2, I8, I16, I32, I64, U8, U16, U32, U64, Bool };

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // PyTorch's short name
  std::uint8_t bytes;
  bool is_float;
  std::string_view c;            // C spelling of the storage type
  std::int64_t lowest, highest;  // range of an integer; U64's highest as a bit pattern
  // For floats: significant bits, exponent of the smallest normal number, largest finite number.
  int digits = 0, least_exponent = 0;
  double largest = 0;
};

// clang-format off
inline constexpr DTypeInfo kDTypes[] = {
  {DType::F32,      "f32",       4, true,  "float",          0,         0,         24, -126,  0x1.fffffep127},
  {DType::F64,      "f64",       8, true,  "double",         0,         0,         53, -1022, 0x1.fffffffffffffp1023},
  {DType::F16,      "f16",       2, true,  "unsigned short", 0,         0,         11, -14,   65504},
  {DType::BF16,     "bf16",      2, true,  "unsigned short", 0,         0,         8,  -126,  0x1.fep127},
  {DType::F8E4M3FN, "f8_e4m3fn", 1, true,  "unsigned char",  0,         0,         4,  -6,    448},
  {DType::F8E5M2,   "f8_e5m2",   1, true,  "unsigned char",  0,         0,         3,  -14,   57344},
  {DType::I8,       "i8",        1, false, "signed char",    INT8_MIN,  INT8_MAX},
  {DType::I16,      "i16",       2, false, "short",          INT16_MIN, INT16_MAX},
  {DType::I32,      "i32",       4, false, "int",            INT32_MIN, INT32_MAX},
  {DType::I64,      "i64",       8, false, "long",           INT64_MIN, INT64_MAX},
  {DType::U8,       "u8",        1, false, "unsigned char",  0,         UINT8_MAX},
  {DType::U16,      "u16",       2, false, "unsigned short", 0,         UINT16_MAX},
  {DType::U32,      "u32",       4, false, "unsigned int",   0,         UINT32_MAX},
  {DType::U64,      "u64",       8, false, "unsigned long",  0,         -1},
  {DType::Bool,     "bool",      1, false, "unsigned char",  0,         1},
};
// clang-format on

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<int>(t)]; }
constexpr std::string_view name(DType t) { return info(t).name; }
constexpr std::size_t size_of(DType t) { return info(t).bytes; }
constexpr bool is_float(DType t) { return info(t).is_float; }
constexpr bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }
constexpr bool is_f8(DType t) { return is_float(t) && size_of(t) == 1; }
constexpr bool is_narrow(DType t) { return is_half(t) || is_f8(t); }  // computed in f32 and rounded
constexpr bool is_integer(DType t) { return !is_float(t) && t != DType::Bool; }
constexpr bool is_unsigned(DType t) { return is_integer(t) && info(t).lowest == 0; }
constexpr DType unsigned_of(DType t) {  // the unsigned type of the same size
  return size_of(t) == 1 ? DType::U8 : size_of(t) == 2 ? DType::U16 : size_of(t) == 4 ? DType::U32 : DType::U64;
}

// IEEE binary16 and bfloat16, stored as 16 bits. Conversion rounds to nearest, ties to even; NaN stays NaN, overflow
// gives infinity, subnormals are kept.
float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);
std::uint16_t f64_to_f16(double value);  // rounds once
constexpr float bf16_to_f32(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
std::uint16_t f32_to_bf16(float value);

// The 8-bit floats of the OCP specification "8-bit Floating Point" (2023), PyTorch's float8_e4m3fn and float8_e5m2.
// E4M3FN has no infinities: overflow saturates to 448, as in PyTorch, and there is one NaN per sign.
float f8_to_f32(std::uint8_t bits, DType t);
std::uint8_t f64_to_f8(double value, DType t);

struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  explicit f16(float v) : bits(f32_to_f16(v)) {}
  explicit operator float() const { return f16_to_f32(bits); }
};
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float v) : bits(f32_to_bf16(v)) {}
  explicit operator float() const { return bf16_to_f32(bits); }
};

template <class T>
struct dtype_of;
// clang-format off
template <> struct dtype_of<float> { static constexpr DType value = DType::F32; };
template <> struct dtype_of<double> { static constexpr DType value = DType::F64; };
template <> struct dtype_of<f16> { static constexpr DType value = DType::F16; };
template <> struct dtype_of<bf16> { static constexpr DType value = DType::BF16; };
template <> struct dtype_of<std::int8_t> { static constexpr DType value = DType::I8; };
template <> struct dtype_of<std::int16_t> { static constexpr DType value = DType::I16; };
template <> struct dtype_of<std::int32_t> { static constexpr DType value = DType::I32; };
template <> struct dtype_of<std::int64_t> { static constexpr DType value = DType::I64; };
template <> struct dtype_of<std::uint8_t> { static constexpr DType value = DType::U8; };
template <> struct dtype_of<std::uint16_t> { static constexpr DType value = DType::U16; };
template <> struct dtype_of<std::uint32_t> { static constexpr DType value = DType::U32; };
template <> struct dtype_of<std::uint64_t> { static constexpr DType value = DType::U64; };
template <> struct dtype_of<bool> { static constexpr DType value = DType::Bool; };
// clang-format on

// Reads or writes element `i` of a buffer. The I64 pair is exact for integers (U64 as its bits), the F64 pair for
// floats. A float converts to an integer with saturation, NaN to 0, where a C cast is undefined; to bool by `!= 0`.
// Integers wrap in narrower types.
double load_f64(const void* data, DType t, std::size_t i);
std::int64_t load_i64(const void* data, DType t, std::size_t i);
void store_f64(void* data, DType t, std::size_t i, double value);
void store_i64(void* data, DType t, std::size_t i, std::int64_t value);

// The number that `value` represents in an integer type: above 2^63 - 1 for some U64 bit patterns.
constexpr double to_f64(std::int64_t value, DType t) {
  return t == DType::U64 ? static_cast<double>(static_cast<std::uint64_t>(value)) : static_cast<double>(value);
}

// An element in an evaluator: `f` holds a float, `i` an integer.
struct Element {
  double f = 0;
  std::int64_t i = 0;
};
Element bitcast(const Element& e, DType from, DType to);  // reinterprets the bits; both types have the same size

}  // namespace lc
#include "lightcone/macros_on.h"
