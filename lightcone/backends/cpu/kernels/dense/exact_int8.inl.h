// Operands of exact int8 products: signed bytes and int32 sums.
#pragma once

#include "lightcone/backends/cpu/kernels/abi/weight_formats.h"
#include "lightcone/backends/cpu/kernels/dense/dense.inl.h"
#include "lightcone/backends/cpu/kernels/dense/int8_sums.inl.h"

namespace lc::backends::cpu {
namespace {

// k of a step, and bytes of a step of 16 columns. The instructions multiply signed by unsigned bytes: B is stored with
// an offset of 128, and `start` corrects the sums.
constexpr int kExactStep = 64, kExactBytes = kExactStep * 16;
// Bytes per step of a strip for register tiles, which is i8 [k / 4][rows][4], then i32 start[rows]. The size of every
// step includes a cache line for `start`.
template <int Rows>
constexpr int kExactStepBytes = kExactStep * Rows + 64;

#if defined(VNNI) && WIDTH == 16
// Packs a step of up to 16 rows with contiguous bytes and returns the rows' sums.
template <int Rows>
inline __m512i pack_exact_step(const std::int8_t* from, i64 a_m, i64 rows, std::int8_t* to) {
  vf v[WIDTH] = {};
  for (i64 r = 0; r < rows; ++r) std::memcpy(&v[r], from + r * a_m, sizeof v[r]);
  transpose(v);
  __m512i sum = _mm512_setzero_si512();
  for (int w = 0; w < WIDTH; ++w) {
    sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), reinterpret_cast<__m512i>(v[w]));
    store_part(reinterpret_cast<float*>(to + w * 4 * Rows), v[w], Rows);
  }
  return sum;
}
#endif

// Packs one strip of A.
template <int Rows>
void pack_exact_strip(const std::int8_t* from, i64 a_m, i64 a_k, i64 rows, i64 depth, std::int8_t* to) {
  const i64 padded = (depth + kExactStep - 1) / kExactStep * kExactStep;
  i64 k = 0;
  std::int32_t start[16] = {};
#if defined(VNNI) && WIDTH == 16
  __m512i sum = _mm512_setzero_si512();
  for (; a_k == 1 && k + kExactStep <= depth; k += kExactStep)
    sum = _mm512_add_epi32(sum, pack_exact_step<Rows>(from + k, a_m, rows, to + k * Rows));
  std::memcpy(start, &sum, sizeof start);
#endif
  std::memset(to + k * Rows, 0, static_cast<std::size_t>((padded - k) * Rows));
  for (i64 r = 0; r < rows; ++r)
    for (i64 e = k; e < depth; ++e) {
      const std::int8_t v = from[r * a_m + e * a_k];
      to[e / 4 * 4 * Rows + 4 * r + e % 4] = v;
      start[r] += v;
    }
  for (std::int32_t& s : start) s *= kOffset - 128;
  std::memcpy(to + padded * Rows, start, sizeof(std::int32_t) * Rows);
}
// Packs A, which consists of bytes despite the pointer's type.
template <int Rows>
void pack_exact_a(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int, void* to) {
  auto* out = static_cast<std::int8_t*>(to);
  for (i64 i = 0; i < rows; i += Rows, out += (depth + kExactStep - 1) / kExactStep * kExactStepBytes<Rows>)
    pack_exact_strip<Rows>(reinterpret_cast<const std::int8_t*>(a) + i * a_m, a_m, a_k, std::min<i64>(Rows, rows - i),
                           depth, out);
}

// Packs B, bytes as stored or as weight_formats.h describes, to u8 [k / 4][16][4].
void pack_exact_b(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  const i64 padded = (depth + kExactStep - 1) / kExactStep * kExactStep;
  auto* out = static_cast<u8*>(to);
  for (i64 j = j0; j < j0 + columns; j += kGroup, out += b_group) {
    const auto* from = static_cast<const u8*>(g.b);
    if (g.packed) {
      from += j / kGroup * packed_layout(WeightType::I8).group_bytes(g.k) + k0 * kGroup;
      std::memcpy(out, from, static_cast<std::size_t>(padded * kGroup));
      continue;
    }
    std::memset(out, 0, static_cast<std::size_t>(padded * kGroup));
    for (i64 c = 0; c < std::min<i64>(kGroup, j0 + columns - j); ++c)
      for (i64 k = 0; k < depth; ++k)
        out[k / 4 * 64 + c * 4 + k % 4] = static_cast<u8>(from[(j + c) * g.b_n + (k0 + k) * g.b_k] ^ 0x80);
  }
}

}  // namespace
}  // namespace lc::backends::cpu
