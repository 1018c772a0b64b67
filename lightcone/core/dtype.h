// Element types, in one table.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lc {

enum class DType : std::uint8_t { F32, F64, F16, BF16, I8, I32, I64, U8, Bool };

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // PyTorch's short name
  std::uint8_t bytes;
  bool is_float;
  std::string_view c;            // C spelling of the stored type
  std::int64_t lowest, highest;  // of an integer
};

// clang-format off
inline constexpr DTypeInfo kDTypes[] = {
  {DType::F32,  "f32",  4, true,  "float",          0,         0},
  {DType::F64,  "f64",  8, true,  "double",         0,         0},
  {DType::F16,  "f16",  2, true,  "unsigned short", 0,         0},
  {DType::BF16, "bf16", 2, true,  "unsigned short", 0,         0},
  {DType::I8,   "i8",   1, false, "signed char",    INT8_MIN,  INT8_MAX},
  {DType::I32,  "i32",  4, false, "int",            INT32_MIN, INT32_MAX},
  {DType::I64,  "i64",  8, false, "long",           INT64_MIN, INT64_MAX},
  {DType::U8,   "u8",   1, false, "unsigned char",  0,         UINT8_MAX},
  {DType::Bool, "bool", 1, false, "unsigned char",  0,         1},
};
// clang-format on

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<int>(t)]; }
constexpr std::string_view name(DType t) { return info(t).name; }
constexpr std::size_t size_of(DType t) { return info(t).bytes; }
constexpr bool is_float(DType t) { return info(t).is_float; }
constexpr bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }

// IEEE binary16 and bfloat16, stored as their 16 bits. Rounding is to nearest, ties to even; NaN
// stays NaN, overflow becomes infinity, subnormals are kept.
float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);
std::uint16_t f64_to_f16(double value);  // one rounding, not two
constexpr float bf16_to_f32(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
std::uint16_t f32_to_bf16(float value);

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
template <> struct dtype_of<std::int32_t> { static constexpr DType value = DType::I32; };
template <> struct dtype_of<std::int64_t> { static constexpr DType value = DType::I64; };
template <> struct dtype_of<std::uint8_t> { static constexpr DType value = DType::U8; };
template <> struct dtype_of<bool> { static constexpr DType value = DType::Bool; };
// clang-format on

// Reads or writes element `i` of a buffer. Integers are exact through the I64 pair, floats
// through the F64 pair. Conversion to an integer saturates and maps NaN to 0, as no C cast may be
// relied on to do; conversion to bool is `!= 0`.
double load_f64(const void* data, DType t, std::size_t i);
std::int64_t load_i64(const void* data, DType t, std::size_t i);
void store_f64(void* data, DType t, std::size_t i, double value);
void store_i64(void* data, DType t, std::size_t i, std::int64_t value);

}  // namespace lc
