// 8-bit floats in generated code: they are held as f32 and rounded after each operation. Rounding adds and subtracts a
// number whose last digit is that of the result, which rounds to nearest, ties to even. Below the smallest normal
// number the steps are constant, and so is that number.
#include "lightcone/codegen/c/prelude.h"

namespace lc::codegen {

std::string_view f8_functions() {
  return R"(
#ifndef LC_HAS_F8_WIDENING
LC float lc_f8_e4m3fn_to_f32(u8 b) {
  const u32 a = b & 0x7f;
  const float v = a == 0x7f ? lc_float(0x7fc00000u) : a < 8 ? (float)(int)a * 0x1p-9f : lc_float((a << 20) + 0x3c000000u);
  return lc_float(lc_bits(v) | (u32)(b & 0x80) << 24);
}
LC float lc_f8_e5m2_to_f32(u8 b) {
  const u32 a = b & 0x7f;
  const float v = a >= 0x7c ? lc_float(0x7f800000u | (a & 3) << 21) : a < 4 ? (float)(int)a * 0x1p-16f : lc_float((a << 21) + 0x38000000u);
  return lc_float(lc_bits(v) | (u32)(b & 0x80) << 24);
}
#endif
LC float lc_round_f8_e4m3fn(float v) {
  const u32 u = lc_bits(v), e = u & 0x7f800000u, low = e < 0x3c800000u ? 0x3c800000u : e, near = low > 0x46000000u ? 0x46000000u : low;
  const float big = lc_float(near + 0x0a000000u), r = (lc_float(u & 0x7fffffffu) + big) - big;
  return lc_float(lc_bits(r > 448.0f ? 448.0f : r) | (u & 0x80000000u));
}
LC float lc_round_f8_e5m2(float v) {
  const u32 u = lc_bits(v), e = u & 0x7f800000u, low = e < 0x38800000u ? 0x38800000u : e, near = low > 0x49000000u ? 0x49000000u : low;
  const float big = lc_float(near + 0x0a800000u), r = (lc_float(u & 0x7fffffffu) + big) - big;
  return lc_float(lc_bits(r > 57344.0f ? lc_float(0x7f800000u) : r) | (u & 0x80000000u));
}
// Of what was rounded.
LC u8 lc_f32_to_f8_e4m3fn(float v) {
  const u32 u = lc_bits(v), a = u & 0x7fffffffu;
  const u32 m = a > 0x7f800000u ? 0x7fu : a < 0x3c800000u ? (u32)(int)(lc_float(a) * 512.0f) : (a - 0x3c000000u) >> 20;
  return (u8)(m | (u >> 24 & 0x80));
}
LC u8 lc_f32_to_f8_e5m2(float v) {
  const u32 u = lc_bits(v), a = u & 0x7fffffffu;
  const u32 m = a > 0x7f800000u ? 0x7eu : a > 0x477fffffu ? 0x7cu : a < 0x38800000u ? (u32)(int)(lc_float(a) * 65536.0f) : (a - 0x38000000u) >> 21;
  return (u8)(m | (u >> 24 & 0x80));
}
)";
}

}  // namespace lc::codegen
