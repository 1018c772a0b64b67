// Stages of a pipeline: which rank along the pipeline computes which node of the whole graph, and when.
#pragma once

#include <functional>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/distributed/sharding/shard.h"

namespace lc::distributed {

constexpr int kEveryStage = -1;

struct Stages {
  std::vector<int> of;             // by node; kEveryStage: each stage that needs the node computes it
  std::vector<char> backward;      // by node: depends on the gradient of the loss
  std::vector<double> cost;        // forward, by stage
  std::vector<double> bytes_sent;  // forward, from each stage to the next
};

// Cuts the forward pass into `n` stages of about the same cost where few bytes cross. Parameters, and the memory an
// optimiser has of them, are where they are read first; the backward pass follows the values that it needs. Throws
// Error if the graph has fewer operations than stages.
Stages find_stages(const Graph& g, int n, const std::function<double(const Graph&, NodeId)>& cost);
// Elements that are computed, which are multiplications for products.
double operation_cost(const Graph& g, NodeId id);

// When each stage works on each part of a batch, forward and backward, in steps of one part.
struct Ticks {
  std::vector<std::vector<int>> forward, backward;  // [stage][part]
  int total = 0;
};
Ticks pipeline_ticks(PipelineSchedule schedule, int stages, int parts);

}  // namespace lc::distributed
