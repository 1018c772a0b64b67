// The static memory plan: where every buffer of a program lives, decided before anything runs.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

// Values begin at whole lines of a cache.
inline std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

struct Placement {
  enum class Where : std::uint8_t {
    Nowhere,  // not live
    Arena,
    Input,  // given by the user, owned by the context or prepared by the program; also a state's new value that is
            // written over the state itself
  } where = Where::Nowhere;
  std::size_t offset = 0;  // Arena: bytes from its start; of a prepared value or a state: from the start of all
  NodeId input = 0;        // Input: whose buffer
  std::size_t bytes = 0;   // for the sizes of the plan
};

// For the largest sizes that the bounds of the symbols allow, or for given ones.
struct MemoryPlan {
  std::vector<Placement> nodes;      // by NodeId
  std::vector<std::size_t> scratch;  // by NodeId: arena offset of a kernel's scratch
  std::vector<std::size_t> scratch_bytes;
  std::vector<NodeId> fork;        // by NodeId: the last of the kernels that share a fork with it (fork.h)
  int workers = 1;                 // that scratch memory is planned for
  std::size_t arena_bytes = 0;     // exact: what a context allocates for values in flight
  std::size_t alive_bytes = 0;     // the most that is alive at once: no plan has less
  std::size_t input_bytes = 0;     // inputs that are not state and that runs read, weights included
  std::size_t prepared_bytes = 0;  // what was made of parameters when they were loaded (prepared.h)
  std::size_t state_bytes = 0;     // KV caches, moments, counters
  std::size_t state_block = 0;     // of it, in one block: the states whose sizes are numbers
  // States that are results too: where in the arena their value before the run is kept.
  std::vector<std::pair<NodeId, std::size_t>> snapshots;
  std::vector<const Assignment*> copies;  // states whose new value is copied in after the run
  std::size_t total_bytes() const { return arena_bytes + input_bytes + prepared_bytes + state_bytes; }
  std::string str() const;
};

// A symbol that `sizes` names has that value, any other its largest.
MemoryPlan make_plan(const Graph& g, int workers, const Bindings& sizes = {});

// Bytes of a node's value for the largest sizes its symbols allow.
std::size_t upper_bytes(const Node& n);

}  // namespace lc
