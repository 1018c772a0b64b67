// Stable sorts, and scatters built on them, as text for all languages.
//
//   sort_tiles_text: each thread block sorts a tile in shared memory, by merges of runs of 1, 2, 4, ... elements.
//   merge_text: merges pairs of sorted runs in memory; a block makes one tile of the result. Binary searches find where
//   the tile begins and ends in either run, and the position of each element within it: no thread waits for another.
//   scatter_text: after the indices are sorted, the elements that go to one place are adjacent, in the source's order.
//
// Elements are sorted as unsigned keys with the order of the elements: NaN is above all numbers, and zeros are equal.
// The result does not depend on which thread does what.
#pragma once

#include <string>
#include <string_view>

#include "lightcone/codegen/simt/dialect.h"
#include "lightcone/core/dtype.h"

namespace lc::backends::gpu {

// Rows to sort are in memory as outer x length x columns; some of the input's columns may be left out.
struct Sort {
  DType type;
  bool descending = false;
  bool needs_64bit_index = false;  // rows are so long that positions need 64 bits
  int span = 0;                    // elements of a tile that one row may have: a power of two
};

inline constexpr int kSortThreads = 256, kSortTile = 1024;

// Returns the span for rows of at most `longest` elements.
int sort_span(std::int64_t longest);
std::size_t key_bytes(DType t);
inline std::size_t position_bytes(bool needs_64bit_index) { return needs_64bit_index ? 8 : 4; }

// Buffers: the input, keys and positions of sorted tiles, the result (i64). Sizes: outer, length, columns, columns of
// the input, and 1 if a row is one tile: then the result is written instead of keys and positions.
std::string sort_tiles_text(const Sort& s, std::string_view name, codegen::simt::Language language);
inline constexpr std::size_t kTileSizes = 5;

// Buffers: keys and positions to read, keys and positions to write, the result. Sizes: outer, length, columns, the
// length of a run, and 1 if the merged runs are the result.
std::string merge_text(const Sort& s, std::string_view name, codegen::simt::Language language);
inline constexpr std::size_t kMergeSizes = 5;

struct Scatter {
  DType index, type;
  bool adds = false;          // otherwise the last one replaces
  bool same_columns = false;  // the indices of the first column hold for all columns, and `order` has only that one
};
// Buffers: the index, its order (i64, as sorted), the source, the result. Sizes: outer, length, indices, columns. There
// is a thread for each element of the source; the first of those with the same target does the work for all.
std::string scatter_text(const Scatter& s, std::string_view name, codegen::simt::Language language);
inline constexpr std::size_t kScatterSizes = 4;
inline constexpr int kScatterThreads = 256;

}  // namespace lc::backends::gpu
