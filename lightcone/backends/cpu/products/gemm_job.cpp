#include "lightcone/backends/cpu/products/gemm_job.h"

#include <bit>

namespace lc::backends::cpu::products {
namespace {

constexpr i64 kPiece = 16;  // k packed at a time of each strip, at least
constexpr i64 kLine = 16;   // numbers of a cache line

// Packs strips of a column-major A. The strips are neighbors in each k of A, so a few k of all strips are packed while
// their cache lines are close. The next k are prefetched, because the lines are too far apart for hardware prefetchers.
void pack_bundle(const Job& j, i64 first, i64 last, i64 k0, i64 depth, std::byte* to) {
  const Gemm& g = *j.g;
  const Microkernel& u = *j.u;
  const i64 piece = std::max<i64>(kPiece, u.step);
  for (i64 k = k0; k < k0 + depth; k += piece) {
    const i64 d = std::min(piece, k0 + depth - k);
    for (i64 s = first; s < last; ++s) {
      const i64 i = j.i0 + j.strips.begin(s), rows = j.strips.size(s);
      for (i64 next = k + d; next < std::min(k + d + piece, g.k); ++next)
        for (i64 r = rows - 1; r >= 0; r -= kLine) __builtin_prefetch(a_at(g, u, i + r + next * g.a_k), 0, 2);
      u.pack_a(a_at(g, u, i + k * g.a_k), 1, g.a_k, rows, d, g.zero,
               to + (s - first) * u.a_bytes(depth) + u.a_bytes(k - k0));
    }
  }
}

}  // namespace

bool packs_k_pairs(const Gemm& g, const Microkernel& u) {
  return g.a_m == 1 && g.a_k != 1 && !g.rows && !g.a_bf16 &&
         (u.arithmetic == Arithmetic::F32 || u.arithmetic == Arithmetic::Bf16);
}

const float* a_at(const Gemm& g, const Microkernel& u, i64 offset) {
  const i64 bytes = u.exact() ? 1 : g.a_bf16 ? 2 : 4;
  return reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(g.a) + offset * bytes);
}

void finish(const Gemm& g, i64 i0, i64 rows, i64 begin, i64 end) {
  for (i64 i = i0; g.to_f32 && i < i0 + rows; ++i)
    for (float* p = g.c + i * g.c_m + begin; p < g.c + i * g.c_m + end; ++p)
      *p = static_cast<float>(std::bit_cast<std::int32_t>(*p));
  if (g.finish) g.finish(g.finish_self, g.c + i0 * g.c_m, rows, begin, end);
}

void pack_strips(const Job& j, i64 first, i64 last, i64 k0, i64 depth, const float* made, std::byte* to) {
  const Gemm& g = *j.g;
  const Microkernel& u = *j.u;
  if (packs_k_pairs(g, u)) return pack_bundle(j, first, last, k0, depth, to);
  for (i64 s = first; s < last; ++s, to += u.a_bytes(depth)) {
    const i64 i = j.i0 + j.strips.begin(s), rows = j.strips.size(s);
    if (g.a_bf16)
      u.pack_bf16(reinterpret_cast<const std::uint16_t*>(a_at(g, u, i * g.a_m + k0)), g.a_m, rows, depth, to);
    else if (made) u.pack_a(made + k0, g.k, 1, rows, depth, g.zero, to);
    else u.pack_a(a_at(g, u, i * g.a_m + k0 * g.a_k), g.a_m, g.a_k, rows, depth, g.zero, to);
  }
}

i64 stored_bytes(const Job& j, i64 depth) {
  return j.unpacks ? packed_layout(j.g->type).group_bytes(depth) : j.u->b_bytes(depth);
}
const std::byte* stored(const Job& j, i64 c, i64 k) {
  const i64 block = j.unpacks ? packed_layout(j.g->type).block : 1;
  return j.b + c / kGroup * stored_bytes(j, j.g->k) + stored_bytes(j, k / block * block);
}

}  // namespace lc::backends::cpu::products
