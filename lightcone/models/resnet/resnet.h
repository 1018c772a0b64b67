// Residual networks (K. He et al., "Deep residual learning for image recognition", CVPR 2016), and ResNeXt and Wide
// ResNet, which are their options, as torchvision.models has them: its checkpoints load, because the parameters have
// the names of its state_dict. Bottlenecks have their stride at the 3x3 convolution ("v1.5").
//
//   Graph g;
//   nn::Model<ResNet> net(g, ResNet({.depth = 50}));
//   net(g.input("pictures", {Dim::symbol("batch", 1, 16), 3, 224, 224})).retrieve("logits");
#pragma once

#include <optional>

#include "lightcone/nn/layers.h"

namespace lc {

struct ResNetOptions {
  int depth = 50;  // layers that have weights: 18 or 34 (blocks of two 3x3), 50, 101 or 152 (bottlenecks)
  std::int64_t num_classes = 1000;
  bool zero_init_residual = false;    // blocks begin as what their shortcut gives
  int groups = 1;                     // of a bottleneck's 3x3 convolution (ResNeXt), and its channels in each,
  std::int64_t width_per_group = 64;  // where the stage has 64
  int width_divisor = 1;              // a small one: all widths but those of pictures and classes are divided by it
};

class ResNet {
 public:
  // Error for a depth that is none of the five, groups of blocks that have none, and where the divisor leaves no whole
  // widths.
  explicit ResNet(const ResNetOptions& o = {});
  // First values as torchvision's: convolutions kaiming_normal by fan out, the linear layer torch's.
  void visit(nn::Visitor& v);
  // Normalised pictures [n, 3, height, width] to logits [n, num_classes].
  template <class Mode>
  Tensor operator()(const Tensor& pictures, Mode& mode) const {
    require_pictures(pictures);
    Tensor x = maxpool_(relu(stem_(pictures, mode)));
    for (const std::vector<Block>& layer : layers_)
      for (const Block& block : layer) x = block(x, mode);
    return fc_(avgpool_(x));
  }

 private:
  static void require_pictures(const Tensor& x);
  struct ConvNorm {
    nn::Conv2d<> conv;
    nn::BatchNorm2d<> norm;
    ConvNorm(std::int64_t in, std::int64_t out, int kernel, int stride = 1, int groups = 1);
    template <class Mode>
    Tensor operator()(const Tensor& x, Mode& mode) const {
      return norm(conv(x), mode);
    }
  };
  struct Block {
    std::vector<ConvNorm> body;          // relu between them
    std::optional<ConvNorm> downsample;  // the shortcut, where its shape changes
    bool zero_init;
    void visit(nn::Visitor& v);
    template <class Mode>
    Tensor operator()(const Tensor& x, Mode& mode) const {
      Tensor y = body[0](x, mode);
      for (std::size_t k = 1; k < body.size(); ++k) y = body[k](relu(y), mode);
      return relu(y + (downsample ? (*downsample)(x, mode) : x));
    }
  };
  static Block basic_block(std::int64_t in, std::int64_t out, int stride);
  static Block bottleneck(std::int64_t in, std::int64_t width, std::int64_t out, int stride, int groups);

  ConvNorm stem_;
  nn::MaxPool2d<3, 2, 1> maxpool_;
  std::vector<std::vector<Block>> layers_;
  nn::AvgPoolGlobal avgpool_;
  nn::Linear<> fc_;
};

}  // namespace lc
