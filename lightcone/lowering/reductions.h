// Reductions in the form that a grid of threads wants: as long as can be, and as many as there are threads.
#pragma once

#include <cstdint>

#include "lightcone/passes/compiler.h"

namespace lc::lowering {

// Sums of sums, and maxima of maxima, over axes that lie side by side become one over both.
Graph join_reductions(const Graph& g, PassLog& log);

struct SplitRules {
  std::int64_t threads = 1 << 14;  // wanted: fewer results than this leave threads without work
  std::int64_t row = 4096;         // elements of a part, at least, where a group of threads sums neighbours
  std::int64_t column = 64;        // and where a thread sums for itself, neighbouring threads neighbouring results
  std::int64_t group = 256;        // threads that share a row
};
// A long reduction to few results is cut into parts, and another one joins them. How many parts there are follows from
// sizes alone, so that the result has the same bits on every device and for every number of processors. Products are
// left to the kernels that compute them.
Graph split_reductions(const Graph& g, PassLog& log, const SplitRules& rules = {});

}  // namespace lc::lowering
