// The two operands of SumReduce(Mul(a, b)) as functions of the loop symbols: what tells a matrix
// product, a convolution and anything else apart.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc::host {

struct Linear {
  Dim offset;
  std::vector<Dim> strides;  // by loop symbol
};
// d = offset + sum of strides[i] * symbols[i], or nothing.
std::optional<Linear> linear(const Dim& d, const std::vector<Dim>& symbols);

struct Sides {
  NodeId sum;
  std::vector<Dim> symbols;  // output axes, then the summed one
  View::Position at[2];
  Edge edge[2];
};
// Of what is worth a matrix kernel: some output axis is missing in one of the operands.
std::optional<Sides> sides(const Graph& g, NodeId id);

}  // namespace lc::host
