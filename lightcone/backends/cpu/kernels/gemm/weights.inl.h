// Reading weights: 32 values of a row at a time, in every storage type.
//
// A block format has codes and, for every 16 or 32 of them, two numbers: value = code * a + b, rounded once, as
// formats/block_formats.h defines it.
//
// With AVX-512, one shift distributes 16 packed codes over a vector, in the order of a 4 x 4 transposition
// (kReordered), and a lookup in a table of all values, which ignores the bits above the code, converts them.
// `reorder_rows` permutes the operands to that order once.
#pragma once

#include "lightcone/backends/cpu/kernels/abi/weight_formats.h"
#include "lightcone/backends/cpu/kernels/vectors/vector.inl.h"

namespace lc::backends::cpu {
namespace {

using u8 = std::uint8_t;
constexpr int kStep = 32;  // elements per step

inline std::uint32_t word(const u8* p) {
  std::uint32_t w;
  std::memcpy(&w, p, 4);
  return w;
}

// The bits below `n` of one code, the others of another.
inline vi joined(vi low, int n, vi high) {
  const vi mask = vi{} + ((1 << n) - 1);
  return (low & mask) | (high & ~mask);
}
#if WIDTH == 16
constexpr bool is_reordered(WeightType t) { return has_codec(t) && t != WeightType::Q8_0; }
typedef std::uint32_t vu32 __attribute__((vector_size(64)));
typedef std::uint64_t vu64 __attribute__((vector_size(64)));
constexpr vu32 kReordered = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};  // the value in each lane
inline vf reordered(vf v) {                                                          // its own inverse
  return reinterpret_cast<vf>(
      _mm512_permutexvar_ps(reinterpret_cast<__m512i>(kReordered), reinterpret_cast<__m512>(v)));
}
// 16 bytes, one per lane, rotated right by `shift`. The bits above the first 8 - shift belong to other bytes.
inline vi field(const u8* p, int i, int shift) {
  const __m512i all = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i)));
  const vu64 by = (vu64{0, 0, 8, 8, 16, 16, 24, 24} + static_cast<std::uint64_t>(64 + shift)) % 64u;
  return reinterpret_cast<vi>(_mm512_rorv_epi64(all, reinterpret_cast<__m512i>(by)));
}
#else
constexpr bool is_reordered(WeightType) { return false; }
inline vf reordered(vf v) { return v; }
inline vi field(const u8* p, int i, int shift) { return shift < 0 ? bytes(p + i) << -shift : bytes(p + i) >> shift; }
#endif

// a and b for every 32 or 16 values of a block.
template <int N>
struct Scales {
  float a[N], b[N];
};

// The decoder of a format: the bits of a code, the number of values per scale, the scales of a block, and WIDTH codes
// beginning at value i of step `sub`. Sizes and offsets are from formats/block_formats.h.
template <WeightType T>
struct Codec;

template <WeightType T>
struct BlockCodec {
  static constexpr const QuantInfo& format = *block_format(T);
  static constexpr int elements = format.elements, size = format.bytes, scaled = format.scaled(),
                       bits = format.q.low.packing.bits + format.q.high.packing.bits;
  using Scale = Scales<elements / scaled>;
};
inline vi nibbles(const u8* p, int i) { return field(p, i % 16, i / 16 * 4); }
// Fifth bits of 32 values from one word, at bit 4. The bits above are arbitrary.
inline vi fifth_bits(const u8* p, int i) {
#if WIDTH == 16
  constexpr std::uint32_t left = 32 - 4;  // a rotation to the left by 4
  const vu32 by = (kReordered + static_cast<std::uint32_t>(i) + left) % 32u;
  return reinterpret_cast<vi>(
      _mm512_rorv_epi32(_mm512_set1_epi32(static_cast<int>(word(p))), reinterpret_cast<__m512i>(by)));
#else
  vi lane;
  for (int k = 0; k < WIDTH; ++k) lane[k] = i + k;
  return ((vi{} + static_cast<std::int32_t>(word(p))) >> lane & 1) << 4;
#endif
}

