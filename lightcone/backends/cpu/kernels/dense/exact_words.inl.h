// Exact int8 products with AVX2, which has no exact product of bytes: both operands are widened to 16 bits when they
// are packed, so that a step of the tile is one multiply-add of pairs (vpmaddwd) and one addition.
//
// The four bytes of a word become two pairs: the even bytes, then the odd ones. A is i16 [k / 2][rows][2], B is
// i16 [k / 2][16][2], both padded to a multiple of 64 k.
#pragma once

#include "lightcone/backends/cpu/kernels/dense/exact_int8.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/register_tile.inl.h"

namespace lc::backends::cpu {
namespace {

// Zen 3 runs six rows of two vectors at three instructions a cycle, which is its limit, as it does three rows of four
// vectors. Twelve rows of one reach 80 % of that.
constexpr int kExactRows = 6, kExactGroups = 1, kExactK = 2;
constexpr int kExactA = kExactStep * kExactRows * 2, kExactB = kExactBytes * 2;

// Writes 16 signed bytes of one row of A as eight pairs, a row of pairs of the strip apart.
inline void put_pairs(__m128i bytes, std::uint32_t* to) {
  const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
  alignas(32) std::uint32_t pairs[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(pairs), _mm256_cvtepi8_epi16(_mm_shuffle_epi8(bytes, order)));
  for (int p = 0; p < 8; ++p) to[p * kExactRows] = pairs[p];
}
// Packs A, which consists of bytes despite the pointer's type.
void pack_words_a(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int, void* to) {
  const i64 padded = (depth + kExactStep - 1) / kExactStep * kExactStep;
  auto* out = static_cast<std::uint32_t*>(to);
  for (i64 i = 0; i < rows; i += kExactRows, out += padded / 2 * kExactRows)
    for (i64 r = 0; r < kExactRows; ++r) {
      const auto* from = reinterpret_cast<const std::int8_t*>(a) + (i + r) * a_m;
      for (i64 k = 0; k < padded; k += 16) {
        const i64 there = i + r < rows ? std::clamp<i64>(depth - k, 0, 16) : 0;
        alignas(16) std::int8_t few[16] = {};
        const bool whole = there == 16 && a_k == 1;
        for (i64 e = 0; !whole && e < there; ++e) few[e] = from[(k + e) * a_k];
        put_pairs(_mm_loadu_si128(reinterpret_cast<const __m128i*>(whole ? from + k : few)),
                  out + k / 2 * kExactRows + r);
      }
    }
}
// Packs B, bytes as stored or as weight_formats.h describes.
void pack_words_b(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  for (i64 j = 0; j < columns; j += kGroup)
    for (i64 k = 0; k < depth; k += kExactStep) {
      alignas(64) u8 bytes[kExactBytes];
      pack_exact_b(g, j0 + j, std::min<i64>(kGroup, columns - j), k0 + k, std::min<i64>(kExactStep, depth - k), bytes,
                   0);
      auto* out = reinterpret_cast<__m256i*>(static_cast<std::byte*>(to) + j / kGroup * b_group + k * kGroup * 2);
      for (int w = 0; w < kExactStep / 4; ++w, out += 2 * kGroupVectors)
        for (int t = 0; t < kGroupVectors; ++t) {
          const auto word = reinterpret_cast<__m256i>(words(bytes + w * 64 + t * 32) ^ static_cast<int>(0x80808080u));
          _mm256_storeu_si256(out + t, _mm256_srai_epi16(_mm256_slli_epi16(word, 8), 8));
          _mm256_storeu_si256(out + kGroupVectors + t, _mm256_srai_epi16(word, 8));
        }
    }
}

// An instruction of its own, because GCC 12 otherwise adds in an order that leaves sums in memory.
inline __m256i added(__m256i sum, __m256i products) {
  asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(products));
  return sum;
}

template <int H, int V>
struct WordsTile {
  static void run(const void* a, const void* b, i64, i64 depth, float* c, i64 c_m, i64 columns, bool add,
                  const void* soon) {
    const auto* x = static_cast<const std::int32_t*>(a);
    const auto* y = static_cast<const std::byte*>(b);
    __m256i sums[H][V] = {};
    tile_steps<H, V>((depth + kExactStep - 1) / kExactStep * (kExactStep / 2), c, c_m, soon, [&] {
      __m256i pairs[V];
      for (int t = 0; t < V; ++t)
        pairs[t] = reinterpret_cast<__m256i>(load(reinterpret_cast<const float*>(y + t * 32)));
      LC_UNROLL_BY(16)
      for (int i = 0; i < H; ++i) {
        const __m256i row = _mm256_set1_epi32(x[i]);
        for (int t = 0; t < V; ++t) sums[i][t] = added(sums[i][t], _mm256_madd_epi16(row, pairs[t]));
      }
      x += kExactRows, y += 4 * kGroup;
    });
    alignas(32) vi whole[H][V];
    LC_UNROLL_BY(16)
    for (int i = 0; i < H; ++i) LC_UNROLL_BY(4)
    for (int t = 0; t < V; ++t) whole[i][t] = reinterpret_cast<vi>(sums[i][t]);
    put_tile(whole, c, c_m, columns, add);
  }
};

}  // namespace
}  // namespace lc::backends::cpu
