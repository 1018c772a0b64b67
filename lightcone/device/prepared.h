// What depends on parameters alone is computed once, when they are loaded: weights packed for a
// kernel, filters transformed, narrow vectors widened.
#pragma once

#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

struct Prepared {
  std::vector<bool> node;      // by NodeId: computed by Program::load, kept as long as the program
  std::vector<bool> resident;  // by NodeId, of inputs: a run or a later load reads their own bytes
};

// A kernel is prepared when its operands are parameters (Node::mode) that no assignment changes, its
// sizes are constants, and its result is not much larger than what it is made of.
Prepared find_prepared(const Graph& g);

}  // namespace lc
