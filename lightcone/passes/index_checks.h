// Range checks for user-supplied indices. gather(), embedding() and similar functions mark each index
// (builtin::index_in_range); generic() and every device treat the mark as the identity. In a checked program a mark
// becomes two more outputs: the smallest and the largest index.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

struct IndexCheck {
  std::string low, high;  // names of the outputs; each is one i64
  Dim below;              // valid indices are in [0, below)
  Location where;

  // Returns the error message for the indices of a run, or nullopt if all are in range.
  std::optional<std::string> problem(std::int64_t low, std::int64_t high, std::int64_t below) const;
};
struct IndexChecks {
  Graph graph;  // with or without the outputs of the original graph
  std::vector<IndexCheck> checks;
};
// Builds the graph that computes the smallest and the largest of each marked index.
IndexChecks index_checks(const Graph& g, bool with_outputs);

}  // namespace lc
