// Residual networks (K. He et al., "Deep residual learning for image recognition", CVPR 2016), with options for ResNeXt
// and Wide ResNet, as in torchvision.models. Checkpoints of torchvision load, because the parameters have the names of
// its state_dict. Bottlenecks have their stride at the 3x3 convolution ("v1.5").
//
//   Graph g;
//   nn::Model<ResNet> net(g, ResNet({.depth = 50}));
//   net(g.input("pictures", {Dim::symbol("batch", 1, 16), 3, 224, 224})).retrieve("logits");
#pragma once

#include <optional>

#include "lightcone/nn/layers.h"

namespace lc {

// Options of ResNet, as in torchvision.
struct ResNetOptions {
  int depth = 50;  // layers with weights: 18 or 34 (basic blocks of two 3x3), 50, 101 or 152 (bottlenecks)
  std::int64_t num_classes = 1000;
  bool zero_init_residual = false;    // blocks begin as their shortcuts
  int groups = 1;                     // groups of a bottleneck's 3x3 convolution (ResNeXt)
  std::int64_t width_per_group = 64;  // channels per group in the stage of 64 channels
  int width_divisor = 1;              // divides all widths but those of pictures and classes, for small networks
};

// A residual network as a module.
class ResNet {
 public:
  // Throws Error if the depth is not one of the five, if groups are set for a network without bottlenecks, or if the
  // divisor does not divide the widths.
  explicit ResNet(const ResNetOptions& o = {});
  // Initial values of torchvision: convolutions kaiming_normal by fan out, the linear layer as in torch.
  void visit(nn::Visitor& v);
  // Normalised pictures [n, 3, height, width] -> logits [n, num_classes].
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
    std::vector<ConvNorm> body;          // with relu between
    std::optional<ConvNorm> downsample;  // the shortcut, if it changes the shape
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
