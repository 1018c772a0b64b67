// Weights in blocks of a quantised format, which ONNX does not have, as the numbers that they stand for.
#pragma once

#include <map>
#include <string>

#include "lightcone/core/graph.h"
#include "lightcone/formats/block_formats.h"

namespace lc::onnx {

struct Decoded {
  std::string from;  // the parameter with the blocks
  QuantFormat format;
};
// Returns the graph with a parameter of f32 numbers for each parameter of blocks that is decoded as a whole, or row by
// row. `decoded` gets the new ones by name.
Graph with_decoded_parameters(const Graph& g, std::map<std::string, Decoded>& decoded);
// Decodes blocks, one after another, to f32.
std::vector<std::byte> decode(QuantFormat format, std::span<const std::byte> blocks);

}  // namespace lc::onnx
