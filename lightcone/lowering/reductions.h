// Prepares reductions for a grid of threads: joins them, and splits long ones into enough parts for all threads.
#pragma once

#include <cstdint>

#include "lightcone/passes/compiler.h"

namespace lc::lowering {

// Joins sums of sums, and maxima of maxima, over adjacent axes into one reduction over both.
Graph join_reductions(const Graph& g, PassLog& log);

struct SplitRules {
  std::int64_t threads = 1 << 14;  // target: fewer results than this leave threads without work
  std::int64_t row = 4096;         // fewest elements of a part if a block of threads reduces contiguous elements
  // Fewest elements of a part if each thread reduces alone and neighbouring threads make neighbouring results.
  std::int64_t column = 64;
  std::int64_t group = 256;  // threads per row
};
// Splits a long reduction to few results into parts, followed by a reduction that joins them. The number of parts
// depends on sizes alone, so results have the same bits on every device and for every number of processors. Sums of
// products are left to the kernels that compute them.
Graph split_reductions(const Graph& g, PassLog& log, const SplitRules& rules = {});

}  // namespace lc::lowering
