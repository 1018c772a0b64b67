#include "lightcone/codegen/interpret/vectors.h"

#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>

#include "lightcone/base/numbers.h"
#include "lightcone/core/op_eval.h"

// Loops over f32 are compiled twice for x86-64, for the baseline and for AVX2. Both give the same bits: where a product
// and a sum are contracted, the product is exact or the difference has no effect.
#define LC_INLINE inline __attribute__((always_inline))
#if defined(__x86_64__)
#define LC_WIDE __attribute__((target("avx2,fma")))
#else
#define LC_WIDE
#endif

namespace lc::codegen::vectors {
namespace {

bool has_wide() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
#else
  return false;
#endif
}

using Bit = std::int32_t;  // a bool

template <class T>
const T* in(const void* p) {
  return static_cast<const T*>(p);
}
template <class T>
T* out(void* p) {
  return static_cast<T*>(p);
}

// Calls f with a value of the type that holds numbers of dtype `t`.
template <class F>
void held_as(DType t, const F& f) {
  if (t == DType::F64) f(double{});
  else if (is_float(t)) f(float{});
  else if (t == DType::Bool) f(Bit{});
  else f(i64{});
}

// Rounds a double to f32 with the last bit set if it was inexact. Rounding this again to at most 22 bits gives the same
// as rounding the double.
float to_odd(double v) {
  const float near = static_cast<float>(v);
  if (static_cast<double>(near) == v || v != v) return near;
  const auto bits = std::bit_cast<std::uint32_t>(near);
  return std::bit_cast<float>((std::fabs(static_cast<double>(near)) > std::fabs(v) ? bits - 1 : bits) | 1);
}

float to_bf16(double v) {
  const float odd = to_odd(v);
  const auto bits = std::bit_cast<std::uint32_t>(odd);
  if (v != v) return std::bit_cast<float>((bits & 0x80000000u) | 0x7fc00000u);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

float to_f16(double v) {
  const float odd = to_odd(v);
  const auto bits = std::bit_cast<std::uint32_t>(odd);
  const std::uint32_t sign = bits & 0x80000000u, size = bits & 0x7fffffffu;
  if (v != v) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (size < 0x38800000u) {  // subnormal: a multiple of 2^-24, like floats from 1/2 to 1
    const float units = std::bit_cast<float>(size) + 0.5f - 0.5f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(units));
  }
  const std::uint32_t near = (size + 0xfff + (size >> 13 & 1)) & ~0x1fffu;
  return std::bit_cast<float>(sign | (near >= 0x47800000u ? 0x7f800000u : near));
}

std::uint16_t bits_of_f16(float v) {  // `v` is representable
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const std::uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  const std::uint32_t small = static_cast<std::uint32_t>(std::bit_cast<float>(size) * 0x1p24f);
  const std::uint32_t large = size > 0x7f800000u    ? 0x7e00u
                              : size == 0x7f800000u ? 0x7c00u
                                                    : (size >> 13) - (112u << 10);
  return static_cast<std::uint16_t>(sign | (size < 0x38800000u ? small : large));
}

float to_f8(double v, DType t) {
  std::uint8_t stored = 0;
  store_f64(&stored, t, 0, v);
  return static_cast<float>(load_f64(&stored, t, 0));
}

// Rounds doubles to a float type.
template <class F>
LC_INLINE void rounded(DType t, i64 n, float* __restrict to, const F& value) {
  switch (t) {
    case DType::F32:
      for (i64 k = 0; k < n; ++k) to[k] = static_cast<float>(value(k));
      break;
    case DType::BF16:
      for (i64 k = 0; k < n; ++k) to[k] = to_bf16(value(k));
      break;
    case DType::F16:
      for (i64 k = 0; k < n; ++k) to[k] = to_f16(value(k));
      break;
    default:
      for (i64 k = 0; k < n; ++k) to[k] = to_f8(value(k), t);
  }
}

i64 wrapped(DType t, i64 v) {
  switch (t) {
    case DType::I8: return static_cast<std::int8_t>(v);
    case DType::I16: return static_cast<std::int16_t>(v);
    case DType::I32: return static_cast<std::int32_t>(v);
    case DType::U8: return static_cast<std::uint8_t>(v);
    case DType::U16: return static_cast<std::uint16_t>(v);
    case DType::U32: return static_cast<std::uint32_t>(v);
    case DType::Bool: return v != 0;
    default: return v;
  }
}

template <class F>
void integers(DType t, i64 n, void* to, const F& value) {
  switch (t) {
    case DType::Bool:
      for (i64 k = 0; k < n; ++k) out<Bit>(to)[k] = value(k) != 0;
      break;
    case DType::I32:
      for (i64 k = 0; k < n; ++k) out<i64>(to)[k] = static_cast<std::int32_t>(value(k));
      break;
    case DType::I64:
    case DType::U64:
      for (i64 k = 0; k < n; ++k) out<i64>(to)[k] = value(k);
      break;
    default:
      for (i64 k = 0; k < n; ++k) out<i64>(to)[k] = wrapped(t, value(k));
  }
}

// Maximum and minimum as in the op table, without a branch, so that compilers vectorise them. If both are equal, their
// bits decide: the result is the greater (or lesser) of two zeros.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
Bits<T> choose_bits(bool which, Bits<T> yes, Bits<T> no) {
  const Bits<T> mask = -static_cast<Bits<T>>(which);
  return (yes & mask) | (no & ~mask);
}
template <std::floating_point T>
T larger(T a, T b) {
  const auto x = std::bit_cast<Bits<T>>(a), y = std::bit_cast<Bits<T>>(b);
  const Bits<T> unlike = choose_bits<T>(a != a, x, choose_bits<T>(a > b, x, y));
  return std::bit_cast<T>(choose_bits<T>(a == b, x & y, unlike));
}
template <std::floating_point T>
T smaller(T a, T b) {
  const auto x = std::bit_cast<Bits<T>>(a), y = std::bit_cast<Bits<T>>(b);
  const Bits<T> unlike = choose_bits<T>(a != a, x, choose_bits<T>(a < b, x, y));
  return std::bit_cast<T>(choose_bits<T>(a == b, x | y, unlike));
}

template <class T, class F>
LC_INLINE void each(i64 n, void* to, const F& f) {
  T* const __restrict p = out<T>(to);
  for (i64 k = 0; k < n; ++k) p[k] = f(k);
}

// Applies comparisons and selection, which have another type in the result or the first operand. Returns false for
// other operations.
template <class T>
bool choose(Op op, const void* a, const void* b, const void* c, i64 n, void* to) {
  const T *x = in<T>(a), *y = in<T>(b);
  switch (op) {
    case Op::LessThan: each<Bit>(n, to, [=](i64 k) { return Bit{x[k] < y[k]}; }); return true;
    case Op::Equal: each<Bit>(n, to, [=](i64 k) { return Bit{x[k] == y[k]}; }); return true;
    case Op::Where:
      each<T>(n, to, [which = in<Bit>(a), y, z = in<T>(c)](i64 k) {
        return std::bit_cast<T>(
            choose_bits<T>(which[k] != 0, std::bit_cast<Bits<T>>(y[k]), std::bit_cast<Bits<T>>(z[k])));
      });
      return true;
    default: return false;
  }
}

// The exponential of f32 numbers, equal to std::exp in double precision rounded to f32. A polynomial of 13 terms around
// the nearest multiple of log 2 is exact to 2^-46. If two floats remain possible, or the result is not a normal number,
// std::exp itself is called.
template <bool kBase2>
LC_INLINE void exponential(const float* x, i64 n, float* __restrict to) {
  constexpr double kLog2e = 0x1.71547652b82fep0, kRound = 0x1.8p52, kDoubt = 0x1p-42;
  constexpr double kLog2 = 0x1.62e42fefa39efp-1, kHigh = 0x1.62e42feep-1, kLow = 0x1.a39ef35793c76p-33;
  constexpr std::uint32_t kUnsure = 0x7fc00001u;
  std::int32_t doubts = 0;
  for (i64 k = 0; k < n; ++k) {
    const double v = x[k], scaled = kBase2 ? v : v * kLog2e;
    const double shifted = scaled + kRound, whole = shifted - kRound;
    const double r = kBase2 ? (v - whole) * kLog2 : (v - whole * kHigh) - whole * kLow;
    double p = (1.0 / 479001600 * r + 1.0 / 39916800) * r + 1.0 / 3628800;
    p = ((p * r + 1.0 / 362880) * r + 1.0 / 40320) * r + 1.0 / 5040;
    p = ((p * r + 1.0 / 720) * r + 1.0 / 120) * r + 1.0 / 24;
    p = (((p * r + 1.0 / 6) * r + 0.5) * r + 1) * r + 1;
    const double y = p * std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
    const float low = static_cast<float>(y - y * kDoubt), high = static_cast<float>(y + y * kDoubt);
    const float size = std::fabs(x[k]);  // below 87 the power is a normal number
    const std::int32_t unsure = std::int32_t{low != high} | std::int32_t{!(size < 87)};
    doubts |= unsure;
    to[k] = std::bit_cast<float>(choose_bits<float>(unsure == 0, std::bit_cast<std::uint32_t>(low), kUnsure));
  }
  if (doubts)
    for (i64 k = 0; k < n; ++k)
      if (std::bit_cast<std::uint32_t>(to[k]) == kUnsure)
        to[k] = static_cast<float>(kBase2 ? std::exp2(double{x[k]}) : std::exp(double{x[k]}));
}

// Operations on f32 and f64. Rounding sums, products, quotients and roots of f32 directly, or to f64 first, gives the
// same number, because f64 has more than twice the bits.
template <class T>
LC_INLINE void apply_wide(Op op, const void* a, const void* b, i64 n, void* to) {
  const T *x = in<T>(a), *y = in<T>(b);
  switch (op) {
    case Op::Add:
    case Op::SumReduce: return each<T>(n, to, [=](i64 k) { return x[k] + y[k]; });
    case Op::Mul: return each<T>(n, to, [=](i64 k) { return x[k] * y[k]; });
    case Op::Div: return each<T>(n, to, [=](i64 k) { return x[k] / y[k]; });
    case Op::Recip: return each<T>(n, to, [=](i64 k) { return 1 / x[k]; });
    case Op::Sqrt: return each<T>(n, to, [=](i64 k) { return std::sqrt(x[k]); });
    case Op::Maximum:
    case Op::MaxReduce: return each<T>(n, to, [=](i64 k) { return larger(x[k], y[k]); });
    case Op::Minimum: return each<T>(n, to, [=](i64 k) { return smaller(x[k], y[k]); });
    case Op::Exp:
    case Op::Exp2:
      if constexpr (std::is_same_v<T, float>)
        return op == Op::Exp ? exponential<false>(x, n, out<float>(to)) : exponential<true>(x, n, out<float>(to));
      break;
    default: break;
  }
  const int operands = info(op).arity;
  each<T>(n, to, [=, f = eval_of(op).f](i64 k) { return static_cast<T>(f(x[k], operands > 1 ? y[k] : 0, 0)); });
}

LC_INLINE void apply_narrow(Op op, DType t, const float* x, const float* y, i64 n, float* to) {
  switch (op) {
    case Op::Add: return rounded(t, n, to, [=](i64 k) { return double{x[k]} + double{y[k]}; });
    case Op::Mul: return rounded(t, n, to, [=](i64 k) { return double{x[k]} * double{y[k]}; });
    default: break;
  }
  const int operands = info(op).arity;
  rounded(t, n, to, [=, f = eval_of(op).f](i64 k) { return f(x[k], operands > 1 ? y[k] : 0, 0); });
}

template <class T>
void apply_integers(Op op, DType operand, DType result, const void* a, const void* b, i64 n, void* to) {
  const T *x = in<T>(a), *y = in<T>(b);
  switch (op) {
    case Op::Add: return integers(result, n, to, [=](i64 k) { return eval::add(x[k], y[k]); });
    case Op::Mul: return integers(result, n, to, [=](i64 k) { return eval::mul(x[k], y[k]); });
    case Op::BitAnd: return integers(result, n, to, [=](i64 k) { return i64{x[k]} & i64{y[k]}; });
    case Op::BitOr: return integers(result, n, to, [=](i64 k) { return i64{x[k]} | i64{y[k]}; });
    default: break;
  }
  const int operands = info(op).arity;
  integers(result, n, to, [=, f = on_integers(op, operand)](i64 k) { return f(x[k], operands > 1 ? y[k] : 0, 0); });
}

void bitcast_all(DType from, DType to, const void* a, i64 n, void* result) {
  for (i64 k = 0; k < n; ++k) put(to, result, k, bitcast(element(from, a, k), from, to));
}

// Calls f with the stored type, the held type and the conversions between them: `get` and `set` of one element.
template <class S, class F>
void elements_as(DType t, const F& f) {
  const auto copy = [](auto v) { return v; };
  switch (t) {
    case DType::F32: return f(float{}, float{}, copy, copy);
    case DType::F64: return f(double{}, double{}, copy, copy);
    case DType::BF16:
      return f(
          std::uint16_t{}, float{},
          [](std::uint16_t v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v) << 16); },
          [](float v) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16); });
    case DType::F16:
      return f(
          std::uint16_t{}, float{}, [](std::uint16_t v) { return f16_to_f32(v); }, bits_of_f16);
    case DType::I8: return f(std::int8_t{}, i64{}, copy, [](i64 v) { return static_cast<std::int8_t>(v); });
    case DType::I16: return f(std::int16_t{}, i64{}, copy, [](i64 v) { return static_cast<std::int16_t>(v); });
    case DType::I32: return f(std::int32_t{}, i64{}, copy, [](i64 v) { return static_cast<std::int32_t>(v); });
    case DType::I64:
    case DType::U64: return f(i64{}, i64{}, copy, copy);
    case DType::U8: return f(std::uint8_t{}, i64{}, copy, [](i64 v) { return static_cast<std::uint8_t>(v); });
    case DType::U16: return f(std::uint16_t{}, i64{}, copy, [](i64 v) { return static_cast<std::uint16_t>(v); });
    case DType::U32: return f(std::uint32_t{}, i64{}, copy, [](i64 v) { return static_cast<std::uint32_t>(v); });
    case DType::Bool:
      return f(
          std::uint8_t{}, Bit{}, [](std::uint8_t v) { return Bit{v != 0}; },
          [](Bit v) { return static_cast<std::uint8_t>(v != 0); });
    default:  // 8-bit floats
      return f(
          std::uint8_t{}, float{}, [t](std::uint8_t v) { return f8_to_f32(v, t); },
          [t](float v) { return f64_to_f8(v, t); });
  }
}

