// Activations as signed bytes, a scale for every step of a row.
#pragma once

#include "lightcone/backends/cpu/kernels/dense_panel.inl.h"

namespace lc::host {
namespace {

// One step of a strip.
template <int Rows>
struct RowSums {
  float sum[Rows];  // scale * sum of codes: what a minimum of B is multiplied by
};
struct NoSums {};
template <int Rows, int Step, bool Min>
struct Quantised : std::conditional_t<Min, RowSums<Rows>, NoSums> {
  float scale[Rows];
  std::int32_t start[Rows];  // -zero * sum of codes: B's codes count from zero on
  std::int8_t codes[Rows][Step];
};

// A fused multiply-add whatever the instruction set: the bits of int8 products do not depend on it.
inline vf fused(vf a, vf b, vf c) {
#if WIDTH >= 8 || defined(NEON)
  return fma(a, b, c);
#else
  vf r;
  for (int i = 0; i < WIDTH; ++i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}

// The sums of a step, counted from a's start on, for row i and the columns from `lane` on, on their way to C.
template <bool Min, class A, class Panel>
inline vf add_step(vf acc, vi sums, const A& a, int i, const Panel& b, int lane) {
  acc = fused(as_float(sums), splat(a.scale[i]) * load(b.scale() + lane), acc);
  if constexpr (Min) acc = fused(-load(b.min() + lane), splat(a.sum[i]), acc);
  return acc;
}

// The lanes joined by an operation in which their order does not matter.
template <int Half = WIDTH / 2, class F>
inline std::int32_t across(vi v, const F& f) {
  if constexpr (Half == 0) {
    return v[0];
  } else {
    vi other;
    for (int i = 0; i < WIDTH; ++i) other[i] = i ^ Half;
    return across<Half / 2>(f(v, __builtin_shuffle(v, other)), f);
  }
}

// Nearest signed bytes of x / scale; their sum. The largest magnitude becomes 127. What is not finite makes the scale
// NaN; where all is below 2^-120 the codes are zero.
template <int Step>
inline int quantise_step(const float* x, float& scale, std::int8_t* codes) {
  constexpr int vectors = Step / WIDTH;
  vf v[vectors];
  vi top = {};
  for (int t = 0; t < vectors; ++t) {
    v[t] = load(x + t * WIDTH);
    const vi size = reinterpret_cast<vi>(v[t]) & 0x7fffffff;
    top = size > top ? size : top;
  }
  const std::int32_t largest = across(top, [](vi a, vi b) { return a > b ? a : b; });
  if (largest >= 0x7f800000 || largest < (127 - 120) << 23) {
    scale = largest >= 0x7f800000 ? std::bit_cast<float>(0x7fc00000) : 0.0f;
    std::memset(codes, 0, Step);
    return 0;
  }
  scale = std::bit_cast<float>(largest) / 127.0f;
  const vf inverse = splat(127.0f / std::bit_cast<float>(largest));
  vi sum = {};
  alignas(64) std::int32_t whole[Step];
  for (int t = 0; t < vectors; ++t) {  // added to 1.5 * 2^23, a number is rounded to a whole one
    const vi q = reinterpret_cast<vi>(v[t] * inverse + 12582912.0f) - 0x4b400000;
    sum += q;
    store(reinterpret_cast<float*>(whole) + t * WIDTH, reinterpret_cast<vf>(q));
  }
  for (int k = 0; k < Step; ++k) codes[k] = static_cast<std::int8_t>(whole[k]);
  return across(sum, [](vi a, vi b) { return a + b; });
}

template <int Rows, int Step, bool Min>
void quantise(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int zero, void* to) {
  using Strip = Quantised<Rows, Step, Min>;
  auto* out = static_cast<Strip*>(to);
  const i64 steps = (depth + Step - 1) / Step;
  for (i64 i = 0; i < rows; i += Rows, out += steps)
    for (i64 r = 0; r < Rows; ++r)
      for (i64 s = 0; s < steps; ++s) {
        Strip& o = out[s];
        const float* from = a + (i + r) * a_m + s * Step * a_k;
        const i64 count = i + r < rows ? std::min<i64>(Step, depth - s * Step) : 0;
        alignas(64) float row[32];
        if (count < Step || a_k != 1) load_row(from, a_k, count, row), from = row;
        const int sum = quantise_step<Step>(from, o.scale[r], o.codes[r]);
        o.start[r] = -zero * sum;
        if constexpr (Min) o.sum[r] = o.scale[r] * static_cast<float>(sum);
      }
}

}  // namespace
}  // namespace lc::host
