// The nodes of a program as a run comes by them.
#pragma once

#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/distributed/exchange.h"

namespace lc::distributed {

// Returns the kernel of a node that exchanges numbers with other ranks, or null.
const ExchangingKernel* exchanging(const Node& n);
// Returns the nodes that a run computes, in its order.
std::vector<NodeId> order_of_run(const Graph& g);

}  // namespace lc::distributed
