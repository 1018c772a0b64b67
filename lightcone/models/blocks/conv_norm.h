// ConvNorm: a convolution, a batch norm and an activation, of which convolutional networks are made, and SqueezeExcite
// (J. Hu et al., "Squeeze-and-excitation networks", 2018). They compute what a trained network computes: the statistics
// of a norm are parameters, and norm and convolution are one convolution whose weight is made when weights are loaded.
//
// Parts have the names that files have for them, so that most files need no table of names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/nn/conv.h"
#include "lightcone/ops/ops.h"

namespace lc {

// Names of the two parts of a ConvNorm.
struct ConvNormNames {
  std::string conv = "conv", norm = "bn";
};

// Options of ConvNorm. The padding keeps the extents of a convolution of stride 1.
struct ConvNormOptions {
  std::int64_t in = 0, out = 0;
  std::vector<std::int64_t> kernel = {1};  // one extent, or one an axis
  int stride = 1, groups = 1, dilation = 1;
  std::optional<int> padding = {};  // unset: dilation (kernel - 1) / 2
  double eps = 1e-5;                // epsilon of the norm
  std::string activation = "linear";
  bool norm = true;   // false: a convolution whose norm is in its weights already
  bool bias = false;  // a bias of the convolution; without a norm there is one
  ConvNormNames names = {};
};

// A batch norm that uses the statistics of its file. Parameters: weight, bias, running_mean, running_var, [channels].
class FrozenBatchNorm {
 public:
  explicit FrozenBatchNorm(std::int64_t channels, double eps = 1e-5) : channels_(channels), eps_(eps) {}
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x) const;  // x [batch, channels, ...]
  // The norm is x * scale() + shift(), both [channels].
  Tensor scale() const;
  Tensor shift() const;

 private:
  std::int64_t channels_;
  double eps_;
  Tensor weight_, bias_, mean_, var_;
};

// The three as a module: x [batch, in, height, width] -> [batch, out, height', width'].
class ConvNorm {
 public:
  explicit ConvNorm(const ConvNormOptions& o);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x, const nn::At& at = nn::At::current()) const;
  // The weight and the bias of the one convolution that is both.
  Tensor weight() const;
  Tensor bias() const;
  // The same with another weight and bias in place of them.
  Tensor with(const Tensor& x, const Tensor& weight, const Tensor& bias) const;
  const ConvNormOptions& options() const { return o_; }

 private:
  ConvNormOptions o_;
  Tensor weight_, bias_;
  FrozenBatchNorm norm_;
};

// Options of SqueezeExcite.
struct SqueezeExciteOptions {
  std::int64_t channels = 0, squeezed = 0;
  std::string activation = "relu", gate = "sigmoid";
  std::string reduce = "fc1", expand = "fc2";  // names of its convolutions
};
// Scales channels by a gate that a small network computes from their means: x [batch, channels, height, width].
class SqueezeExcite {
 public:
  explicit SqueezeExcite(const SqueezeExciteOptions& o);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x) const;

 private:
  SqueezeExciteOptions o_;
  nn::Conv2d<> reduce_, expand_;
};

}  // namespace lc
