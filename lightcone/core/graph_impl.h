// What a Graph owns. Included by graph.cpp and tensor.cpp only.
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
  std::deque<Edge> edges;           // what Tensor handles point at
  std::vector<std::size_t> hashes;  // of the nodes
  std::vector<NodeId> known;        // 1 + node at its hash or the next free place, 0: free; at most half is taken
  std::unordered_set<std::string> input_names, root_names;
  std::unordered_set<NodeId> assigned;
  std::vector<Root> roots;
  std::vector<Assignment> assignments;
  std::unordered_map<NodeId, std::shared_ptr<const Derivative>> derivatives;

  // The place in `known` where a node is, or where it belongs.
  template <class Same>
  NodeId& slot(std::size_t hash, const Same& same) {
    for (std::size_t at = hash ^ hash >> 32;; ++at)
      if (NodeId& k = known[at & (known.size() - 1)]; !k || (hashes[k - 1] == hash && same(k - 1))) return k;
  }
};

// Memory of graphs, which is used again and never given back, so that a Tensor that outlives its graph can see that it
// does: `generation` is another one then.
struct GraphSlot {
  std::uint32_t generation = 0;
  GraphSlot* next = nullptr;  // one that is free, too
  union {
    Graph::Impl impl;  // while a Graph has it
  };
  GraphSlot() {}
  ~GraphSlot() {}
};

std::string describe(const Node& n);  // "sum<1>", "input x", "constant 2"

}  // namespace lc
