// Load-time constant folding. Values that depend on parameters alone are computed once, when the parameters are loaded:
// weights packed for a kernel, transformed filters, widened vectors.
#pragma once

#include <cstddef>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

// Bytes of a value of parameters that is prepared however small these are.
inline constexpr std::size_t kAlwaysPrepared = 1 << 20;

struct Prepared {
  std::vector<bool> node;      // by NodeId: computed by Program::load and kept as long as the program
  std::vector<bool> resident;  // by NodeId of inputs: a run or a later load reads their own bytes
};

// Finds the prepared nodes: kernels whose operands are parameters (Node::parameter) that no assignment changes or
// prepared nodes, whose sizes are constants, and whose result is not much larger than its operands, unless they pack.
Prepared find_prepared(const Graph& g);

}  // namespace lc
