#include "lightcone/core/dtype.h"

#include <cmath>
#include <cstring>

#include "lightcone/base/numbers.h"
#include "lightcone/core/narrow_floats.h"

namespace lc {
namespace {

template <class T>
T read(const void* data, std::size_t i) {
  T v;
  std::memcpy(&v, static_cast<const std::byte*>(data) + i * sizeof(T), sizeof(T));
  return v;
}

template <class T>
void write(void* data, std::size_t i, T v) {
  std::memcpy(static_cast<std::byte*>(data) + i * sizeof(T), &v, sizeof(T));
}

std::int64_t saturate(double v, std::int64_t lo, std::int64_t hi) {
  if (std::isnan(v)) return 0;
  if (v <= static_cast<double>(lo)) return lo;
  if (v >= static_cast<double>(hi)) return hi;
  return static_cast<std::int64_t>(v);
}

std::int64_t saturate_u64(double v) {
  if (!(v > 0)) return 0;
  return static_cast<std::int64_t>(v >= 0x1p64 ? UINT64_MAX : static_cast<std::uint64_t>(v));
}

}  // namespace

double load_f64(const void* d, DType t, std::size_t i) {
  switch (t) {
    case DType::F32: return read<float>(d, i);
    case DType::F64: return read<double>(d, i);
    case DType::F16: return f16_to_f32(read<std::uint16_t>(d, i));
    case DType::BF16: return bf16_to_f32(read<std::uint16_t>(d, i));
    case DType::F8E4M3FN:
    case DType::F8E5M2: return f8_to_f32(read<std::uint8_t>(d, i), t);
    default: return to_f64(load_i64(d, t, i), t);
  }
}

std::int64_t load_i64(const void* d, DType t, std::size_t i) {
  switch (t) {
    case DType::I8: return read<std::int8_t>(d, i);
    case DType::I16: return read<std::int16_t>(d, i);
    case DType::I32: return read<std::int32_t>(d, i);
    case DType::I64:
    case DType::U64: return read<std::int64_t>(d, i);
    case DType::U8: return read<std::uint8_t>(d, i);
    case DType::U16: return read<std::uint16_t>(d, i);
    case DType::U32: return read<std::uint32_t>(d, i);
    case DType::Bool: return read<std::uint8_t>(d, i) != 0;
    default: return saturate(load_f64(d, t, i), INT64_MIN, INT64_MAX);
  }
}

void store_f64(void* d, DType t, std::size_t i, double v) {
  switch (t) {
    case DType::F32: return write(d, i, static_cast<float>(v));
    case DType::F64: return write(d, i, v);
    case DType::F16: return write(d, i, f64_to_f16(v));
    case DType::BF16: return write(d, i, narrow(v, 7, -126, 127, 127));
    case DType::F8E4M3FN:
    case DType::F8E5M2: return write(d, i, f64_to_f8(v, t));
    case DType::Bool: return write(d, i, static_cast<std::uint8_t>(v != 0));
    case DType::U64: return write(d, i, saturate_u64(v));
    default: return store_i64(d, t, i, saturate(v, info(t).lowest, info(t).highest));
  }
}

void store_i64(void* d, DType t, std::size_t i, std::int64_t v) {
  switch (t) {
    case DType::I8: return write(d, i, static_cast<std::int8_t>(v));  // wraps, as PyTorch does
    case DType::I16: return write(d, i, static_cast<std::int16_t>(v));
    case DType::I32: return write(d, i, static_cast<std::int32_t>(v));
    case DType::I64:
    case DType::U64: return write(d, i, v);
    case DType::U8: return write(d, i, static_cast<std::uint8_t>(v));
    case DType::U16: return write(d, i, static_cast<std::uint16_t>(v));
    case DType::U32: return write(d, i, static_cast<std::uint32_t>(v));
    case DType::Bool: return write(d, i, static_cast<std::uint8_t>(v != 0));
    case DType::F64: return write(d, i, static_cast<double>(v));
    default: return store_f64(d, t, i, odd_f64(v, false));
  }
}

Element bitcast(const Element& e, DType from, DType to) {
  std::uint64_t bits = 0;
  if (is_float(from)) store_f64(&bits, from, 0, e.f);
  else store_i64(&bits, from, 0, e.i);
  if (is_float(to)) return {.f = load_f64(&bits, to, 0)};
  return {.i = load_i64(&bits, to, 0)};
}

}  // namespace lc
