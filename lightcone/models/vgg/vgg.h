// VGG (K. Simonyan and A. Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR 2015),
// as torchvision.models has it: its checkpoints load, because the parameters have the names of its state_dict.
//
//   Graph g;
//   nn::Model<VGG> net(g, VGG({.depth = 19}));
//   net(g.input("pictures", {Dim::symbol("batch", 1, 16), 3, 224, 224})).retrieve("logits");
#pragma once

#include <variant>

#include "lightcone/nn/layers.h"

namespace lc {

struct VGGOptions {
  int depth = 16;           // layers that have weights: 11, 13, 16 or 19
  bool batch_norm = false;  // behind each convolution (vgg16_bn)
  std::int64_t num_classes = 1000;
  double dropout = 0.5;   // behind the first two linear layers, while the model trains
  int width_divisor = 1;  // a small one: all widths but those of pictures and classes are divided by it
};

class VGG {
 public:
  // Error for a depth that is none of the four, and where the divisor leaves no whole widths.
  explicit VGG(const VGGOptions& o = {});
  // First values as torchvision's: convolutions kaiming_normal by fan out, linear layers normal(0, 0.01), biases 0.
  void visit(nn::Visitor& v);
  // Normalised pictures [n, 3, height, width] to logits [n, num_classes]. Error where they are smaller than 32 x 32.
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
