// Residual networks as they are run, of stages of blocks with shortcuts: ResNet, ResNeXt, Wide ResNet and RegNet. (The
// class of models/resnet is torchvision's ResNet, which can be trained.)
//
// K. He et al., "Deep residual learning for image recognition", 2016; S. Xie et al., "Aggregated residual
// transformations for deep neural networks", 2017; I. Radosavovic et al., "Designing network design spaces", 2020.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lightcone/models/blocks/conv_norm.h"

namespace lc {

// How many layers of which widths a stage has.
struct ResidualStage {
  std::int64_t layers = 0, width = 0;
  std::int64_t inner = 0;  // width of a bottleneck's middle
  int groups = 1, stride = 2;
};
// The options of a ResidualNet.
struct ResidualOptions {
  std::int64_t channels = 3, stem = 64;
  int stem_kernel = 7;
  bool stem_pool = true;   // halves the picture once more, before the first stage
  bool pool_ceil = false;  // as the library neural-api pools: the last window may hold padding alone
  std::vector<ResidualStage> stages = {};
  bool bottleneck = true;     // 1 x 1, 3 x 3, 1 x 1; else two of 3 x 3
  bool stride_first = false;  // a bottleneck's stride is at the first of the three
  bool squeeze = false;       // RegNet Y: squeeze and excitation before the last of the three
  std::string activation = "relu";
  double eps = 1e-5;
};

// The network without a head as a module: pictures [batch, channels, height, width] -> the results of the stem and of
// each stage. Parameters: embedder.{convolution,normalization} and stages.S.layers.L.{layer.K,shortcut} with the same
// two; layer.2.attention.{0,2} of squeeze and excitation.
class ResidualNet {
 public:
  explicit ResidualNet(const ResidualOptions& o);
  void visit(nn::Visitor& v);
  std::vector<Tensor> operator()(const Tensor& pictures) const;
  std::int64_t width() const { return o_.stages.back().width; }  // the last stage has it

 private:
  struct Layer {
    std::vector<ConvNorm> body;            // activated, but for the last
    std::optional<SqueezeExcite> squeeze;  // before the last of the body
    std::optional<ConvNorm> shortcut;
    void visit(nn::Visitor& v);
    Tensor operator()(const Tensor& x, const std::string& activation) const;
  };
  Layer layer(std::int64_t in, const ResidualStage& s, int stride) const;
  Tensor pooled(const Tensor& x) const;

  ResidualOptions o_;
  ConvNorm stem_;
  struct Stage {
    std::vector<Layer> layers;
    void visit(nn::Visitor& v) { v("layers", layers); }
  };
  std::vector<Stage> stages_;
};

}  // namespace lc