// Blocks with one scale, an optional minimum, and codes of nibbles with optional fifth bits.
template <WeightType T>
struct SmallBlock : BlockCodec<T> {
  using B = BlockCodec<T>;
  static typename B::Scale scales(const u8* p) {
    const float d = half(p + B::format.d);
    if constexpr (B::format.d_min >= 0) return {{d}, {half(p + B::format.d_min)}};
    else return {{d}, {static_cast<float>(B::format.q.bias) * d}};
  }
  static vi codes(const u8* p, int, int i) {
    const vi low = nibbles(p + B::format.q.low.at, i);
    if constexpr (B::bits == 4) return low;
    else return joined(low, 4, fifth_bits(p + B::format.q.high.at, i));
  }
};
template <>
struct Codec<WeightType::Q4_0> : SmallBlock<WeightType::Q4_0> {};
template <>
struct Codec<WeightType::Q4_1> : SmallBlock<WeightType::Q4_1> {};
template <>
struct Codec<WeightType::Q5_0> : SmallBlock<WeightType::Q5_0> {};
template <>
struct Codec<WeightType::Q5_1> : SmallBlock<WeightType::Q5_1> {};
template <>
struct Codec<WeightType::Q8_0> : BlockCodec<WeightType::Q8_0> {
  static Scale scales(const u8* p) { return {{half(p + format.d)}, {0}}; }
  static vi codes(const u8* p, int, int i) {
    return bytes(reinterpret_cast<const std::int8_t*>(p) + format.q.low.at + i);
  }
};

// Decodes eight six-bit scales and minima, which Q4_K and Q5_K pack into twelve bytes.
template <WeightType T>
inline Scales<8> six_bit_scales(const u8* p) {
  constexpr const QuantInfo& format = *block_format(T);
  constexpr int at = format.scale.low.at;
  const std::uint32_t w0 = word(p + at), w1 = word(p + at + 4), w2 = word(p + at + 8);
  const std::uint32_t packed[4] = {w0 & 0x3f3f3f3f, (w2 & 0x0f0f0f0f) | (w0 >> 6 & 0x03030303) << 4, w1 & 0x3f3f3f3f,
                                   (w2 >> 4 & 0x0f0f0f0f) | (w1 >> 6 & 0x03030303) << 4};
  u8 small[16];
  std::memcpy(small, packed, 16);
  const float d = half(p + format.d), m = -half(p + format.d_min);
  Scales<8> s;
  for (int j = 0; j < 8; ++j) s.a[j] = d * static_cast<float>(small[j]), s.b[j] = m * static_cast<float>(small[8 + j]);
  return s;
}
template <>
struct Codec<WeightType::Q4_K> : BlockCodec<WeightType::Q4_K> {
  static Scale scales(const u8* p) { return six_bit_scales<WeightType::Q4_K>(p); }
  static vi codes(const u8* p, int sub, int i) { return field(p + format.q.low.at + sub / 2 * 32, i, sub % 2 * 4); }
};
template <>
struct Codec<WeightType::Q5_K> : BlockCodec<WeightType::Q5_K> {
  static Scale scales(const u8* p) { return six_bit_scales<WeightType::Q5_K>(p); }
  static vi codes(const u8* p, int sub, int i) {
    const vi low = field(p + format.q.low.at + sub / 2 * 32, i, sub % 2 * 4);
    return joined(low, 4, field(p + format.q.high.at, i, sub - 4));
  }
};
template <>
struct Codec<WeightType::Q6_K> : BlockCodec<WeightType::Q6_K> {
  static Scale scales(const u8* p) {
    const float d = half(p + format.d);
    Scale s;
    for (int j = 0; j < 16; ++j) {
      s.a[j] = d * static_cast<float>(static_cast<std::int8_t>(p[format.scale.low.at + j]));
      s.b[j] = static_cast<float>(format.q.bias) * s.a[j];
    }
    return s;
  }
  static vi codes(const u8* p, int sub, int i) {
    const vi low = field(p + format.q.low.at + sub / 4 * 64 + sub % 2 * 32, i, sub % 4 / 2 * 4);
    return joined(low, 4, field(p + format.q.high.at + sub / 4 * 32, i, sub % 4 * 2 - 4));
  }
};
template <>
struct Codec<WeightType::Q2_K> : BlockCodec<WeightType::Q2_K> {
  static Scale scales(const u8* p) {
    const float d = half(p + format.d), m = -half(p + format.d_min);
    Scale s;
    for (int j = 0; j < 16; ++j) s.a[j] = d * static_cast<float>(p[j] & 15), s.b[j] = m * static_cast<float>(p[j] >> 4);
    return s;
  }
  static vi codes(const u8* p, int sub, int i) { return field(p + format.q.low.at + sub / 4 * 32, i, sub % 4 * 2); }
};
template <>
struct Codec<WeightType::Q3_K> : BlockCodec<WeightType::Q3_K> {
  static Scale scales(const u8* p) {
    const float d = half(p + format.d);
    Scale s;
    for (int j = 0; j < 16; ++j) {
      const int low = p[format.scale.low.at + j % 8] >> (j / 8 * 4) & 15,
                high = p[format.scale.high.at + j % 4] >> (j / 4 * 2) & 3;
      s.a[j] = d * static_cast<float>((low | high << 4) + format.scale.bias);
      s.b[j] = static_cast<float>(format.q.bias) * s.a[j];
    }
    return s;
  }
  static vi codes(const u8* p, int sub, int i) {
    const vi low = field(p + format.q.low.at + sub / 4 * 32, i, sub % 4 * 2);
    return joined(low, 2, field(p + format.q.high.at, i, sub - 2));
  }
};

