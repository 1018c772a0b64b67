// From a region of the graph to kernel IR.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

struct Region {
  NodeId root = 0;                        // the value the kernel stores
  std::function<bool(NodeId)> is_buffer;  // in memory already; everything else is inlined
  // SliceScatter: the root's value is stored at `store_shift` elements from the flat index of a
  // smaller shape; null for everything else.
  const Node* scatter = nullptr;
  bool keep_rows = true;  // else a schedule decides about it later
};

struct Built {
  std::optional<Kernel> kernel;
  std::vector<NodeId> buffers;           // operand k of the kernel is this node
  std::vector<bool> same_index;          // operand k is read only at the index that is stored
  std::vector<NodeId> reductions;        // reduction k of the kernel is this node
  std::vector<NodeId> must_materialize;  // inlining these costs too much: put them in memory first
};

Built build(const Graph& g, const Region& region, const Machine& m);

}  // namespace lc::codegen
