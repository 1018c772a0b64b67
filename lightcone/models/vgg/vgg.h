// VGG (K. Simonyan and A. Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR 2015),
// as in torchvision.models. Checkpoints of torchvision load, because the parameters have the names of its state_dict.
//
//   Graph g;
//   nn::Model<VGG> net(g, VGG({.depth = 19}));
//   net(g.input("pictures", {Dim::symbol("batch", 1, 16), 3, 224, 224})).retrieve("logits");
#pragma once

#include <variant>

#include "lightcone/nn/layers.h"

namespace lc {

// Options of VGG, as in torchvision.
struct VGGOptions {
  int depth = 16;           // layers with weights: 11, 13, 16 or 19
  bool batch_norm = false;  // after each convolution (vgg16_bn)
  std::int64_t num_classes = 1000;
  double dropout = 0.5;   // after the first two linear layers, in training
  int width_divisor = 1;  // divides all widths but those of pictures and classes, for small networks
};

// A VGG network as a module.
class VGG {
 public:
  // Throws Error if the depth is not one of the four, or if the divisor does not divide the widths.
  explicit VGG(const VGGOptions& o = {});
  // Initial values of torchvision: convolutions kaiming_normal by fan out, linear layers normal(0, 0.01), biases 0.
  void visit(nn::Visitor& v);
  // Normalised pictures [n, 3, height, width] -> logits [n, num_classes]. Throws Error if they are smaller than 32 x
  // 32.
  template <class Mode>
  Tensor operator()(const Tensor& pictures, Mode& mode) const {
    require_pictures(pictures);
    Tensor x = pictures;
    for (const Layer& layer : features_)
      x = std::visit([&](const auto& l) -> Tensor { return nn::apply(l, mode, nn::At::current(), x); }, layer);
    return classifier_(flatten(avgpool_(x), 1), mode);
  }

 private:
  static void require_pictures(const Tensor& x);
  using Layer = std::variant<nn::Conv2d<>, nn::BatchNorm2d<>, nn::ReLU, nn::MaxPool2d<2>>;
  std::vector<Layer> features_;
  nn::AdaptiveAvgPool2d<7> avgpool_;
  nn::Sequential<nn::Linear<>, nn::ReLU, nn::Dropout, nn::Linear<>, nn::ReLU, nn::Dropout, nn::Linear<>> classifier_;
};

}  // namespace lc