// code * a + b. Bits above the code's own are ignored.
template <int Bits>
inline vf decoded(vi code, float a, float b) {
  constexpr int mask = (1 << Bits) - 1;
#if WIDTH == 16
  if constexpr (Bits <= 5) {
    vf low;  // the codes; shorter ones repeat
    for (int k = 0; k < WIDTH; ++k) low[k] = static_cast<float>(k & mask);
    const auto t0 = reinterpret_cast<__m512>(fma(low, splat(a), splat(b)));
    if constexpr (Bits <= 4) return reinterpret_cast<vf>(_mm512_permutexvar_ps(reinterpret_cast<__m512i>(code), t0));
    const auto t1 = reinterpret_cast<__m512>(fma(low + 16.0f, splat(a), splat(b)));
    return reinterpret_cast<vf>(_mm512_permutex2var_ps(t0, reinterpret_cast<__m512i>(code), t1));
  }
#endif
  return fma(as_float(code & mask), splat(a), splat(b));
}

// WIDTH values beginning at value i of step `sub`, in the order of the type.
template <WeightType T>
inline vf values(const u8* block, const typename Codec<T>::Scale& s, int sub, int i) {
  using C = Codec<T>;
  const int at = (sub * kStep + i) / C::scaled;
  const vi q = C::codes(block, sub, i);
  if constexpr (T == WeightType::Q8_0) return as_float(q) * splat(s.a[at]);
  if constexpr (C::scaled % WIDTH == 0) return decoded<C::bits>(q, s.a[at], s.b[at]);
}

// Weights that are stored as plain numbers.
template <WeightType T>
struct Plain;
template <>
struct Plain<WeightType::F32> {
  static constexpr i64 bytes = 4;
  static vf get(const std::byte* p, i64 i) { return load(reinterpret_cast<const float*>(p) + i); }
  static float one(const std::byte* p, i64 i) { return reinterpret_cast<const float*>(p)[i]; }
};
template <>
struct Plain<WeightType::F16> {
  static constexpr i64 bytes = 2;
  static vf get(const std::byte* p, i64 i) { return from_half(reinterpret_cast<const std::uint16_t*>(p) + i); }
  static float one(const std::byte* p, i64 i) { return f16_to_f32(reinterpret_cast<const std::uint16_t*>(p)[i]); }
};
template <>
struct Plain<WeightType::BF16> {
  static constexpr i64 bytes = 2;
  static vf get(const std::byte* p, i64 i) { return from_bf16(reinterpret_cast<const std::uint16_t*>(p) + i); }
  static float one(const std::byte* p, i64 i) { return bf16_to_f32(reinterpret_cast<const std::uint16_t*>(p)[i]); }
};
template <>
struct Plain<WeightType::Bytes> {
  static constexpr i64 bytes = 1;
  static vf get(const std::byte* p, i64 i) { return as_float(cpu::bytes(reinterpret_cast<const std::int8_t*>(p) + i)); }
  static float one(const std::byte* p, i64 i) { return reinterpret_cast<const std::int8_t*>(p)[i]; }
};

// Calls f.template operator()<T>() for the type, which must satisfy `among`.
template <auto among, class F>
inline void with_type_among(WeightType t, const F& f) {
  const auto try_one = [&]<WeightType T>() {
    if constexpr (among(T)) {
      if (t == T) f.template operator()<T>();
      return t == T;
    } else {
      return false;
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    if (!(try_one.template operator()<kWeightFormats[I].type>() || ...)) __builtin_unreachable();
  }(std::make_index_sequence<std::size(kWeightFormats)>());
}
// Exact products have panels of their own for signed bytes; blocks without a codec are in decoded_blocks.inl.h.
constexpr bool not_exact(WeightType t) { return t != WeightType::I8 && !is_decoded(t); }
template <class F>
inline void with_type(WeightType t, const F& f) {
  with_type_among<not_exact>(t, f);
}

}  // namespace
}  // namespace lc::backends::cpu
