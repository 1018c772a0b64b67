// The ResNet-20 of He et al. 2016 for CIFAR-10 (section 4.2, shortcuts of type A): x [n, 3, 32, 32] -> [n, 10].
#pragma once

#include "lightcone/nn/layers.h"

namespace lc::test {

struct Block {
  nn::Conv2d<> conv1, conv2;
  nn::BatchNorm2d<> bn1, bn2;
  int in, out, stride;
  Block(int in_, int out_, int stride_)
      : conv1(in_, out_, 3, {.stride = {stride_}, .padding = {1}}, false),
        conv2(out_, out_, 3, {.padding = {1}}, false),
        bn1(out_),
        bn2(out_),
        in(in_),
        out(out_),
        stride(stride_) {}
  void visit(nn::Visitor& v) { v("conv1", conv1)("bn1", bn1)("conv2", conv2)("bn2", bn2); }
  template <class Mode>
  Tensor operator()(const Tensor& x, Mode& mode) const {
    Tensor shortcut = x;  // every second pixel, with zeros for the added channels
    if (stride != 1)
      shortcut = slice(slice(x, 2, 0, 1 << 30, stride), 3, 0, 1 << 30, stride).pad(1, (out - in) / 2, (out - in) / 2);
    return relu(bn2(conv2(relu(bn1(conv1(x), mode))), mode) + shortcut);
  }
};

struct ResNet20 {
  nn::Conv2d<> conv1{3, 16, 3, {.padding = {1}}, false};
  nn::BatchNorm2d<> bn1{16};
  nn::Sequential<Block, Block, Block> layer1{Block(16, 16, 1), Block(16, 16, 1), Block(16, 16, 1)};
  nn::Sequential<Block, Block, Block> layer2{Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1)};
  nn::Sequential<Block, Block, Block> layer3{Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1)};
  nn::Linear<> linear{64, 10};
  void visit(nn::Visitor& v) {
    v("conv1", conv1)("bn1", bn1)("layer1", layer1)("layer2", layer2)("layer3", layer3)("linear", linear);
  }
  template <class Mode>
  Tensor operator()(const Tensor& x, Mode& mode) const {
    const Tensor h = layer3(layer2(layer1(relu(bn1(conv1(x), mode)), mode), mode), mode);
    return linear(mean(h, {2, 3}));
  }
};

}  // namespace lc::test
