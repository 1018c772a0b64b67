// Stable sorts and what is built on them, as text for all languages.
//
//   sort_tiles_text: each group of threads sorts a tile in shared memory, by merges of runs of 1, 2, 4, ... elements.
//   merge_text: pairs of sorted runs in memory become one, a tile of the result a group. Where the tile begins and ends
//   in either run is found by a binary search, and so is each element's place within it: no thread waits for another.
//   scatter_text: behind a sort of the indices, what goes to one place lies side by side, in the order of the source.
//
// Elements are sorted as unsigned keys whose order is that of the elements: a NaN is above all, zeros are equal. Which
// thread does what has no part in the result.
#pragma once

#include <string>
#include <string_view>

#include "lightcone/codegen/simt/dialect.h"
#include "lightcone/core/dtype.h"

namespace lc::backends::gpu {

// Rows of what is sorted lie in memory as outer x length x columns; of the columns of the input some may be left out.
struct Sort {
  DType type;
  bool descending = false;
  bool needs_64bit_index = false;  // rows of so many elements that their numbers need 64 bits
  int span = 0;                    // of a tile's elements, how many one row may have: a power of two
};

inline constexpr int kSortThreads = 256, kSortTile = 1024;

// The span for rows of at most so many elements.
int sort_span(std::int64_t longest);
std::size_t key_bytes(DType t);
inline std::size_t place_bytes(bool needs_64bit_index) { return needs_64bit_index ? 8 : 4; }

// Places: the input, keys and places of sorted tiles, the result (i64). Sizes: outer, length, columns, columns of the
// input, and 1 where the tiles are the result, which is written then instead of the keys.
std::string sort_tiles_text(const Sort& s, std::string_view name, codegen::simt::Language language);
inline constexpr std::size_t kTileSizes = 5;

// Places: keys and places before, keys and places after, the result. Sizes: outer, length, columns, the length of a
// run, and 1 where the merged runs are the result.
std::string merge_text(const Sort& s, std::string_view name, codegen::simt::Language language);
inline constexpr std::size_t kMergeSizes = 5;

struct Scatter {
  DType index, type;
  bool adds = false;          // or the last one replaces
  bool same_columns = false;  // the indices are those of the first column, in all of them; `order` has that one alone
};
// Places: the index, its order (i64, as sorted), the source, the result. Sizes: outer, length, indices, columns. A
// thread for each element of the source; the first of those that go to one place does the work for all.
std::string scatter_text(const Scatter& s, std::string_view name, codegen::simt::Language language);
inline constexpr std::size_t kScatterSizes = 4;
inline constexpr int kScatterThreads = 256;

}  // namespace lc::backends::gpu
