// Which nodes of a graph belong together in a picture: by the layer whose parameters they read, by the user's call that
// made them and, where neither says enough, by their order. Opened or closed, no group reads what depends on itself:
// the picture of groups is a graph without circles, as that of nodes is.
#pragma once

#include <string>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc::view {

struct Group {
  int parent = -1;      // -1: of the picture itself
  std::string name;     // "layers.0", "softmax"
  std::string calls;    // what the user called there: "rms_norm, linear, silu"
  Location where = {};  // of a call
};

struct Grouping {
  std::vector<Group> groups;  // parents first
  std::vector<int> of;        // by NodeId; -1: in no group
  std::vector<bool> drawn;    // by NodeId: live, and no constant that stands in its reader's label
  // By NodeId: a weight, a state, numbers that follow from their place, or a weight cast or packed. It is drawn beside
  // each of its readers.
  std::vector<bool> beside;
  std::vector<bool> fixed;  // by NodeId: follows from constants alone
  std::vector<bool> alone;  // by NodeId: all that became of a call
};

Grouping group_nodes(const Graph& g);

}  // namespace lc::view
