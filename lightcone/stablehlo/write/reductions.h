// Sums and maxima: reduce, and reduce_window if windows overlap or were made by a pool.
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
  bool padded = false;                  // the padding around the operand is the identity of the maximum
};

// Matches a reduction. A nested reduction with no other reader is merged into one over several axes, and so is the
// maximum of a pool.
Reduction match_reduction(SizeTable& sizes, const Graph& g, NodeId id, const std::vector<int>& uses);
ValueId write_reduction(Writer& w, const Node& n, const Reduction& r);

}  // namespace lc::stablehlo
