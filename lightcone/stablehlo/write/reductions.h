// Sums and maxima: reduce, and reduce_window where windows overlap or were made by a pool.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/stablehlo/write/reading.h"
#include "lightcone/stablehlo/write/windows.h"

namespace lc::hlo {

class Writer;

struct Reduction {
  Edge operand;
  Readings readings;
  std::vector<Window> windows;
};

// A reduction of a reduction that nothing else reads is one over several axes.
Reduction match_reduction(const Graph& g, NodeId id, const std::vector<int>& uses);
ValueId write_reduction(Writer& w, const Node& n, const Reduction& r);

}  // namespace lc::hlo