template <class S>
S read(const void* buffer, i64 at) {
  S v;
  std::memcpy(&v, static_cast<const std::byte*>(buffer) + at * static_cast<i64>(sizeof(S)), sizeof(S));
  return v;
}
template <class S>
void write(void* buffer, i64 at, S v) {
  std::memcpy(static_cast<std::byte*>(buffer) + at * static_cast<i64>(sizeof(S)), &v, sizeof(S));
}

// Interleaves several accumulators, because the additions to one of them depend on each other.
template <class T, class F>
void join_rows(const T* v, i64 lanes, i64 stride, i64 count, T* acc, const F& f) {
  if (stride == 1 && count == 1) {
    for (i64 l = 0; l < lanes; ++l) acc[l] = f(acc[l], v[l]);
    return;
  }
  constexpr i64 kRows = 4;
  i64 l = 0;
  for (; l + kRows <= lanes; l += kRows) {
    const T* p = v + l * stride;
    T a = acc[l], b = acc[l + 1], c = acc[l + 2], d = acc[l + 3];
    for (i64 k = 0; k < count; ++k) {
      a = f(a, p[k]);
      b = f(b, p[k + stride]);
      c = f(c, p[k + 2 * stride]);
      d = f(d, p[k + 3 * stride]);
    }
    acc[l] = a, acc[l + 1] = b, acc[l + 2] = c, acc[l + 3] = d;
  }
  for (; l < lanes; ++l)
    for (i64 k = 0; k < count; ++k) acc[l] = f(acc[l], v[l * stride + k]);
}

