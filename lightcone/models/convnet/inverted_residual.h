// The block of mobile networks: a wide depthwise convolution between two of 1 x 1, with a shortcut between the narrow
// ends (M. Sandler et al., "MobileNetV2", 2018; A. Howard et al., "Searching for MobileNetV3", 2019; M. Tan and Q. Le,
// "EfficientNet", 2019).
#pragma once

#include <optional>
#include <string>

#include "lightcone/models/blocks/conv_norm.h"

namespace lc {

// Names of the parts of an InvertedResidual, and of the two parts of each.
struct InvertedResidualNames {
  std::string expand, depthwise, squeeze, project;
  ConvNormNames expand_parts, depthwise_parts, project_parts;
  std::string reduce = "fc1", expand_gate = "fc2";  // the convolutions of squeeze and excitation
};

struct InvertedResidualOptions {
  std::int64_t in = 0, inner = 0, out = 0;
  int kernel = 3, stride = 1;
  std::int64_t squeezed = 0;  // channels of squeeze and excitation; 0: none
  std::string activation = "relu", squeeze_activation = "relu", gate = "sigmoid";
  bool expands = true;    // false: the block begins with the depthwise convolution
  bool shortcut = false;  // x is added to the result
  // TensorFlow's padding where the stride is 2: one row and one column less before than after, if the kernel has more
  // on that side. Unset: as many on both sides.
  std::optional<std::pair<int, int>> padding = {};  // before and after, of both axes
  double eps = 1e-3;
  InvertedResidualNames names = {};
};

// The block as a module: x [batch, in, h, w] -> [batch, out, h', w'].
class InvertedResidual {
 public:
  explicit InvertedResidual(const InvertedResidualOptions& o);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x) const;

 private:
  InvertedResidualOptions o_;
  std::optional<ConvNorm> expand_;
  ConvNorm depthwise_;
  std::optional<SqueezeExcite> squeeze_;
  ConvNorm project_;
};

}  // namespace lc
