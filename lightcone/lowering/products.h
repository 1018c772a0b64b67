// Sums of products as passes see them that change in what they are computed: which of them are products of matrices or
// convolutions, and on which side a weight is.
#pragma once

#include "lightcone/macros_off.h"

#include <optional>
#include <vector>

#include "lightcone/core/tensor.h"
#include "lightcone/lowering/factors.h"

namespace lc::lowering {

// By NodeId: is it computed within attention, which a device computes as a whole if it finds it as it was written? (Its
// operands are not, its result is.)
std::vector<bool> inside_attention(const Graph& g);
// A product of two matrices, or of a weight and a vector, or a convolution: not a sum within a norm.
bool is_product(const Graph& g, const Factors& f);
// Is it a number of few bits already, in f32 for the sake of the sum?
bool is_narrow(const Graph& g, const Node& n);

// By NodeId: a parameter that no assignment changes.
std::vector<bool> loaded_parameters(const Graph& g);

// A factor of a sum with the axes of the result and then the summed one; `small` has an extent of one where all along
// an axis the factor is the same.
struct Aligned {
  Tensor whole, small;
};
// Nothing where the sum reads its product in an order of its own.
std::optional<Aligned> aligned(const Graph& g, const Factors& f, int side);

}  // namespace lc::lowering
#include "lightcone/macros_on.h"
