// The two factors of SumReduce(Mul(a, b)) as functions of the loop indices. They distinguish matrix products,
// convolutions and other sums.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc::lowering {

struct Linear {
  Dim offset;
  std::vector<Dim> strides;  // one stride for each loop symbol
};
// Returns d = offset + sum of strides[i] * symbols[i], or nullopt if `d` is not linear in `symbols`.
std::optional<Linear> linear(const Dim& d, const std::vector<Dim>& symbols);

struct Factors {
  NodeId sum;
  std::vector<Dim> symbols;  // output axes, then the summed axis
  View::Position at[2];
  Edge edge[2];
};
// Returns the factors of a sum that is worth a matrix kernel: some output axis is missing in one of the factors, and
// the kernels support the element types.
std::optional<Factors> factors(const Graph& g, NodeId id);
// Does the same for every element type.
std::optional<Factors> factors_of_any_type(const Graph& g, NodeId id);
// Returns true if the factor `side` has an axis of the result that the other factor lacks.
bool has_own_axis(const Factors& f, int side);
// Returns the factors as they are before they were rounded to `to`, for a kernel that rounds what it reads, or nullopt
// if one of them is not rounded. A value that was rounded and materialised is kept: rounding is idempotent.
std::optional<Factors> before_rounding(const Graph& g, const Factors& f, DType to);
// Returns the bf16 value that a node widens to f32, element by element; nullopt if it does not.
std::optional<NodeId> widened_bf16(const Graph& g, NodeId id);
// Returns true if both factors of the sum are signed bytes, and few enough that any sum of their products fits in 32
// bits.
bool exact_bytes(const Graph& g, const Node& sum);

}  // namespace lc::lowering
