// Sums over many k. A tile sums over at most 512 k (f32: in chains of kChain, gemm.inl.h), and C is the sum of the
// tiles' sums. For some tens of tiles this is accurate enough. For thousands, C is a sum of sums of kSumsOfTiles tiles
// each, and the rounding error of every addition is accumulated too, as in generated loops
// (codegen/schedule/blocks.cpp). The block and the errors are kept in the worker's scratch.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lc::backends::cpu {

constexpr std::int64_t kLongSum = 1 << 14;  // smallest k that is summed this way
constexpr std::int64_t kSumsOfTiles = 32;   // tiles that are summed before the sum is added to C

// Adds `block` to `sum` and the rounding error of the addition to `lost` (two-sum; Knuth, TAOCP vol. 2, 4.2.2). The
// error is NaN if values are infinite, and is then dropped.
inline void add_block(float& sum, float& lost, float block) {
  const float s = sum + block, of_block = s - sum, rest = (sum - (s - of_block)) + (block - of_block);
  sum = s, lost += rest == rest ? rest : 0.0f;
}

// Adds a block of sums to rows of C. `first` initializes C and the errors; `last` adds the errors to C. `lost` and
// `block` have `columns` elements per row.
inline void add_blocks(float* c, std::int64_t c_row, float* lost, const float* block, std::int64_t rows,
                       std::int64_t columns, bool first, bool last) {
  for (std::int64_t i = 0; i < rows; ++i, c += c_row, lost += columns, block += columns) {
    if (first) std::copy_n(block, columns, c), std::fill_n(lost, columns, 0.0f);
    else
      for (std::int64_t j = 0; j < columns; ++j) add_block(c[j], lost[j], block[j]);
    for (std::int64_t j = 0; last && j < columns; ++j) c[j] += lost[j];
  }
}

}  // namespace lc::backends::cpu
