// Sums of products: dot_general and convolution.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/stablehlo/write/reading.h"
#include "lightcone/stablehlo/write/windows.h"

namespace lc::stablehlo {

class Writer;

struct Product {
  Edge operand[2];
  Shape shape[2];  // shape that the operand is reshaped to
  Readings readings;
  std::optional<int> image;     // the operand that is read through windows
  std::vector<Window> windows;  // windows of the image; empty for a matrix product
};

std::optional<Product> match_product(SizeTable& sizes, const Graph& g, NodeId id);
ValueId write_product(Writer& w, const Node& n, const Product& p);

}  // namespace lc::stablehlo
