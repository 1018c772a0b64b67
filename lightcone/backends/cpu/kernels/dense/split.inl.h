// f32 numbers as sums of bf16 numbers: x = hi + mid (+ lo), each the remainder rounded to nearest. Three parts hold all
// 24 bits.
//
// Tiles treat subnormal numbers as zero, parts and sums alike. A row of A whose nonzero numbers are not all in
// [2^-40, 2^60) is therefore scaled: it is multiplied by a power of two that makes its largest number nearly 2^84, and
// its sums by the inverse in the end. A product of split numbers is at least 2^-96, compared with which the loss of
// tiles, 2^-126 per step, is negligible, and no sum of products reaches 2^127.
//
// Within a step of 32 k, a row of A is split if its nonzero numbers, scaled, are at least 2^-40, and a column of B if
// its nonzero numbers are in [2^-56, 2^30). Any other row or column keeps its f32 numbers, and tiles see zeros:
// infinities and NaN (inf * 0 of a lower part would be NaN), and numbers far smaller than their row's largest. Its
// products are f32 multiply-adds, added after those of the tiles, step by step. A number of C therefore depends only on
// its own row and column, whatever their neighbors are and however rows are distributed.
#pragma once

#include <algorithm>

#include "lightcone/backends/cpu/kernels/dense/dense.inl.h"

