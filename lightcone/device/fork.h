// Small kernels that do not depend on each other may share a fork. Forking and joining costs as much as some ten
// thousand operations, and a kernel of few iterations does not keep all workers busy; an optimiser's update of a
// hundred parameters is a hundred such kernels.
#pragma once

#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/device/prepared.h"

namespace lc {

// Kernels that stand next to each other and may share a fork: by NodeId, the last one of those that do. A node that
// runs alone is its own last.
inline constexpr std::size_t kMostTogether = 32;
std::vector<NodeId> find_forks(const Graph& g, const Prepared& prepared, int workers);

// The same graph in another order, with more such kernels next to each other.
Graph run_concurrently(const Graph& g);

}  // namespace lc
