// Products over many k. A tile's sums are over 512 of them at most, of f32 over kChain (gemm.inl.h), and C is the sum
// of those. Of some tens that is as good as any; of thousands it is a sum of such sums, and what each addition rounds
// away is summed as well, as in long sums everywhere (codegen/schedule/blocks.cpp). Both lie beside C, in a worker's
// own memory.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lc::backends::cpu {

constexpr std::int64_t kLongSum = 1 << 14;  // k of a product that is added up so, at least
constexpr std::int64_t kSumsOfTiles = 32;   // that are added before their sum goes to C

// What `sum` loses when a block is added to it is added to `lost`; not the NaN that it is of infinities.
inline void add_block(float& sum, float& lost, float block) {
  const float s = sum + block, of_block = s - sum, rest = (sum - (s - of_block)) + (block - of_block);
  sum = s, lost += rest == rest ? rest : 0.0f;
}

// Rows of C: the first sums of `block`, more of them, or the last ones.
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
