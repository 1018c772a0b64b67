// Quantization of activations to signed bytes, with one scale per step of a row.
#pragma once

#include <algorithm>
#include <utility>

#include "lightcone/backends/cpu/kernels/dense/dense_panel.inl.h"

namespace lc::backends::cpu {
namespace {

// 1.5 * 2^23. Adding it to a float rounds the float to an integer, and adding an integer below 2^22 to its bits gives
// the bits of their sum. Subtracting it again is cheaper than a conversion, because a sum needs an initial value
// anyway.
constexpr float kWholeBias = 12582912.0f;
constexpr std::int32_t kWholeBits = 0x4b400000;
inline vf whole(vi v) { return reinterpret_cast<vf>(v) - kWholeBias; }

// Sums of the codes of one step of a strip, for formats with minima.
template <int Rows>
struct RowSums {
  float sum[Rows];  // scale * sum of codes, multiplied by minima of B
};
struct NoSums {};
// A step of a strip of quantized rows.
template <int Rows, int Step, bool Min>
struct Quantised : std::conditional_t<Min, RowSums<Rows>, NoSums> {
  float scale[Rows];
  std::int32_t start[Rows];  // kWholeBits - zero * sum of codes, because B's codes are offset by zero
  std::int8_t codes[Rows][Step];
};

// Fused multiply-add on every instruction set, so that int8 products have the same bits on all of them.
inline vf fused(vf a, vf b, vf c) {
#if WIDTH >= 8 || defined(NEON)
  return fma(a, b, c);
#else
  vf r;
  for (int i = 0; i < WIDTH; ++i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}

// Adds a step's integer sums, which began with a's start, to the accumulators of row i and the columns from `lane` on.
template <bool Min, class A, class Panel>
inline vf add_step(vf acc, vi sums, const A& a, int i, const Panel& b, int lane) {
  acc = fused(whole(sums), splat(a.scale[i]) * b.scale(lane), acc);
  if constexpr (Min) acc = fused(-load(b.min() + lane), splat(a.sum[i]), acc);
  return acc;
}

// Reduces the lanes by an operation for which their order does not matter.
template <int Half = WIDTH / 2, class F>
inline std::int32_t across(vi v, const F& f) {
  if constexpr (Half == 0) {
    return v[0];
  } else {
    return across<Half / 2>(f(v, lanes(v, v, [](int i) { return i ^ Half; })), f);
  }
}

// Bits of the largest magnitude of a step. As integers they are ordered like the numbers, then infinity, then NaN.
template <int Step>
inline std::int32_t largest_bits(const float* x) {
  vi top = {};
  for (int t = 0; t < Step; t += WIDTH) {
    const vi size = reinterpret_cast<vi>(load(x + t)) & 0x7fffffff;
    top = size > top ? size : top;
  }
  return across(top, [](vi a, vi b) { return a > b ? a : b; });
}
inline void store_bytes(std::int8_t* to, vi v) {
#if WIDTH == 16
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(v)));
#else
  alignas(WIDTH * 4) std::int32_t whole[WIDTH];
  store(reinterpret_cast<float*>(whole), reinterpret_cast<vf>(v));
  for (int i = 0; i < WIDTH; ++i) to[i] = static_cast<std::int8_t>(whole[i]);
#endif
}
// Rounds a step's numbers times `inverse` to the nearest signed bytes and returns their sum.
template <int Step>
inline std::int32_t round_step(const float* x, float inverse, std::int8_t* codes) {
  vi sum = {};
  for (int t = 0; t < Step; t += WIDTH) {
    const vi q = reinterpret_cast<vi>(load(x + t) * splat(inverse) + kWholeBias) - kWholeBits;
    sum += q;
    store_bytes(codes + t, q);
  }
  return across(sum, [](vi a, vi b) { return a + b; });
}

// Quantizes up to kSteps steps at a time, which share a division: codes are the nearest signed bytes of x / scale, and
// the largest magnitude becomes 127. Values that are not finite make the scale NaN. If all magnitudes are below 2^-120,
// the codes are zero. to(s) returns the destinations {scale, codes} of step s; sums(s, sum) receives the sum of its
// codes.
constexpr int kSteps = WIDTH;
template <int Step, class To, class Sum>
inline void quantise_steps(const float* x, i64 count, const To& to, const Sum& sums) {
  alignas(64) std::int32_t largest[kSteps] = {};
  alignas(64) float inverse[kSteps], scale[kSteps];
  for (i64 s = 0; s < count; ++s) largest[s] = largest_bits<Step>(x + s * Step);
  const vf top = load(reinterpret_cast<const float*>(largest));
  store(inverse, 127.0f / top);
  store(scale, top / 127.0f);
  for (i64 s = 0; s < count; ++s) {
    const auto [to_scale, codes] = to(s);
    if (largest[s] >= 0x7f800000 || largest[s] < (127 - 120) << 23) {
      *to_scale = largest[s] >= 0x7f800000 ? std::bit_cast<float>(0x7fc00000) : 0.0f;
      std::memset(codes, 0, Step);
      sums(s, 0);
      continue;
    }
    *to_scale = scale[s];
    sums(s, round_step<Step>(x + s * Step, inverse[s], codes));
  }
}

template <int Rows, int Step, bool Min>
void quantise(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int zero, void* to) {
  using Strip = Quantised<Rows, Step, Min>;
  auto* out = static_cast<Strip*>(to);
  const i64 steps = (depth + Step - 1) / Step;
  for (i64 i = 0; i < rows; i += Rows, out += steps)
    for (i64 r = 0; r < Rows; ++r)
      for (i64 s0 = 0; s0 < steps; s0 += kSteps) {
        const i64 count = std::min<i64>(kSteps, steps - s0), first = s0 * Step;
        const float* from = a + (i + r) * a_m + first * a_k;
        // The rows of a strip are too far apart for hardware prefetchers.
        if (i + r + 1 < rows)
          for (i64 k = 0; k < count * Step; k += 16) __builtin_prefetch(from + a_m + k * a_k);
        alignas(64) float row[kSteps * Step];
        const i64 there = i + r < rows ? std::min(count * Step, depth - first) : 0;
        if (there < count * Step || a_k != 1) {
          for (i64 k = 0; k < count * Step; ++k) row[k] = k < there ? from[k * a_k] : 0.0f;
          from = row;
        }
        quantise_steps<Step>(
            from, count,
            [&](i64 s) {
              return std::pair{&out[s0 + s].scale[r], out[s0 + s].codes[r]};
            },
            [&](i64 s, std::int32_t sum) {
              Strip& o = out[s0 + s];
              o.start[r] = kWholeBits - zero * sum;
              if constexpr (Min) o.sum[r] = o.scale[r] * static_cast<float>(sum);
            });
      }
}

}  // namespace
}  // namespace lc::backends::cpu
