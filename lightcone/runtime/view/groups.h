// Groups the nodes of a graph for a picture: by the layer whose parameters they read, by the user's call that made them
// and, if neither is enough, by their order. No group, opened or closed, depends on itself: the picture of groups is
// acyclic, like the graph of nodes.
#pragma once

#include <string>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc::view {

struct Group {
  int parent = -1;      // -1: top level of the picture
  std::string name;     // "layers.0", "softmax"
  std::string calls;    // the user's calls in it: "rms_norm, linear, silu"
  Location where = {};  // line of the call, if the group is one
};

struct Grouping {
  std::vector<Group> groups;  // parents come first
  std::vector<int> of;        // group of each node, by NodeId; -1: none
  std::vector<bool> drawn;    // by NodeId: live, and not a constant that is shown in its reader's label
  // By NodeId: a weight, a state, an index pattern, a constant scalar, or a weight that is cast or packed. Such a node
  // is drawn next to each of its readers.
  std::vector<bool> beside;
  std::vector<bool> fixed;  // by NodeId: depends on constants only
  std::vector<bool> alone;  // by NodeId: the only node of its call
};

// Computes the groups of a graph.
Grouping group_nodes(const Graph& g);

}  // namespace lc::view
