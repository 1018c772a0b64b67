// Conversions between element types round, saturate and wrap as documented, for every half and every integer type.
#include "lightcone/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace lc;

TEST(DType, EveryHalfSurvivesARoundTrip) {
  for (int h = 0; h < 65536; ++h) {
    const auto bits = static_cast<std::uint16_t>(h);
    const float v = f16_to_f32(bits);
    if (std::isnan(v)) EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(v))));
    else ASSERT_EQ(f32_to_f16(v), bits) << h;
    const float b = bf16_to_f32(bits);
    if (std::isnan(b)) EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(b))));
    else ASSERT_EQ(f32_to_bf16(b), bits) << h;
  }
}

TEST(DType, HalfRoundsToNearestEven) {
  EXPECT_EQ(f32_to_f16(65520.f), 0x7c00);     // halfway to the next: infinity
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);  // largest finite number
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);    // ties to even: zero
  EXPECT_EQ(f32_to_f16(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(f32_to_f16(1.0f + 0x3p-11f), 0x3c02);
  EXPECT_EQ(f64_to_f16(1.0 + 0x1p-11 + 0x1p-40), 0x3c01);  // one rounding, not two
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
}

TEST(DType, ConversionToIntegerNeverTraps) {
  std::int32_t i = 7;
  store_f64(&i, DType::I32, 0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(i, 0);
  store_f64(&i, DType::I32, 0, 1e300);
  EXPECT_EQ(i, std::numeric_limits<std::int32_t>::max());
  store_f64(&i, DType::I32, 0, -2.9);
  EXPECT_EQ(i, -2);
  for (const auto& [number, stored] : {std::pair{200.0, 127}, {-1e300, -128}, {-2.9, -2}, {126.9, 126}}) {
    std::int8_t narrow = 7;
    store_f64(&narrow, DType::I8, 0, number);
    EXPECT_EQ(narrow, stored) << number;
    EXPECT_EQ(load_f64(&narrow, DType::I8, 0), stored);
  }
  std::int8_t wrapped = 7;
  store_i64(&wrapped, DType::I8, 0, 200);
  EXPECT_EQ(wrapped, -56);
}

TEST(DType, EveryIntegerSaturatesAndWraps) {
  for (const DTypeInfo& t : kDTypes) {
    if (!is_integer(t.dtype)) continue;
    std::uint64_t raw = 0;
    const auto stored = [&](double v) {
      store_f64(&raw, t.dtype, 0, v);
      return load_i64(&raw, t.dtype, 0);
    };
    EXPECT_EQ(stored(1e30), t.highest) << t.name;
    EXPECT_EQ(stored(-1e30), t.lowest) << t.name;
    EXPECT_EQ(stored(std::numeric_limits<double>::infinity()), t.highest) << t.name;
    EXPECT_EQ(stored(std::numeric_limits<double>::quiet_NaN()), 0) << t.name;
    EXPECT_EQ(stored(2.9), 2) << t.name;
    EXPECT_EQ(stored(-0.9), 0) << t.name;
    EXPECT_EQ(stored(-2.9), t.lowest < 0 ? -2 : 0) << t.name;
    store_i64(&raw, t.dtype, 0, -1);
    EXPECT_EQ(load_i64(&raw, t.dtype, 0), t.lowest < 0 ? -1 : t.highest) << t.name;
    EXPECT_EQ(load_f64(&raw, t.dtype, 0), t.lowest < 0 ? -1.0 : std::exp2(8 * t.bytes) - (t.bytes < 8)) << t.name;
    store_i64(&raw, t.dtype, 0, t.highest);
    EXPECT_EQ(load_f64(&raw, t.dtype, 0), to_f64(t.highest, t.dtype)) << t.name;
    EXPECT_EQ(size_of(unsigned_of(t.dtype)), t.bytes);
    EXPECT_TRUE(is_unsigned(unsigned_of(t.dtype)));
  }
  std::uint64_t large = 0;
  store_f64(&large, DType::U64, 0, 0x1p63 + 0x1p12);
  EXPECT_EQ(large, (1ull << 63) + 4096);
}

TEST(DType, BitsOfElements) {
  EXPECT_EQ(bitcast({.f = 1}, DType::F32, DType::I32).i, 0x3f800000);
  EXPECT_EQ(bitcast({.f = -0.0}, DType::F64, DType::U64).i, INT64_MIN);
  EXPECT_EQ(bitcast({.i = 0xc000}, DType::U16, DType::F16).f, -2);
  EXPECT_EQ(bitcast({.i = -16384}, DType::I16, DType::BF16).f, -2);
  EXPECT_EQ(bitcast({.i = -1}, DType::I8, DType::U8).i, 255);
}
