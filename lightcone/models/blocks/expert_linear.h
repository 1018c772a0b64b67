// Products with the weights of experts: each token has a matrix of its own.
#pragma once

#include <vector>

#include "lightcone/nn/parameter.h"

namespace lc {

// x [tokens, in], experts i64 [tokens] and weights [experts, out, in], stored in any type -> [tokens, out]:
// torch.einsum("ti,toi->to", x, weights[experts]). An expert that does not exist counts as zeros.
Tensor expert_linear(Operand x, const Tensor& experts, const nn::Parameter& weights);

// The parameter behind its f32 value, as it is stored. With `transposed` the file has [experts, in, out]; blocks of a
// quantised format lie along the last axis, so such a parameter is converted first.
nn::Parameter stored_parameter(const Tensor& value, bool transposed = false);
// One parameter [n, ...] of n f32 values of parameters of one shape. If all are stored in one type, so is it.
nn::Parameter stacked_parameter(const std::vector<Tensor>& values);

}  // namespace lc