// The product of two f32 is exact in f64, so the sum is rounded to f64 and then to f32, like an fma of doubles.
LC_INLINE void mul_add_f32(DType t, const void* a, const void* b, const void* c, i64 n, void* to) {
  const float *x = in<float>(a), *y = in<float>(b), *z = in<float>(c);
  rounded(t, n, out<float>(to), [=](i64 k) { return double{x[k]} * double{y[k]} + double{z[k]}; });
}
LC_WIDE void wide_mul_add(DType t, const void* a, const void* b, const void* c, i64 n, void* to) {
  mul_add_f32(t, a, b, c, n, to);
}
LC_WIDE void wide_apply(Op op, const void* a, const void* b, i64 n, void* to) { apply_wide<float>(op, a, b, n, to); }
void plain_apply_narrow(Op op, DType t, const float* a, const float* b, i64 n, float* to) {
  apply_narrow(op, t, a, b, n, to);
}
LC_WIDE void wide_apply_narrow(Op op, DType t, const float* a, const float* b, i64 n, float* to) {
  apply_narrow(op, t, a, b, n, to);
}

}  // namespace

Element element(DType t, const void* v, i64 k) {
  Element e;
  held_as(t, [&](auto type) {
    using T = decltype(type);
    if constexpr (std::floating_point<T>) e.f = in<T>(v)[k];
    else e.i = in<T>(v)[k];
  });
  return e;
}
void put(DType t, void* v, i64 k, const Element& e) {
  held_as(t, [&](auto type) {
    using T = decltype(type);
    if constexpr (std::floating_point<T>) out<T>(v)[k] = static_cast<T>(e.f);
    else out<T>(v)[k] = static_cast<T>(e.i);
  });
}

