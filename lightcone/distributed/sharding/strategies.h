// Strategies as specs for shard(): each is a short function, and joined() makes products of them.
#pragma once

#include <cstdint>
#include <string>

#include "lightcone/distributed/sharding/shard.h"

namespace lc {

// Every input that is neither a parameter nor a state is divided along its first axis, the batch, where `ranks` divides
// it: each rank computes a part of the batch, and gradients are added (DistributedDataParallel of PyTorch).
ShardSpecs data_parallel(const Graph& g, const std::string& mesh_axis, int ranks);

// Every input that is neither a parameter nor a state is divided along its second axis, the text, where `ranks` divides
// it: each rank computes a part of each text, and attention exchanges keys and values (distributed/sharding/ring.h).
ShardSpecs sequence_parallel(const Graph& g, const std::string& mesh_axis, int ranks);

// What is divided among the ranks that share a batch (ZeRO, Rajbhandari et al., arXiv 1910.02054).
enum class ShardedState : std::uint8_t {
  Moments,  // the optimiser's memory: stages 1 and 2, for a gradient is added up where its part is needed
  All,      // parameters, too: stage 3 (fully_shard of PyTorch)
};
// Divides each state along its first axis that `ranks` divides.
ShardSpecs fully_sharded(const Graph& g, const std::string& mesh_axis, int ranks,
                         ShardedState what = ShardedState::All);

// Tensor parallelism (Megatron-LM, Shoeybi et al., arXiv 1909.08053), read off the graph of any model: matrices are
// divided by rows, those that read their results by columns, so that ranks compute different heads of attention and
// different parts of a network, and exchange one sum for each. Caches are divided by heads, tables of words and what
// gives their scores by words, stacked experts within each. What a number of ranks does not divide is whole on each (a
// fifth head, half a block of a quantised format), and so is what would be sent more than it is worth. Throws Error if
// nothing can be divided.
ShardSpecs tensor_parallel(const Graph& g, const std::string& mesh_axis, int ranks);

// The specs of both: a name that both have, in exactly these letters or by a pattern of the other, is divided along the
// axes of both. Where both divide one axis, that of `a` is the outer.
ShardSpecs joined(const ShardSpecs& a, const ShardSpecs& b);

}  // namespace lc
