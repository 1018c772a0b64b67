// Graph::Impl: the data of a Graph.
#pragma once

#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "lightcone/core/graph.h"

namespace lc {

struct GraphSlot;

struct Graph::Impl {
  Graph* self = nullptr;
  GraphSlot* home = nullptr;
  std::deque<Node> nodes;
  std::deque<Edge> edges;           // Tensor handles index these
  std::vector<std::size_t> hashes;  // one per node
  std::vector<NodeId> known;        // open-addressing table of node + 1, 0 if free; load factor <= 1/2
  std::unordered_set<std::string> input_names, root_names;
  std::unordered_set<NodeId> assigned;
  std::vector<Root> roots;
  std::vector<Assignment> assignments;
  std::unordered_map<NodeId, std::shared_ptr<const Derivative>> derivatives;

  // Returns the slot in `known` of a node, or the free slot where it belongs.
  template <class Same>
  NodeId& slot(std::size_t hash, const Same& same) {
    for (std::size_t at = hash ^ hash >> 32;; ++at)
      if (NodeId& k = known[at & (known.size() - 1)]; !k || (hashes[k - 1] == hash && same(k - 1))) return k;
  }
};

// Memory of a graph, reused but never freed. `generation` changes with each reuse, so that a Tensor can detect that it
// outlived its graph.
struct GraphSlot {
  std::uint32_t generation = 0;
  GraphSlot* next = nullptr;  // next slot in the free list
  union {
    Graph::Impl impl;  // alive while a Graph owns the slot
  };
  GraphSlot() {}
  ~GraphSlot() {}
};

std::string describe(const Node& n);  // "sum<1>", "input x", "constant 2"

}  // namespace lc