void fill(DType t, double value, i64 n, void* to) {
  std::uint64_t raw = 0;
  store_f64(&raw, t, 0, value);
  Element e;
  if (is_float(t)) e.f = load_f64(&raw, t, 0);
  else e.i = load_i64(&raw, t, 0);
  for (i64 k = 0; k < n; ++k) put(t, to, k, e);
}
void from_indices(DType t, const i64* index, i64 n, void* to) {
  if (is_float(t)) convert(DType::I64, t, index, n, to);
  else integers(t, n, to, [=](i64 k) { return index[k]; });
}

void apply(Op op, DType operand, DType result, const void* a, const void* b, const void* c, i64 n, void* to) {
  if (op == Op::Bitcast) return bitcast_all(operand, result, a, n, to);
  const bool as_bits = operand == DType::U64 && op != Op::Where && op != Op::Equal;  // unsigned: has its own functions
  bool done = false;
  if (!as_bits) held_as(operand, [&](auto type) { done = choose<decltype(type)>(op, a, b, c, n, to); });
  if (done) return;
  if (operand == DType::F64) return apply_wide<double>(op, a, b, n, to);
  if (operand == DType::F32) return has_wide() ? wide_apply(op, a, b, n, to) : apply_wide<float>(op, a, b, n, to);
  if (is_float(operand))
    return (has_wide() ? wide_apply_narrow : plain_apply_narrow)(op, result, in<float>(a), in<float>(b), n,
                                                                 out<float>(to));
  if (operand == DType::Bool) return apply_integers<Bit>(op, operand, result, a, b, n, to);
  apply_integers<i64>(op, operand, result, a, b, n, to);
}

