// Groups small independent kernels into forks. Forking and joining costs as much as some ten thousand operations, and a
// kernel of few iterations does not keep all workers busy. An optimiser's update of a hundred parameters is a hundred
// such kernels.
#pragma once

#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/device/prepared.h"

namespace lc {

// Returns, by NodeId, the last kernel of the fork that a kernel belongs to. Kernels of a fork are neighbours in the
// graph's order. A kernel that runs alone is its own last one. A fork has at most kMostTogether kernels.
inline constexpr std::size_t kMostTogether = 32;
std::vector<NodeId> find_forks(const Graph& g, const Prepared& prepared, int workers);

// Returns true if the graph has two kernels that may share a fork.
bool has_small_kernels(const Graph& g);
// Reorders a graph so that more kernels that may share a fork are neighbours.
Graph run_concurrently(const Graph& g);

}  // namespace lc
