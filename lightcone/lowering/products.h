// Queries about sums of products for passes that change the arithmetic: which of them are matrix products or
// convolutions, and which factor is a weight.
#pragma once

#include "lightcone/macros_off.h"

#include <optional>
#include <vector>

#include "lightcone/core/tensor.h"
#include "lightcone/lowering/factors.h"

namespace lc::lowering {

// Returns, by NodeId, whether a value is internal to an attention or its result. Operands are not. Passes leave these
// values unchanged, because a device finds attention by its structure.
std::vector<bool> inside_attention(const Graph& g);
// Returns true for a matrix-matrix product, a product of a weight and a vector, and a convolution, but not for a sum
// within a norm.
bool is_product(const Graph& g, const Factors& f);
// Returns true if the node widens numbers of few bits, so that their sum is computed in f32.
bool is_narrow(const Graph& g, const Node& n);

// Returns, by NodeId, whether a node is a parameter that no assignment changes.
std::vector<bool> loaded_parameters(const Graph& g);

// A factor of a sum with the axes of the result followed by the summed axis. `small` has extent one along each axis on
// which the factor does not depend.
struct Aligned {
  Tensor whole, small;
};
// Returns nullopt if the reduction reads the product through a permuting view.
std::optional<Aligned> aligned(const Graph& g, const Factors& f, int side);

}  // namespace lc::lowering
#include "lightcone/macros_on.h"