void mul_add(DType t, const void* a, const void* b, const void* c, i64 n, void* to) {
  if (t == DType::F64)
    return each<double>(n, to, [&](i64 k) { return std::fma(in<double>(a)[k], in<double>(b)[k], in<double>(c)[k]); });
  return has_wide() ? wide_mul_add(t, a, b, c, n, to) : mul_add_f32(t, a, b, c, n, to);
}

void convert(DType from, DType to, const void* a, i64 n, void* result) {
  if (is_float(from) && is_float(to)) {
    held_as(from, [&](auto type) {
      using T = decltype(type);
      if (to == DType::F64) return each<double>(n, result, [&](i64 k) { return static_cast<double>(in<T>(a)[k]); });
      if constexpr (std::floating_point<T>)
        rounded(to, n, out<float>(result), [&](i64 k) { return static_cast<double>(in<T>(a)[k]); });
    });
  } else if (is_float(from)) {
    held_as(from, [&](auto type) {
      using T = decltype(type);
      if (to == DType::Bool) return each<Bit>(n, result, [&](i64 k) { return in<T>(a)[k] != 0 ? 1 : 0; });
      each<i64>(n, result, [&](i64 k) {
        std::uint64_t raw = 0;
        store_f64(&raw, to, 0, static_cast<double>(in<T>(a)[k]));
        return load_i64(&raw, to, 0);
      });
    });
  } else {
    held_as(from, [&](auto type) {
      using T = decltype(type);
      const auto whole = [a](i64 k) { return static_cast<i64>(in<T>(a)[k]); };
      if (to == DType::F64) each<double>(n, result, [=](i64 k) { return to_f64(whole(k), from); });
      else if (is_float(to))
        rounded(to, n, out<float>(result), [=](i64 k) { return odd_f64(whole(k), from == DType::U64); });
      else integers(to, n, result, [&](i64 k) { return static_cast<i64>(in<T>(a)[k]); });
    });
  }
}

