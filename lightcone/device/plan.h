// The static memory plan: the location of every buffer of a program, decided before anything runs.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

// Values are aligned to cache lines.
inline std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

struct Placement {
  enum class Where : std::uint8_t {
    Nowhere,  // not live
    Arena,
    Input,  // in the buffer of `input`: an input, a state, a prepared value, or a next value written over its state
  } where = Where::Nowhere;
  // Arena: bytes from its start. States and prepared values: bytes from the start of their common block.
  std::size_t offset = 0;
  NodeId input = 0;       // Input: the node that has the buffer
  std::size_t bytes = 0;  // bytes for the sizes of the plan
};

// A plan for given sizes, or for the largest ones that the bounds of the symbols allow.
struct MemoryPlan {
  std::vector<Placement> nodes;      // by NodeId
  std::vector<std::size_t> scratch;  // arena offset of each kernel's scratch memory, by NodeId
  std::vector<std::size_t> scratch_bytes;
  std::vector<NodeId> fork;        // last kernel of the fork that a kernel belongs to (fork.h), by NodeId
  int workers = 1;                 // number of workers that scratch memory is planned for
  std::size_t arena_bytes = 0;     // exact size of what a context allocates for intermediate values
  std::size_t alive_bytes = 0;     // peak of live bytes, a lower bound of any plan
  std::size_t input_bytes = 0;     // inputs, weights included, that are no states and that runs read
  std::size_t prepared_bytes = 0;  // values computed from parameters at load (prepared.h)
  std::size_t state_bytes = 0;     // KV caches, moments, counters
  std::size_t state_block = 0;     // part of state_bytes: the block of all states with constant sizes
  // States that are also results, with the arena offset where their value from before the run is kept.
  std::vector<std::pair<NodeId, std::size_t>> snapshots;
  std::vector<const Assignment*> copies;  // states whose new value is copied after the run
  std::size_t total_bytes() const { return arena_bytes + input_bytes + prepared_bytes + state_bytes; }
  std::string str() const;
};

// Plans memory. Symbols named in `sizes` have the given value, all others their largest one. Throws Error if a value
// may be too large for any memory.
MemoryPlan make_plan(const Graph& g, int workers, const Bindings& sizes = {});

// Returns the bytes of a node's value for the largest sizes that its symbols allow.
std::size_t upper_bytes(const Node& n);

}  // namespace lc
