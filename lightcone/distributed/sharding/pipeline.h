// The order of a sharded graph's nodes, and one stage's part of it.
#pragma once

#include <vector>

#include "lightcone/distributed/sharding/sharder.h"
#include "lightcone/distributed/sharding/stages.h"

namespace lc::distributed {

// `purposes` tells which nodes of the whole graph the nodes of `sharded` serve; parts of a batch are `parts`
// serial places. Returns the graph of the rank, whose nodes come in the order of the schedule. Messages between stages
// come in one order on all ranks, each at the end of the tick in which its value is made: the first message that has
// not been exchanged can always be, so that the ranks cannot wait for one another in a circle.
Graph schedule_stages(const Stages& stages, const Graph& sharded, const std::vector<Purpose>& purposes, int parts,
                      const Collectives& ranks, const ShardOptions& options, PassLog& log);

}  // namespace lc::distributed