void load(DType t, const void* buffer, i64 at, i64 stride, i64 n, void* to) {
  elements_as<void>(t, [&](auto stored, auto held, const auto& get, const auto&) {
    using S = decltype(stored);
    using T = decltype(held);
    if (stride == 0) {
      const T v = get(read<S>(buffer, at));
      for (i64 k = 0; k < n; ++k) out<T>(to)[k] = v;
    } else if (stride == 1) {
      const S* from = in<S>(buffer) + at;
      for (i64 k = 0; k < n; ++k) out<T>(to)[k] = get(read<S>(from, k));
    } else {
      for (i64 k = 0; k < n; ++k) out<T>(to)[k] = get(read<S>(buffer, at + k * stride));
    }
  });
}
void gather(DType t, const void* buffer, const i64* offsets, const i64* valid, i64 n, void* to) {
  elements_as<void>(t, [&](auto stored, auto held, const auto& get, const auto&) {
    using S = decltype(stored);
    using T = decltype(held);
    for (i64 k = 0; k < n; ++k) out<T>(to)[k] = !valid || valid[k] ? get(read<S>(buffer, offsets[k])) : T{};
  });
}
void store(DType t, const void* from, i64 n, void* buffer, i64 at, i64 stride) {
  elements_as<void>(t, [&](auto stored, auto held, const auto&, const auto& set) {
    using S = decltype(stored);
    using T = decltype(held);
    if (stride == 1)
      for (i64 k = 0; k < n; ++k) write<S>(out<S>(buffer) + at, k, set(in<T>(from)[k]));
    else
      for (i64 k = 0; k < n; ++k) write<S>(buffer, at + k * stride, set(in<T>(from)[k]));
  });
}
void scatter(DType t, const void* from, i64 n, void* buffer, const i64* offsets) {
  elements_as<void>(t, [&](auto stored, auto held, const auto&, const auto& set) {
    using S = decltype(stored);
    using T = decltype(held);
    for (i64 k = 0; k < n; ++k) write<S>(buffer, offsets[k], set(in<T>(from)[k]));
  });
}

void start(Op op, DType t, i64 lanes, void* accumulators) {
  const Element e = op == Op::MaxReduce ? Element{-kInf, info(t).lowest} : Element{};
  for (i64 l = 0; l < lanes; ++l) put(t, accumulators, l, e);
}

void join(Op op, DType t, const void* values, i64 lanes, i64 stride, i64 count, void* accumulators) {
  held_as(t, [&](auto type) {
    using T = decltype(type);
    const T* v = in<T>(values);
    T* acc = out<T>(accumulators);
    if constexpr (std::floating_point<T>) {
      if (op == Op::SumReduce) join_rows(v, lanes, stride, count, acc, [](T a, T b) { return a + b; });
      else join_rows(v, lanes, stride, count, acc, [](T a, T b) { return larger(a, b); });
    } else {
      const auto f = on_integers(op, t);
      join_rows(v, lanes, stride, count, acc, [=](T a, T b) { return static_cast<T>(wrapped(t, f(a, b, 0))); });
    }
  });
}

void end_block(i64 lanes, float* block, float* before, float* lost) {
  for (i64 l = 0; l < lanes; ++l) {
    const float sum = before[l] + block[l], of_block = sum - before[l];
    const float off = (before[l] - (sum - of_block)) + (block[l] - of_block);
    lost[l] += off == off ? off : 0.0f;
    before[l] = sum;
    block[l] = 0;
  }
}
void all_blocks(i64 lanes, const float* block, const float* before, const float* lost, float* to) {
  for (i64 l = 0; l < lanes; ++l) {
    float last = block[l], sum = before[l], off = lost[l];
    end_block(1, &last, &sum, &off);
    to[l] = sum + off;
  }
}

void repeat(DType t, const void* from, i64 lanes, i64 each, void* to) {
  held_as(t, [&](auto type) {
    using T = decltype(type);
    for (i64 l = 0; l < lanes; ++l) {
      const T v = in<T>(from)[l];
      for (i64 k = 0; k < each; ++k) out<T>(to)[l * each + k] = v;
    }
  });
}

}  // namespace lc::codegen::vectors
