// f32 numbers as sums of bf16 numbers: x = hi + mid (+ lo), each the rest rounded to nearest. Three hold all 24 bits.
//
// A step of 32 k is split if its numbers other than zero are all in [2^-100, 2^63). Then no part is subnormal, which
// the hardware would take for zero, and no product of parts overflows unless the product of the numbers does. Any other
// step (infinities and NaN: inf * 0 of a lower part would be NaN; numbers of extreme size) keeps its f32 numbers, and
// its products are f32 multiply-adds.
#pragma once

#include "lightcone/backends/cpu/kernels/dense.inl.h"

namespace lc::host {
namespace {

constexpr int kStepOfSplit = 32, kHeader = 64, kPlane = 16 * kStepOfSplit * 2;  // bytes of 16 rows or columns
constexpr int split_bytes(int planes) { return kHeader + planes * kPlane; }
inline bool is_split(const std::byte* step) { return step[0] == std::byte{1}; }

template <std::size_t Rows, std::size_t Columns>
inline bool can_split(const float (&x)[Rows][Columns]) {
  vi bad = {};
  for (const auto& row : x)
    for (std::size_t i = 0; i < Columns; i += WIDTH) {
      const vi size = reinterpret_cast<vi>(load(row + i)) & 0x7fffffff;
      bad |= (size != 0) & ((size < (127 - 100) << 23) | (size >= (127 + 63) << 23));
    }
  int any = 0;
  for (int i = 0; i < WIDTH; ++i) any |= bad[i];
  return any == 0;
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

// A: a step of 32 rows is its header, then for each 16 rows u16 [parts][16][32], or f32 [16][32].
template <int Parts>
void split_a(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int, void* to) {
  auto* out = static_cast<std::byte*>(to);
  for (i64 i = 0; i < rows; i += 32)
    for (i64 k = 0; k < depth; k += kStepOfSplit, out += split_bytes(2 * Parts)) {
      alignas(64) float x[32][kStepOfSplit];
      for (i64 r = 0; r < 32; ++r)
        load_row(a + (i + r) * a_m + k * a_k, a_k, i + r < rows ? std::min<i64>(32, depth - k) : 0, x[r]);
      const bool split = can_split(x);
      std::memset(out, split, kHeader);
      for (int half = 0; half < 2; ++half) {
        std::byte* planes = out + kHeader + half * Parts * kPlane;
        if (!split) {
          std::memcpy(planes, x + 16 * half, 2 * kPlane);
          continue;
        }
        for (int r = 0; r < 16; ++r)
          for (int e = 0; e < 16; e += WIDTH) {
            vu even[Parts], odd[Parts];
            const auto [low, high] = even_and_odd(x[16 * half + r] + 2 * e);
            parts_of<Parts>(low, even), parts_of<Parts>(high, odd);
            for (int p = 0; p < Parts; ++p)
              *reinterpret_cast<vu_stored*>(planes + p * kPlane + r * 64 + e * 4) = pairs(even[p], odd[p]);
          }
      }
    }
}

// B: a step of 16 columns is its header, then u16 [parts][16][16][2], or f32 [32][16].
template <int Parts>
void split_b(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  f32_columns(g, j0, columns, k0, depth, [&](i64 group, i64 k, i64 d, const float* from) {
    std::byte* out = static_cast<std::byte*>(to) + group * b_group + k / kStepOfSplit * split_bytes(Parts);
    for (i64 s = 0; s < d; s += kStepOfSplit, out += split_bytes(Parts)) {
      alignas(64) float x[kStepOfSplit][kGroup] = {};
      for (i64 e = 0; e < std::min<i64>(kStepOfSplit, d - s); ++e)
        std::memcpy(x[e], from + (s + e) * kGroup, sizeof x[e]);
      const bool split = can_split(x);
      std::memset(out, split, kHeader);
      if (!split) {
        std::memcpy(out + kHeader, x, sizeof x);
        continue;
      }
      for (int e = 0; e < kStepOfSplit; e += 2)
        for (int v = 0; v < kGroup; v += WIDTH) {
          vu even[Parts], odd[Parts];
          parts_of<Parts>(load(x[e] + v), even), parts_of<Parts>(load(x[e + 1] + v), odd);
          for (int p = 0; p < Parts; ++p)
            *reinterpret_cast<vu_stored*>(out + kHeader + p * kPlane + e / 2 * 64 + v * 4) = pairs(even[p], odd[p]);
        }
    }
  });
}

// The sum of word i's parts, the smallest first: its two numbers.
template <int Parts>
inline void join(const std::byte* planes, int i, vf& low, vf& high) {
  low = high = vf{};
  for (int p = Parts - 1; p >= 0; --p) {
    const vu w = *reinterpret_cast<const vu_stored*>(planes + p * kPlane + i * 4);
    low = low + low_half(w), high = high + high_half(w);
  }
}

// The numbers of a step again, split or not.
template <int Parts>
void join_a(const std::byte* step, float (&x)[2][16][kStepOfSplit]) {
  for (int half = 0; half < 2; ++half) {
    const std::byte* planes = step + kHeader + half * Parts * kPlane;
    if (!is_split(step)) {
      std::memcpy(x[half], planes, sizeof x[half]);
      continue;
    }
    for (int i = 0; i < 16 * 16; i += WIDTH) {
      vf low, high;
      join<Parts>(planes, i, low, high);
      float* to = x[half][i / 16] + i % 16 * 2;
      for (int e = 0; e < WIDTH; ++e) to[2 * e] = low[e], to[2 * e + 1] = high[e];
    }
  }
}
template <int Parts>
void join_b(const std::byte* step, float (&y)[kStepOfSplit][kGroup]) {
  if (!is_split(step)) {
    std::memcpy(y, step + kHeader, sizeof y);
    return;
  }
  for (int i = 0; i < 16 * kGroup; i += WIDTH) {
    vf low, high;
    join<Parts>(step + kHeader, i, low, high);
    store(y[i / kGroup * 2] + i % kGroup, low);
    store(y[i / kGroup * 2 + 1] + i % kGroup, high);
  }
}

}  // namespace
}  // namespace lc::host
