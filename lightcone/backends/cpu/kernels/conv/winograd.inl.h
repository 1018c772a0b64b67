// One-dimensional transforms of Winograd's F(4x4, 3x3): points 0, +-1, +-2, infinity. A tile is transformed along its
// columns, then along its rows.
#pragma once

#include "lightcone/backends/cpu/kernels/vectors/vector.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kTile = 6, kOut = 4;

inline void filter_line(const vf (&g)[3], vf (&u)[kTile]) {
  const vf a = (g[0] + g[2]) * (-1.0f / 6), b = g[1] * (-1.0f / 6);
  const vf c = g[0] * (1.0f / 24) + g[2] * (1.0f / 6), d = g[1] * (1.0f / 12);
  u[0] = g[0] * 0.25f, u[1] = a + b, u[2] = a - b, u[3] = c + d, u[4] = c - d, u[5] = g[2];
}
inline void image_line(const vf (&d)[kTile], vf (&v)[kTile]) {
  const vf four = splat(4.0f), minus_four = splat(-4.0f), minus_five = splat(-5.0f);
  const vf a = fma(minus_four, d[2], d[4]), b = fma(minus_four, d[1], d[3]);
  const vf c = d[4] - d[2], e = (d[3] - d[1]) * 2.0f;
  v[0] = fma(four, d[0], fma(minus_five, d[2], d[4]));
  v[1] = a + b, v[2] = a - b, v[3] = c + e, v[4] = c - e;
  v[5] = fma(four, d[1], fma(minus_five, d[3], d[5]));
}
inline void out_line(const vf (&m)[kTile], vf (&y)[kOut]) {
  const vf a = m[1] + m[2], b = m[1] - m[2], c = m[3] + m[4], d = m[3] - m[4];
  y[0] = m[0] + a + c, y[1] = fma(splat(2.0f), d, b), y[2] = fma(splat(4.0f), c, a);
  y[3] = fma(splat(8.0f), d, b) + m[5];
}

// Winograd's transforms mix the numbers of a tile: an infinity or a NaN would reach outputs that do not read it, and
// very large numbers would overflow. Such tiles are left to the direct algorithm.
constexpr std::int32_t kLarge = (127 + 48) << 23;  // 2^48, as bits
inline vi large(vf x) { return (reinterpret_cast<vi>(x) & 0x7fffffff) >= kLarge; }
inline bool none(vi mask) {
  std::int32_t any = 0;
  for (int i = 0; i < WIDTH; ++i) any |= mask[i];
  return any == 0;
}

}  // namespace
}  // namespace lc::backends::cpu
