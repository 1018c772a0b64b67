// What a model says of itself, and what of it no rule reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lightcone/onnx/model/model.h"
#include "lightcone/onnx/onnx.h"

namespace lc::onnx {

// A line for each operator, element type and operator set that is not supported, with the names of nodes.
std::vector<std::string> unsupported(const Model& m);
// "node 'conv1' (Conv)", as every sentence about a node begins.
std::string named(const NodeData& n);
// True if a rule reads the node, or a function of the model says what it is.
bool is_supported(const Model& m, const NodeData& n);
// unsupported(), and attributes, types and shapes that only a look at each node finds (Importer::survey()).
std::vector<std::string> survey(const Model& m, const OnnxOptions& o);
// The number of nodes in the model, with those of functions and of graphs inside nodes.
std::int64_t count_nodes(const Model& m);
// The function of the model that a node calls, or null.
const Function* function_of(const Model& m, const NodeData& n);

}  // namespace lc::onnx
