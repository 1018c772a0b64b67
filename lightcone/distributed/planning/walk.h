// The nodes of a program as a run comes by them.
#pragma once

#include <vector>

#include "lightcone/core/graph.h"

namespace lc::distributed {

// Returns the nodes that a run computes, in its order.
std::vector<NodeId> order_of_run(const Graph& g);

}  // namespace lc::distributed
