// Counted loops, in which arrays that are read and written a row a step need not be carried.
#pragma once

#include "lightcone/ops/loop.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {

// The state that counts: `from`, `from + step`, ... in `steps` steps, at least one.
struct Counter {
  std::size_t state = 0;
  std::int64_t from = 0, step = 1, steps = 0;
};

// The last states of a loop whose states are all that goes from step to step. A while loop carries whatever it touches;
// where that is more than it needs, the scan that this appends does not:
//   - a state that no step changes is read from outside;
//   - an array of those, read at a place that moves evenly, is one of the scan's xs;
//   - a state of which each step replaces one row, the next or the one before, and reads no other, is one of its ys;
//   - a counter that nothing else reads goes away.
std::vector<Tensor> run_counted(const Reader& reader, const TracedLoop& loop, const Counter& counter);

}  // namespace lc::stablehlo
