// Indices that a user gave and that may be out of range: gather(), embedding() and their like leave a mark on each
// (builtin::index_in_range), which generic() and every device take for the index itself. Where a program is checked, a
// mark becomes two more outputs: the smallest and the largest index.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

struct IndexCheck {
  std::string low, high;  // outputs, i64 []
  Dim below;              // an index is at least 0, and less than this
  Location where;

  // What is wrong with a run that had these; nothing where all are in range.
  std::optional<std::string> problem(std::int64_t low, std::int64_t high, std::int64_t below) const;
};
struct IndexChecks {
  Graph graph;  // with the outputs of the one that was given, or without
  std::vector<IndexCheck> checks;
};
IndexChecks index_checks(const Graph& g, bool with_outputs);

}  // namespace lc