namespace lc::backends::cpu {
namespace {

// Bytes of a header, and of a plane of 16 rows or columns.
constexpr int kStepOfSplit = 32, kHeader = 64, kPlane = 16 * kStepOfSplit * 2;
constexpr int kSplitRows = 32;  // rows of a strip of A
constexpr int split_bytes(int planes) { return kHeader + planes * kPlane; }

// Bits of a power of two.
constexpr int bits_of(int exponent) { return (exponent + 127) << 23; }
inline float power(int exponent) { return std::bit_cast<float>(bits_of(exponent)); }
constexpr int kTop = 83;  // exponent of the largest number of a row that is scaled
constexpr int kLeastOfA = bits_of(-40), kUnscaled = bits_of(60), kInfinite = 255 << 23;
constexpr int kLeastOfB = bits_of(-56), kMostOfB = bits_of(30);

// Header of a step's parts. Bit i of `plain` is set if row or column i is not split. For A, `exponent` is the power of
// two that a row was multiplied by, the same in all steps of a call of `tile`.
struct SplitHeader {
  std::uint32_t plain;
  std::int8_t exponent[kSplitRows];
};
inline SplitHeader header(const std::byte* step) {
  SplitHeader h;
  std::memcpy(&h, step, sizeof h);
  return h;
}
inline void put_header(const SplitHeader& h, std::byte* step) {
  std::memset(step, 0, kHeader);
  std::memcpy(step, &h, sizeof h);
}
inline std::uint32_t plain(const std::byte* step) {
  std::uint32_t bits;
  std::memcpy(&bits, step, sizeof bits);
  return bits;
}

inline vi sizes(vf v) { return reinterpret_cast<vi>(v) & 0x7fffffff; }
inline bool any(vi lanes) {
#if defined(__AVX512F__) && WIDTH == 16
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(lanes), reinterpret_cast<__m512i>(lanes)) != 0;
#endif
  int all = 0;
  for (int i = 0; i < WIDTH; ++i) all |= lanes[i];
  return all != 0;
}
// All bits of lane i are set if bit first + i is set.
inline vi lanes_of(std::uint32_t bits, int first) {
  vi v = {};
  for (int i = 0; i < WIDTH; ++i) v[i] = -static_cast<int>(bits >> (first + i) & 1);
  return v;
}
inline vf choose(vi lanes, vf yes, vf no) {
  return reinterpret_cast<vf>((lanes & reinterpret_cast<vi>(yes)) | (~lanes & reinterpret_cast<vi>(no)));
}

// The parts of numbers that can be split, in the upper halves of lanes.
template <int Parts>
inline void parts_of(vf v, vu (&part)[Parts]) {
  for (int p = 0; p < Parts; ++p) {
    part[p] = rounded(v);
    v = v - reinterpret_cast<vf>(part[p]);
  }
}
inline vf low_half(vu v) { return reinterpret_cast<vf>(v << 16); }
inline vf high_half(vu v) { return reinterpret_cast<vf>(v & 0xffff0000u); }

// Finds the powers of two by which rows are multiplied, from their least and largest finite numbers. For the smallest
// rows one power is not enough, but the limits above hold for them too.
inline void find_exponents(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, std::int8_t (&exponent)[kSplitRows]) {
  std::int32_t largest[kSplitRows] = {}, least[kSplitRows];
  std::fill(least, least + kSplitRows, kInfinite);
  const auto see = [&](i64 r, float x) {
    const std::int32_t size = std::bit_cast<std::int32_t>(x) & 0x7fffffff;
    largest[r] = std::max(largest[r], size < kInfinite ? size : 0);
    least[r] = std::min(least[r], size > 0 ? size : kInfinite);
  };
  if (a_k != 1) {  // rows are probably contiguous in memory
    for (i64 k = 0; k < depth; ++k)
      for (i64 r = 0; r < rows; ++r) see(r, a[r * a_m + k * a_k]);
  } else {
    for (i64 r = 0; r < rows; ++r) {
      vi most = {}, fewest = vi{} + kInfinite;
      i64 k = 0;
      for (; k + WIDTH <= depth; k += WIDTH) {
        vi size = sizes(load(a + r * a_m + k));
        const vi some = size > 0 ? size : vi{} + kInfinite;
        fewest = some < fewest ? some : fewest;
        size &= size < kInfinite;
        most = size > most ? size : most;
      }
      for (int i = 0; i < WIDTH; ++i)
        largest[r] = std::max(largest[r], most[i]), least[r] = std::min(least[r], fewest[i]);
      for (; k < depth; ++k) see(r, a[r * a_m + k]);
    }
  }
  for (int r = 0; r < kSplitRows; ++r) {
    const bool scaled = largest[r] >= kUnscaled || least[r] < kLeastOfA;
    exponent[r] = static_cast<std::int8_t>(scaled && largest[r] ? std::min(126, kTop + 127 - (largest[r] >> 23)) : 0);
  }
}

inline vu pairs(vu even, vu odd) { return even >> 16 | odd; }

// Splits one step of a row of A. Returns whether it is split.
template <int Parts>
bool split_row(const float (&x)[kStepOfSplit], float scale, std::byte* to) {
  vi bad = {};
  for (int e = 0; e < kStepOfSplit; e += WIDTH) {
    const vi size = sizes(load(x + e) * scale);
    bad |= (sizes(load(x + e)) != 0) & ((size < kLeastOfA) | (size >= kInfinite));
  }
  const bool split = !any(bad);
#if defined(__AVX512BF16__) && WIDTH == 16
  if (split) {
    vf low = load(x) * scale, high = load(x + WIDTH) * scale;
    for (int p = 0; p < Parts; ++p) {
      const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
      _mm512_store_si512(to + p * kPlane, both);
      const auto wide = [](__m256i half) {
        return reinterpret_cast<vf>(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
      };
      low = low - wide(_mm512_castsi512_si256(both)), high = high - wide(_mm512_extracti64x4_epi64(both, 1));
    }
    return true;
  }
#endif
  for (int e = 0; e < 16; e += WIDTH) {
    const auto [low, high] = even_and_odd(x + 2 * e);
    vu even[Parts], odd[Parts], word[Parts] = {reinterpret_cast<vu>(low), reinterpret_cast<vu>(high)};
    parts_of<Parts>(low * scale, even), parts_of<Parts>(high * scale, odd);
    for (int p = 0; p < Parts; ++p)
      *reinterpret_cast<vu_stored*>(to + p * kPlane + e * 4) = split ? pairs(even[p], odd[p]) : word[p];
  }
  return split;
}

// Packs A. A step of 32 rows is a header, then u16 [parts][16][32] for each 16 rows. If a row is not split, the first
// part holds its numbers of even k, the second those of odd k.
template <int Parts>
void split_a(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int, void* to) {
  auto* out = static_cast<std::byte*>(to);
  for (i64 i = 0; i < rows; i += kSplitRows) {
    const i64 there = std::min<i64>(kSplitRows, rows - i);
    SplitHeader h{};
    find_exponents(a + i * a_m, a_m, a_k, there, depth, h.exponent);
    for (i64 k = 0; k < depth; k += kStepOfSplit, out += split_bytes(2 * Parts)) {
      h.plain = 0;
      for (i64 r = 0; r < kSplitRows; ++r) {
        alignas(64) float x[kStepOfSplit];
        load_row(a + (i + r) * a_m + k * a_k, a_k, r < there ? std::min<i64>(kStepOfSplit, depth - k) : 0, x);
        std::byte* row = out + kHeader + r / 16 * Parts * kPlane + r % 16 * 64;
        if (!split_row<Parts>(x, power(h.exponent[r]), row)) h.plain |= std::uint32_t{1} << r;
      }
      put_header(h, out);
    }
  }
}

// Packs B. A step of 16 columns is a header, then u16 [parts][16][16][2]. Columns that are not split are stored like
// such rows of A.
template <int Parts>
void split_b(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  f32_columns(g, j0, columns, k0, depth, [&](i64 group, i64 k, i64 d, const float* from) {
    std::byte* out = static_cast<std::byte*>(to) + group * b_group + k / kStepOfSplit * split_bytes(Parts);
    for (i64 s = 0; s < d; s += kStepOfSplit, out += split_bytes(Parts)) {
      alignas(64) float x[kStepOfSplit][kGroup] = {};
      for (i64 e = 0; e < std::min<i64>(kStepOfSplit, d - s); ++e)
        std::memcpy(x[e], from + (s + e) * kGroup, sizeof x[e]);
      SplitHeader h{};
      for (int v = 0; v < kGroup; v += WIDTH) {
        vi bad = {};
        for (const auto& row : x) {
          const vi size = sizes(load(row + v));
          bad |= (size != 0) & ((size < kLeastOfB) | (size >= kMostOfB));
        }
        for (int i = 0; any(bad) && i < WIDTH; ++i) h.plain |= (bad[i] & 1u) << (v + i);
        for (int e = 0; e < kStepOfSplit; e += 2) {
          const vf low = load(x[e] + v), high = load(x[e + 1] + v);
          vu even[Parts], odd[Parts], word[Parts] = {reinterpret_cast<vu>(low), reinterpret_cast<vu>(high)};
          parts_of<Parts>(low, even), parts_of<Parts>(high, odd);
          for (int p = 0; p < Parts; ++p)
            *reinterpret_cast<vu_stored*>(out + kHeader + p * kPlane + e / 2 * 64 + v * 4) =
                bad ? word[p] : pairs(even[p], odd[p]);
        }
      }
      put_header(h, out);
    }
  });
}

// Returns the step with zeros for rows that are not split: the step itself, or a copy in `room`.
template <int Parts>
const std::byte* split_part_of_a(const std::byte* step, std::byte* room) {
  const std::uint32_t bits = plain(step);
  if (bits == 0) return step;
  std::memcpy(room, step, split_bytes(2 * Parts));
  for (int r = 0; r < kSplitRows; ++r)
    for (int p = 0; (bits >> r & 1) && p < Parts; ++p)
      std::memset(room + kHeader + (r / 16 * Parts + p) * kPlane + r % 16 * 64, 0, 64);
  return room;
}
template <int Parts>
const std::byte* split_part_of_b(const std::byte* step, std::byte* room) {
  const std::uint32_t bits = plain(step);
  if (bits == 0) return step;
  for (int v = 0; v < kGroup; v += WIDTH) {
    const vi bad = lanes_of(bits, v);
    for (int at = kHeader + v * 4; at < split_bytes(Parts); at += 64)
      *reinterpret_cast<vu_stored*>(room + at) =
          *reinterpret_cast<const vu_stored*>(step + at) & reinterpret_cast<vu>(~bad);
  }
  return room;
}

// Adds the parts of the two numbers of word i, the smallest first.
template <int Parts>
inline void join(const std::byte* planes, int i, vf& low, vf& high) {
  low = high = vf{};
  for (int p = Parts - 1; p >= 0; --p) {
    const vu w = *reinterpret_cast<const vu_stored*>(planes + p * kPlane + i * 4);
    low = low + low_half(w), high = high + high_half(w);
  }
}
inline vf word_of(const std::byte* planes, int part, int i) {
  return *reinterpret_cast<const vf_stored*>(planes + part * kPlane + i * 4);
}

// Restores the numbers of a step, split or not.
template <int Parts>
void join_a(const std::byte* step, float (&x)[kSplitRows][kStepOfSplit]) {
  const SplitHeader h = header(step);
  for (int r = 0; r < kSplitRows; ++r) {
    const std::byte* planes = step + kHeader + r / 16 * Parts * kPlane;
    for (int e = 0; e < 16; e += WIDTH) {
      const int i = r % 16 * 16 + e;
      vf low, high;
      if (h.plain >> r & 1) {
        low = word_of(planes, 0, i), high = word_of(planes, 1, i);
      } else {
        join<Parts>(planes, i, low, high);
        low = low * power(-h.exponent[r]), high = high * power(-h.exponent[r]);
      }
      for (int k = 0; k < WIDTH; ++k) x[r][2 * (e + k)] = low[k], x[r][2 * (e + k) + 1] = high[k];
    }
  }
}
template <int Parts>
void join_b(const std::byte* step, float (&y)[kStepOfSplit][kGroup]) {
  const std::byte* planes = step + kHeader;
  for (int v = 0; v < kGroup; v += WIDTH) {
    const vi bad = lanes_of(plain(step), v);
    for (int e = 0; e < kStepOfSplit; e += 2) {
      const int i = e / 2 * kGroup + v;
      vf low, high;
      join<Parts>(planes, i, low, high);
      store(y[e] + v, choose(bad, word_of(planes, 0, i), low));
      store(y[e + 1] + v, choose(bad, word_of(planes, 1, i), high));
    }
  }
}

}  // namespace
}  // namespace lc::backends::cpu
