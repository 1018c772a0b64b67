// What a Graph owns. Included by graph.cpp and tensor.cpp only.
#pragma once

#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "lightcone/core/graph.h"

namespace lc {

struct Graph::Impl {
  Graph* self = nullptr;
  std::deque<Node> nodes;
  std::deque<Edge> edges;  // what Tensor handles point at
  std::unordered_multimap<std::size_t, NodeId> known;
  std::unordered_set<std::string> input_names, root_names;
  std::unordered_set<NodeId> assigned;
  std::vector<Root> roots;
  std::vector<Assignment> assignments;
};

std::string kernel_name(const Kernel& k);
std::string describe(const Node& n);  // "sum<1>", "input x", "constant 2"

}  // namespace lc
