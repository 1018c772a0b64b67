// Operations of a graph for which ONNX has an operator of the same meaning.
#pragma once

#include "lightcone/core/graph.h"

namespace lc::onnx {

// Returns true for nodes that are written as such an operator in this opset, instead of by their definition.
bool has_operator(const Node& n, int opset);

}  // namespace lc::onnx
