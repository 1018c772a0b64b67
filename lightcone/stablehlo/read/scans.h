// Counted loops. Arrays that are read or written one row per step become scan inputs and outputs instead of states.
#pragma once

#include "lightcone/ops/loop.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {

// The counting state: `from`, `from + step`, ... in `steps` steps, at least one.
struct Counter {
  std::size_t state = 0;
  std::int64_t from = 0, step = 1, steps = 0;
};

// Runs a loop of which only the states are carried, and returns its final states. A while loop carries everything it
// uses; the scan that this creates does not:
//   - A state that no step changes is read from outside.
//   - Such an array that is read at an equally spaced index becomes a scan input (xs).
//   - A state of which each step replaces only the next or the previous row, and reads no other, becomes a scan output
//   (ys).
//   - A counter with no other reader disappears.
std::vector<Tensor> run_counted(Reader& reader, const TracedLoop& loop, const Counter& counter);

}  // namespace lc::stablehlo
