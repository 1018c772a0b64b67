// Parameter is a weight in its storage format, which may be narrower than the type the model computes in. Layers are
// plain functions of tensors and parameters. The name of a parameter is its path
// ("model.layers.0.mlp.gate_proj.weight"), so loading and saving need no code per layer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lightcone/core/tensor.h"
#include "lightcone/formats/block_formats.h"

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

// The type in which a parameter is stored: floating numbers, or a quantised format.
struct Storage {
  DType dtype = DType::F32;
  std::optional<QuantFormat> quant = {};  // then dtype is not used
};
// Chooses the storage of a parameter by its path and its shape.
using StorageOf = std::function<Storage(std::string_view path, const Shape& shape)>;

// Rows [...] of a matrix by ids, [..., n]: torch.nn.functional.embedding. If the matrix is a parameter converted from
// its stored form, the stored rows are selected first and only they are converted.
Tensor rows(Operand matrix, Operand ids);

// Adds to the graph an input that holds a parameter of `shape`, stored as `dtype` or, with `quant`, as u8 blocks along
// the last axis. Throws Error if the last axis is not a whole number of blocks.
Parameter parameter(Graph& g, const std::string& path, Shape shape, DType dtype, std::optional<QuantFormat> quant = {});

// torch.nn.functional.linear: x [..., in], weight [out, in], bias [out] or undefined -> [..., out].
Tensor linear(Operand x, const Parameter& weight, const Parameter& bias = {});
// x [..., n] / rms(x) * weight [n]  (Zhang & Sennrich 2019; torch.nn.RMSNorm).
Tensor rms_norm(Operand x, const Parameter& weight, double eps);

}  // namespace lc::nn
