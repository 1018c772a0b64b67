// The two factors of SumReduce(Mul(a, b)) as functions of the loop indices: what tells a matrix product, a convolution
// and anything else apart.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc::lowering {

struct Linear {
  Dim offset;
  std::vector<Dim> strides;  // by loop symbol
};
// d = offset + sum of strides[i] * symbols[i], or nothing.
std::optional<Linear> linear(const Dim& d, const std::vector<Dim>& symbols);

struct Factors {
  NodeId sum;
  std::vector<Dim> symbols;  // output axes, then the summed one
  View::Position at[2];
  Edge edge[2];
};
// Of a sum that is worth a matrix kernel: some output axis is missing in one of the factors, and the element types are
// those that kernels here multiply.
std::optional<Factors> factors(const Graph& g, NodeId id);
// The same, whatever the element type is.
std::optional<Factors> factors_of_any_type(const Graph& g, NodeId id);
// Is there an axis of the result that this factor has and the other has not?
bool has_own_axis(const Factors& f, int side);
// The factors as they lie in memory before they were rounded to `to`, where both were: for a kernel that rounds what it
// reads. (What was rounded and copied stays: rounding it again changes nothing.)
std::optional<Factors> before_rounding(const Graph& g, const Factors& f, DType to);
// Are both factors of the sum signed bytes, and so few that 32 bits hold any sum of their products?
bool exact_bytes(const Graph& g, const Node& sum);

}  // namespace lc::lowering
