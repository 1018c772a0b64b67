// Builds kernel IR from a region of the graph.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

struct Region {
  NodeId root = 0;                        // the value that the kernel stores
  std::function<bool(NodeId)> is_buffer;  // true for values in memory; all others are inlined
  // For SliceScatter: the root's value is stored from an offset on in the flat index of a larger shape. Null for
  // everything else.
  const Node* scatter = nullptr;
  bool keep_rows = true;  // cache rows now; otherwise a later schedule decides
};

struct Built {
  std::optional<Kernel> kernel;
  std::vector<NodeId> buffers;           // node of each operand of the kernel
  std::vector<bool> same_index;          // whether each operand is read only at the index that is stored
  std::vector<NodeId> reductions;        // node of each reduction of the kernel
  std::vector<NodeId> must_materialize;  // inlining these is too expensive: materialise them first
};

// Builds the kernel of a region, or returns in must_materialize the values without which it cannot be built well.
Built build(const Graph& g, const Region& region, const Machine& m);

}  // namespace lc::codegen
