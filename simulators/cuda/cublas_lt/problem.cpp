#include <bit>
#include <cmath>
#include <cstring>

#include "cublas_lt/library.h"

namespace lc::simulators::cublas_lt {
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
  const auto sign = static_cast<std::uint16_t>(b >> 16 & 0x8000);
  b &= 0x7fffffff;
  std::uint32_t h;
  if (b > 0x7f800000) h = 0x7e00;
  else if (b >= 0x477ff000) h = 0x7c00;  // 65520 and above
  else if (b < 0x38800000) h = static_cast<std::uint32_t>(std::nearbyint(std::bit_cast<float>(b) * 0x1p24f));
  else h = (b + 0xfff + (b >> 13 & 1) - 0x38000000) >> 13;
  return static_cast<std::uint16_t>(sign | h);
}

// Rounds the significand to `bits` fewer bits, ties to even.
float rounded(float v, int bits) {
  std::uint32_t b = std::bit_cast<std::uint32_t>(v);
  if ((b & 0x7f800000) == 0x7f800000) return v;
  b += (1u << (bits - 1)) - 1 + (b >> bits & 1);
  return std::bit_cast<float>(b >> bits << bits);
}

float load(int type, std::uint64_t at) {
  std::uint32_t w = 0;
  std::memcpy(&w, reinterpret_cast<const void*>(at), type == kF32 ? 4 : 2);
  if (type == kF32) return std::bit_cast<float>(w);
  return type == kF16 ? from_f16(static_cast<std::uint16_t>(w)) : std::bit_cast<float>(w << 16);
}

void store(int type, std::uint64_t at, float v) {
  if (type == kF32) {
    std::memcpy(reinterpret_cast<void*>(at), &v, 4);
    return;
  }
  const std::uint16_t h = type == kF16 ? to_f16(v)
                          : std::isnan(v)
                              ? std::uint16_t{0x7fff}
                              : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded(v, 16)) >> 16);
  std::memcpy(reinterpret_cast<void*>(at), &h, 2);
}

// A matrix in memory; elements are addressed by row, column and batch.
struct Matrix {
  const Layout& l;
  std::uint64_t at;
  std::uint64_t place(std::uint64_t row, std::uint64_t column, std::uint64_t batch) const {
    const auto element =
        row + column * static_cast<std::uint64_t>(l.pitch) + batch * static_cast<std::uint64_t>(l.stride);
    return at + element * l.element();
  }
  bool on_device(LibraryWork::OnDevice f) const {
    const std::uint64_t end = place(l.rows - 1, l.columns - 1, static_cast<std::uint64_t>(l.batches) - 1) + l.element();
    return f(at, end - at);
  }
};

bool valid(const Layout& l) {
  return (l.type == kF32 || l.type == kF16 || l.type == kBf16) && l.rows && l.columns && l.batches > 0 &&
         l.pitch >= static_cast<std::int64_t>(l.rows) && l.stride >= 0;
}

}  // namespace

Status Problem::check() const {
  for (const Layout* l : {&a, &b, &c, &d})
    if (!valid(*l) || l->batches != d.batches) return kInvalidValue;
  if (d.batches > 1 && d.stride == 0) return kInvalidValue;  // results of different batches would overlap
  const bool ta = product.transpose_a, tb = product.transpose_b;
  const std::uint64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns, n = tb ? b.rows : b.columns;
  if (k != (tb ? b.columns : b.rows) || d.rows != m || d.columns != n || !(c == d)) return kInvalidValue;
  if (a.type != b.type || (d.type != kF32 && d.type != a.type)) return kNotSupported;
  const bool fast = product.compute == kComputeFast16BF || product.compute == kComputeFastTf32;
  if (product.scale != kF32 || (!fast && product.compute != kCompute32F) || (fast && a.type != kF32))
    return kNotSupported;
  return kSuccess;
}

std::uint64_t Problem::hash() const {
  std::uint64_t h = 1469598103934665603ull;
  const auto add = [&](auto v) { h = (h ^ static_cast<std::uint64_t>(v)) * 1099511628211ull; };
  add(product.compute), add(product.transpose_a), add(product.transpose_b);
  for (const Layout* l : {&a, &b, &c, &d})
    add(l->type), add(l->rows), add(l->columns), add(l->pitch), add(l->stride), add(l->batches);
  return h;
}

std::string Problem::compute(std::uint64_t at_a, std::uint64_t at_b, std::uint64_t at_d,
                             LibraryWork::OnDevice on_device) const {
  const Matrix x{a, at_a}, y{b, at_b}, z{d, at_d};
  for (const auto& [m, name] : {std::pair(&x, "A"), std::pair(&y, "B"), std::pair(&z, "D")})
    if (!m->on_device(on_device)) return std::string("cuBLASLt's matrix ") + name + " is not the device's memory";
  const int bits = product.compute == kComputeFast16BF ? 16 : product.compute == kComputeFastTf32 ? 13 : 0;
  const auto value = [&](const Layout& l, std::uint64_t at) {
    const float v = load(l.type, at);
    return bits ? rounded(v, bits) : v;
  };
  const std::uint64_t depth = product.transpose_a ? a.rows : a.columns;
  for (std::uint64_t batch = 0; batch < static_cast<std::uint64_t>(d.batches); ++batch)
    for (std::uint64_t j = 0; j < d.columns; ++j)
      for (std::uint64_t i = 0; i < d.rows; ++i) {
        float sum = 0;
        for (std::uint64_t k = 0; k < depth; ++k)
          sum += value(a, product.transpose_a ? x.place(k, i, batch) : x.place(i, k, batch)) *
                 value(b, product.transpose_b ? y.place(j, k, batch) : y.place(k, j, batch));
        store(d.type, z.place(i, j, batch), sum);
      }
  return "";
}

}  // namespace lc::simulators::cublas_lt
