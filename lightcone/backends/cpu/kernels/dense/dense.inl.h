// Helpers of all microkernels: loading a row of A, the groups of B under a tile, storing a tile to C, and panels of
// bf16. WIDTH is the floats per vector; a tile has MR rows and GROUPS groups of 16 columns. F32_TABLE is the f32 table
// of the instruction set.
#pragma once

#include <algorithm>

#include "lightcone/backends/cpu/kernels/abi/gemm_abi.h"
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/vector.inl.h"

namespace lc::backends::cpu {
namespace {

using u8 = std::uint8_t;
constexpr int kGroup = 16;  // columns of a group
constexpr int kGroupVectors = kGroup / WIDTH;

// Loads up to 32 k of one row of A, padded with zeros.
inline void load_row(const float* a, i64 a_k, i64 count, float (&to)[32]) {
  if (a_k == 1 && count >= 32) {
    std::memcpy(to, a, sizeof to);
    return;
  }
  for (i64 k = 0; k < 32; ++k) to[k] = k < count ? a[k * a_k] : 0.0f;
}

// The addresses of the groups of a tile. A group without needed columns may not exist; the first is read instead.
template <int Groups>
struct GroupsOf {
  const std::byte* at[Groups];
  GroupsOf(const void* b, i64 b_group, i64 columns) {
    for (int g = 0; g < Groups; ++g)
      at[g] = static_cast<const std::byte*>(b) + (g * kGroup < columns ? g * b_group : 0);
  }
};

template <int Rows, int Vectors>
inline void store_tile(const vf (&acc)[Rows][Vectors], float* c, i64 c_m, i64 rows, i64 columns, bool add) {
  if (rows == Rows && columns == Vectors * WIDTH) {
    LC_UNROLL
    for (int i = 0; i < Rows; ++i) {
      LC_UNROLL
      for (int t = 0; t < Vectors; ++t) {
        float* p = c + i * c_m + t * WIDTH;
        store(p, add ? load(p) + acc[i][t] : acc[i][t]);
      }
    }
    return;
  }
#if defined(NEON)
  vf copy[Rows][Vectors];
  LC_UNROLL
  for (int i = 0; i < Rows; ++i) {
    LC_UNROLL
    for (int t = 0; t < Vectors; ++t) copy[i][t] = acc[i][t];
  }
#else
  const auto& copy = acc;
#endif
  for (i64 i = 0; i < rows; ++i) {
    float row[Vectors * WIDTH];
    std::memcpy(row, copy[i], sizeof row);
    for (i64 j = 0; j < columns; ++j) c[i * c_m + j] = add ? c[i * c_m + j] + row[j] : row[j];
  }
}

struct EvenOdd {
  vf even, odd;
};
// Splits 2 * WIDTH numbers by the parity of their index.
inline EvenOdd even_and_odd(const float* x) {
  const vf low = load(x), high = load(x + WIDTH);
  return {lanes(low, high, [](int i) { return 2 * i; }), lanes(low, high, [](int i) { return 2 * i + 1; })};
}
inline vu bf16_pairs(const float* x) {
  const auto [even, odd] = even_and_odd(x);
  return bf16_words(even, odd);
}

// Converts columns of B to f32, a chunk of k at a time: to(group, k, depth, [depth][16]).
template <class F>
inline void f32_columns(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, const F& to) {
  constexpr i64 kChunk = 64;
  alignas(64) float buffer[kChunk * kGroup];
  for (i64 j = 0; j < columns; j += kGroup)
    for (i64 k = 0; k < depth; k += kChunk) {
      const i64 d = std::min(kChunk, depth - k);
      F32_TABLE.pack_b(&g, j0 + j, std::min<i64>(kGroup, columns - j), k0 + k, d, buffer);
      to(j / kGroup, k, d, buffer);
    }
}

// Packs whole groups of a B whose columns are neighbours. All of these columns of a row are read before the next row:
// hardware prefetches neighbouring lines, and not one line of each row.
template <int Step>
void pack_b_by_rows_bf16(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  const float* row = static_cast<const float*>(g.b) + k0 * g.b_k + j0;
  const i64 padded = (depth + Step - 1) / Step * Step;
  for (i64 k = 0; k < padded; k += 2, row += 2 * g.b_k)
    for (i64 j = 0; j < columns; j += WIDTH) {
      auto* out = reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(to) + j / kGroup * b_group);
      const vf even = k < depth ? load(row + j) : vf{}, odd = k + 1 < depth ? load(row + g.b_k + j) : vf{};
      *reinterpret_cast<vu_stored*>(out + k / 2 * kGroup + j % kGroup) = bf16_words(even, odd);
    }
}

// Packs whole groups and steps of a B whose k are neighbours: turns words of two k, a column each, to rows of columns.
inline void pack_b_by_columns_bf16(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  const float* first = static_cast<const float*>(g.b) + j0 * g.b_n + k0;
  for (i64 j = 0; j < columns; j += WIDTH) {
    auto* out = reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(to) + j / kGroup * b_group) + j % kGroup;
    for (i64 k = 0; k < depth; k += 2 * WIDTH) {
      vf words[WIDTH];
      for (i64 i = 0; i < WIDTH; ++i) words[i] = reinterpret_cast<vf>(bf16_pairs(first + (j + i) * g.b_n + k));
      transpose(words);
      for (i64 i = 0; i < WIDTH; ++i)
        *reinterpret_cast<vu_stored*>(out + (k / 2 + i) * kGroup) = reinterpret_cast<vu>(words[i]);
    }
  }
}

template <int Step>
void pack_b_bf16(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  const i64 whole = columns / kGroup * kGroup;
  const bool by_rows = g.b_n == 1, by_columns = g.b_k == 1 && depth % std::max(Step, 2 * WIDTH) == 0;
  if (!g.packed && g.type == WeightType::F32 && whole > 0 && (by_rows || by_columns)) {
    if (by_rows) pack_b_by_rows_bf16<Step>(g, j0, whole, k0, depth, to, b_group);
    else pack_b_by_columns_bf16(g, j0, whole, k0, depth, to, b_group);
    j0 += whole, columns -= whole, to = static_cast<std::byte*>(to) + whole / kGroup * b_group;
  }
  f32_columns(g, j0, columns, k0, depth, [&](i64 group, i64 k, i64 d, const float* from) {
    auto* out = reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(to) + group * b_group) + k / 2 * kGroup;
    const i64 padded = (d + Step - 1) / Step * Step;
    for (i64 e = 0; e < padded; e += 2, out += kGroup)
      for (int v = 0; v < kGroup; v += WIDTH) {
        const vf even = e < d ? load(from + e * kGroup + v) : vf{},
                 odd = e + 1 < d ? load(from + (e + 1) * kGroup + v) : vf{};
        *reinterpret_cast<vu_stored*>(out + v) = bf16_words(even, odd);
      }
  });
}

}  // namespace
}  // namespace lc::backends::cpu
