// Recognises selections by a mask of indices as padding or as concatenation.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/stablehlo/write/builder.h"

namespace lc::stablehlo {

class Writer;

// where(inside, pad(x), value)
struct Padding {
  Edge x;
  Sizes low, high;
  double value;
};
std::optional<Padding> match_padding(SizeTable& sizes, const Graph& g, NodeId id);

// where(i < s, pad(first pieces), pad(last piece)), as concat() builds it
struct Joint {
  std::vector<Edge> pieces;
  std::size_t axis;
};
std::optional<Joint> match_joint(SizeTable& sizes, const Graph& g, NodeId id, const std::vector<int>& uses);

ValueId write_padding(Writer& w, const Padding& p);
ValueId write_joint(Writer& w, const Joint& j);

}  // namespace lc::stablehlo
