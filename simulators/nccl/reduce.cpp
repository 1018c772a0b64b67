// Sums, products, maxima and minima of NCCL's types.
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "types.h"

namespace lc::simulators::nccl {
namespace {

float from_f16(std::uint16_t h) {
  const int e = h >> 10 & 31, m = h & 1023;
  const float v = e == 0    ? std::ldexp(static_cast<float>(m), -24)
                  : e == 31 ? (m ? std::nanf("") : INFINITY)
                            : std::ldexp(static_cast<float>(1024 + m), e - 25);
  return h & 0x8000 ? -v : v;
}
std::uint16_t to_f16(float v) {
  std::uint32_t b = std::bit_cast<std::uint32_t>(v);
  const std::uint32_t sign = b >> 16 & 0x8000;
  b &= 0x7fffffff;
  std::uint32_t h = (b + 0xfff + (b >> 13 & 1) - 0x38000000) >> 13;
  if (b > 0x7f800000) h = 0x7e00;
  else if (b >= 0x477ff000) h = 0x7c00;  // 65520 and above
  else if (b < 0x38800000) h = static_cast<std::uint32_t>(std::nearbyint(std::bit_cast<float>(b) * 0x1p24f));
  return static_cast<std::uint16_t>(sign | h);
}
float from_bf16(std::uint16_t h) { return std::bit_cast<float>(std::uint32_t{h} << 16); }
std::uint16_t to_bf16(float v) {
  if (std::isnan(v)) return 0x7fff;
  const std::uint32_t b = std::bit_cast<std::uint32_t>(v);
  return static_cast<std::uint16_t>((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

template <class T>
T one(int reduction, T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (reduction >= kMax && (std::isnan(a) || std::isnan(b))) return std::isnan(a) ? a : b;
  switch (reduction) {
    case kSum: return static_cast<T>(a + b);
    case kProduct: return static_cast<T>(a * b);
    case kMax: return a < b ? b : a;
    default: return b < a ? b : a;
  }
}

template <class Stored, class T>
void reduce_as(int reduction, const void* const* rows, std::size_t count, void* to, std::size_t elements,
               T (*load)(Stored), Stored (*store)(T)) {
  for (std::size_t k = 0; k < elements; ++k) {
    const auto at = [&](std::size_t row) {
      Stored s;
      std::memcpy(&s, static_cast<const char*>(rows[row]) + k * sizeof s, sizeof s);
      return s;
    };
    Stored sum = at(0);
    for (std::size_t row = 1; row < count; ++row) sum = store(one(reduction, load(sum), load(at(row))));
    std::memcpy(static_cast<char*>(to) + k * sizeof sum, &sum, sizeof sum);
  }
}

template <class Stored, class T = Stored>
T widen(Stored v) {
  return static_cast<T>(v);
}
// Integers wrap: they are added without a sign.
template <class T>
void reduce_plain(int r, const void* const* rows, std::size_t count, void* to, std::size_t n) {
  if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (r == kSum || r == kProduct) return reduce_as<U, U>(r, rows, count, to, n, widen<U>, widen<U>);
  }
  reduce_as<T, T>(r, rows, count, to, n, widen<T>, widen<T>);
}

}  // namespace

void reduce(int type, int reduction, const void* const* rows, std::size_t count, void* to, std::size_t n) {
  switch (type) {
    case kI8: return reduce_plain<std::int8_t>(reduction, rows, count, to, n);
    case kU8: return reduce_plain<std::uint8_t>(reduction, rows, count, to, n);
    case kI32: return reduce_plain<std::int32_t>(reduction, rows, count, to, n);
    case kU32: return reduce_plain<std::uint32_t>(reduction, rows, count, to, n);
    case kI64: return reduce_plain<std::int64_t>(reduction, rows, count, to, n);
    case kU64: return reduce_plain<std::uint64_t>(reduction, rows, count, to, n);
    case kF32: return reduce_plain<float>(reduction, rows, count, to, n);
    case kF64: return reduce_plain<double>(reduction, rows, count, to, n);
    case kF16: return reduce_as<std::uint16_t, float>(reduction, rows, count, to, n, from_f16, to_f16);
    default: return reduce_as<std::uint16_t, float>(reduction, rows, count, to, n, from_bf16, to_bf16);
  }
}

}  // namespace lc::simulators::nccl
