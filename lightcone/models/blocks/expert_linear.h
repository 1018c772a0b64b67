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

inline constexpr std::int64_t kMxfp4Block = 32;  // elements that share a scale
// Weights [experts, out, in] of two tensors of bytes as GPT-OSS stores them: `blocks` u8 [experts, out, in / 32, 16],
// of which byte j holds the elements 2j (low bits) and 2j + 1 as floats of 4 bits (E2M1), and `scales` u8 [experts,
// out, in / 32], powers of two with a bias of 127 (E8M0). The bytes are put into the order of ggml's format when a file
// is loaded.
nn::Parameter mxfp4_parameter(const Tensor& blocks, const Tensor& scales);

}  // namespace lc
