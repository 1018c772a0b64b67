// Sums and maxima: reduce, and reduce_window where windows overlap or were made by a pool.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/stablehlo/write/reading.h"
#include "lightcone/stablehlo/write/windows.h"

namespace lc::stablehlo {

class Writer;

struct Reduction {
  Edge operand;
  Readings readings;
  std::vector<Window> windows;
  std::vector<std::size_t> later = {};  // axes whose windows are not reduced: they are made of the result
  bool padded = false;                  // around the operand lies what a maximum begins with
};

// A reduction of a reduction that nothing else reads is one over several axes, and so is the maximum of a pool.
Reduction match_reduction(SizeTable& sizes, const Graph& g, NodeId id, const std::vector<int>& uses);
ValueId write_reduction(Writer& w, const Node& n, const Reduction& r);

}  // namespace lc::stablehlo
