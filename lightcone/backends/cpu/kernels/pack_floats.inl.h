// Rows of A for tiles that multiply f32 numbers: strips of MR rows, [k][MR] each.
#pragma once

#include "lightcone/backends/cpu/kernels/vector.inl.h"

namespace lc::host {
namespace {

// h rows side by side, each number as `as` makes it. Whole vectors are stored: what they write behind a row belongs to
// the next one; only the last row of the strip ends where it must.
template <class As>
void pack_strip(const float* from, i64 a_m, i64 a_k, i64 h, i64 depth, float* to, const As& as) {
  constexpr int parts = (MR + WIDTH - 1) / WIDTH;  // vectors of a row of the strip
  i64 k = 0;
  if (a_k == 1)
    for (; k + WIDTH <= depth; k += WIDTH) {
      vf v[parts][WIDTH];
      for (int p = 0; p < parts; ++p) {
        for (i64 r = 0; r < WIDTH; ++r) {
          const i64 row = p * WIDTH + r;
          v[p][r] = row < h ? as(load(from + row * a_m + k)) : vf{};
        }
        transpose(v[p]);
      }
      for (int e = 0; e < WIDTH; ++e)
        for (int p = 0; p < parts; ++p) {
          float* at = to + (k + e) * MR + p * WIDTH;
          if (e + 1 < WIDTH || (p + 1) * WIDTH <= MR) store(at, v[p][e]);
          else store_part(at, v[p][e], MR - p * WIDTH);
        }
    }
  for (; k < depth; ++k)
    for (i64 r = 0; r < MR; ++r) to[k * MR + r] = r < h ? as(splat(from[r * a_m + k * a_k]))[0] : 0.0f;
}

// Of a matrix whose columns lie as rows, one k after the other: each is read once, where it is next to what was read.
// Whole vectors here, too, but for the last k, behind which another strip is.
template <class As>
void pack_columns(const float* a, i64 a_k, i64 rows, i64 depth, i64 padded, float* to, const As& as) {
  for (i64 k = 0; k < depth; ++k)
    for (i64 i = 0; i < rows; i += MR)
      for (i64 r = 0; r < MR; r += WIDTH) {
        const i64 n = std::min<i64>(WIDTH, MR - r), there = std::min<i64>(WIDTH, rows - i - r);
        const float* from = a + k * a_k + i + r;
        const vf x = there == WIDTH ? load(from) : there > 0 ? load_part(from, there) : vf{};
        float* at = to + i * padded + k * MR + r;
        if (k + 1 < depth) store(at, as(x));
        else store_part(at, as(x), n);
      }
}

// Strips are `padded` deep, and zero behind `depth`.
template <class As>
void pack_floats(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, i64 padded, float* to, const As& as) {
  const bool columns = a_m == 1 && a_k != 1;
  if (columns) pack_columns(a, a_k, rows, depth, padded, to, as);
  for (i64 i = 0; i < rows; i += MR) {
    if (!columns) pack_strip(a + i * a_m, a_m, a_k, std::min<i64>(MR, rows - i), depth, to + i * padded, as);
    std::fill(to + i * padded + depth * MR, to + (i + MR) * padded, 0.0f);
  }
}

}  // namespace
}  // namespace lc::host
