// Parameter: a weight as it is stored, which may be narrower than what the model computes in.
// Layers are plain functions of tensors and parameters; the name of a parameter is its path
// ("model.layers.0.mlp.gate_proj.weight"), so loading and saving need no code per layer.
#pragma once

#include <optional>
#include <string>

#include "lightcone/composites/block_formats.h"
#include "lightcone/core/tensor.h"

namespace lc::nn {

struct Parameter {
  Tensor stored;  // [..., n], or u8 blocks of a quantised format
  std::optional<QuantFormat> quant = {};

  bool defined() const { return stored.defined(); }
  Tensor value() const;            // f32; matrix kernels read the stored form itself
  Tensor rows(Operand ids) const;  // f32 rows picked before they are widened
};

// An input that holds a parameter of `shape` stored as `dtype`, or in blocks of `quant` along the
// last axis (which must be whole blocks).
Parameter parameter(Graph& g, const std::string& path, Shape shape, DType dtype, std::optional<QuantFormat> quant = {});

// torch.nn.functional.linear: x [..., in], weight [out, in], bias [out] or undefined -> [..., out].
Tensor linear(Operand x, const Parameter& weight, const Parameter& bias = {});
// x [..., n] / rms(x) * weight [n]  (Zhang & Sennrich 2019; torch.nn.RMSNorm).
Tensor rms_norm(Operand x, const Parameter& weight, double eps);

}  // namespace lc::nn
