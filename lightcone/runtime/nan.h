// Where a value that is not a number came from.
#pragma once

#include <string>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

bool holds_nan(const void* data, DType type, std::size_t elements);

// "holds NaN: it first appears in matmul (at model.cpp:12), which reads 'layers.3.weight'": follows the NaN from `node`
// back to the value that has it first. `nan`, by NodeId, says which values hold one.
std::string where_from(const Graph& g, NodeId node, const std::vector<bool>& nan);

}  // namespace lc
