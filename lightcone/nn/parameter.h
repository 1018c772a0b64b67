// Parameter is a weight in its storage format, which may be narrower than the type the model computes in. Layers are
// plain functions of tensors and parameters. The name of a parameter is its path
// ("model.layers.0.mlp.gate_proj.weight"), so loading and saving need no code per layer.
#pragma once

#include <optional>
#include <string>

#include "lightcone/composites/block_formats.h"
#include "lightcone/core/tensor.h"

namespace lc::nn {

// A weight of shape [..., n] as it is stored: floating numbers, or blocks of a quantised format along the last axis.
struct Parameter {
  Tensor stored;  // [..., n], or u8 blocks of a quantised format
  std::optional<QuantFormat> quant = {};

  bool defined() const { return stored.defined(); }  // false if the model does not have the parameter
  // The weight as f32. Matrix kernels read the stored form directly.
  Tensor value() const;
  // The rows with these ids as f32. Only the selected rows are converted.
  Tensor rows(Operand ids) const;
};

// Adds to the graph an input that holds a parameter of `shape`, stored as `dtype` or, with `quant`, as u8 blocks along
// the last axis. Throws Error if the last axis is not a whole number of blocks.
Parameter parameter(Graph& g, const std::string& path, Shape shape, DType dtype, std::optional<QuantFormat> quant = {});

// torch.nn.functional.linear: x [..., in], weight [out, in], bias [out] or undefined -> [..., out].
Tensor linear(Operand x, const Parameter& weight, const Parameter& bias = {});
// x [..., n] / rms(x) * weight [n]  (Zhang & Sennrich 2019; torch.nn.RMSNorm).
Tensor rms_norm(Operand x, const Parameter& weight, double eps);

}  // namespace lc::nn
