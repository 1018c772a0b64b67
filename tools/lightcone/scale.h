// Graphs of any size, for measuring how long compiling takes.
#pragma once

#include <span>

#include "lightcone/core/graph.h"

namespace lc::tool {

struct ScaledGraph {
  const char* name;
  const char* what;
  Graph (*make)(std::size_t nodes);  // about that many
};
std::span<const ScaledGraph> scaled_graphs();

}  // namespace lc::tool
