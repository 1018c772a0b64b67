// Strategies of parallel training as specs for shard(): each is a short function, and joined() makes products of them.
#pragma once

#include <cstdint>
#include <string>

#include "lightcone/distributed/shard.h"

namespace lc {

// Every input that is neither a parameter nor a state is divided along its first axis, the batch, where `ranks` divides
// it: each rank computes a part of the batch, and gradients are added (DistributedDataParallel of PyTorch).
ShardSpecs data_parallel(const Graph& g, const std::string& mesh_axis, int ranks);

// Every input that is neither a parameter nor a state is divided along its second axis, the text, where `ranks` divides
// it: each rank computes a part of each text, and attention exchanges keys and values (distributed/ring.h).
ShardSpecs sequence_parallel(const Graph& g, const std::string& mesh_axis, int ranks);

// What is divided among the ranks that share a batch (ZeRO, Rajbhandari et al., arXiv 1910.02054).
enum class ShardedState : std::uint8_t {
  Moments,  // the optimiser's memory: stages 1 and 2, for a gradient is added up where its part is needed
  All,      // parameters, too: stage 3 (fully_shard of PyTorch)
};
// Divides each state along its first axis that `ranks` divides.
ShardSpecs fully_sharded(const Graph& g, const std::string& mesh_axis, int ranks,
                         ShardedState what = ShardedState::All);

// The specs of both: a name that both have, in exactly these letters or by a pattern of the other, is divided along the
// axes of both. Where both divide one axis, that of `a` is the outer.
ShardSpecs joined(const ShardSpecs& a, const ShardSpecs& b);

}  // namespace lc
