// The networks that classify. Parameters are named as in torchvision if it has the network.
#pragma once

#include <vector>

#include "config.h"
#include "lightcone/models/vision/vision.h"
#include "lightcone/nn/layers.h"
#include "lightcone/ops/ops.h"

namespace lc::tool {

inline i64 product_of(const std::vector<i64>& shape) {
  i64 n = 1;
  for (const i64 d : shape) n *= d;
  return n;
}

// From x [n, ...] to [n, classes], or to [n, 1] for a regression.
class Mlp {
 public:
  Mlp(const ModelConfig& m, const DataConfig& d) : dropout_(m.dropout) {
    i64 in = product_of(d.shape);
    for (const i64 out : m.hidden) layers_.emplace_back(in, out), in = out;
    layers_.emplace_back(in, d.classes);
  }
  void visit(nn::Visitor& v) {
    for (std::size_t k = 0; k < layers_.size(); ++k) v(str_cat("layers.", k), layers_[k]);
  }
  template <class Mode>
  Tensor operator()(const Tensor& x, Mode& mode) const {
    Tensor h = flatten(x, 1);
    for (std::size_t k = 0; k + 1 < layers_.size(); ++k) {
      h = relu(layers_[k](h));
      if (dropout_ > 0) h = nn::Dropout(dropout_)(h, mode);
    }
    return layers_.back()(h);
  }

 private:
  std::vector<nn::Linear<>> layers_;
  double dropout_;
};

struct ConvNorm {
  nn::Conv2d<> conv;
  nn::BatchNorm2d<> norm;
  ConvNorm(i64 in, i64 out, i64 kernel, int stride)
      : conv(in, out, kernel, {.stride = {stride}, .padding = {static_cast<int>(kernel / 2)}}, false), norm(out) {}
  template <class Mode>
  Tensor operator()(const Tensor& x, Mode& mode) const {
    return norm(conv(x), mode);
  }
};

// Returns [n, height, width] as [n, 1, height, width]; [n, channels, height, width] as it is.
inline Tensor as_pictures(const Tensor& x) { return x.rank() == 3 ? x.unsqueeze(1) : x; }
inline i64 channels_of(const DataConfig& d) { return d.shape.size() == 3 ? d.shape[0] : 1; }

// A small VGG after K. Simonyan and A. Zisserman, "Very deep convolutional networks for large-scale image recognition",
// 2015: blocks of two convolutions with batch norm and a pool, then one linear layer.
class Vgg {
 public:
  Vgg(const ModelConfig& m, const DataConfig& d) : dropout_(m.dropout), fc_(features(m, d), d.classes) {
    i64 in = channels_of(d);
    for (i64 block = 0; block < m.depth; ++block)
      for (int k = 0; k < 2; ++k) {
        const i64 out = m.width << block;
        convs_.emplace_back(in, out, 3, 1);
        in = out;
      }
  }
  void visit(nn::Visitor& v) {
    for (std::size_t k = 0; k < convs_.size(); ++k)
      v(str_cat("features.", k, ".conv"), convs_[k].conv)(str_cat("features.", k, ".norm"), convs_[k].norm);
    v("classifier", fc_);
  }
  template <class Mode>
  Tensor operator()(const Tensor& images, Mode& mode) const {
    Tensor x = as_pictures(images);
    for (std::size_t k = 0; k < convs_.size(); ++k) {
      x = relu(convs_[k](x, mode));
      if (k % 2 == 1) x = max_pool(x, {2}, {2}, {0});
    }
    x = flatten(x, 1);
    return fc_(dropout_ > 0 ? nn::Dropout(dropout_)(x, mode) : x);
  }

 private:
  std::vector<ConvNorm> convs_;
  static i64 features(const ModelConfig& m, const DataConfig& d) {
    const i64 height = d.shape[d.shape.size() - 2], width = d.shape.back();
    return (m.width << (m.depth - 1)) * (height >> m.depth) * (width >> m.depth);
  }
  double dropout_;
  nn::Linear<> fc_;
};

// K. He et al., "Deep residual learning for image recognition", 2016, section 4.2: 6 n + 2 layers in three thirds, the
// second and third at half the size and twice the channels; shortcuts that change shape are convolutions (kind B).
struct ResidualBlock {
  ConvNorm first, second, down;
  bool changes;
  ResidualBlock(i64 in, i64 out, int stride)
      : first(in, out, 3, stride),
        second(out, out, 3, 1),
        down(in, out, 1, stride),
        changes(stride != 1 || in != out) {}
  void visit(nn::Visitor& v) {
    v("conv1", first.conv)("bn1", first.norm)("conv2", second.conv)("bn2", second.norm);
    if (changes) v("downsample.0", down.conv)("downsample.1", down.norm);
  }
  template <class Mode>
  Tensor operator()(const Tensor& x, Mode& mode) const {
    const Tensor y = second(relu(first(x, mode)), mode);
    return relu(y + (changes ? down(x, mode) : x));
  }
};
class ResNet {
 public:
  ResNet(const ModelConfig& m, const DataConfig& d)
      : stem_(channels_of(d), m.width, 3, 1), fc_(4 * m.width, d.classes) {
    i64 in = m.width;
    for (int third = 0; third < 3; ++third)
      for (i64 k = 0; k < (m.depth - 2) / 6; ++k) {
        const i64 out = m.width << third;
        blocks_.emplace_back(in, out, third > 0 && k == 0 ? 2 : 1);
        in = out;
      }
  }
  void visit(nn::Visitor& v) {
    v("conv1", stem_.conv)("bn1", stem_.norm);
    const std::size_t each = blocks_.size() / 3;
    for (std::size_t k = 0; k < blocks_.size(); ++k) v(str_cat("layer", k / each + 1, ".", k % each), blocks_[k]);
    v("fc", fc_);
  }
  template <class Mode>
  Tensor operator()(const Tensor& images, Mode& mode) const {
    Tensor x = relu(stem_(as_pictures(images), mode));
    for (const ResidualBlock& b : blocks_) x = b(x, mode);
    return fc_(mean(x, {2, 3}));
  }

 private:
  ConvNorm stem_;
  std::vector<ResidualBlock> blocks_;
  nn::Linear<> fc_;
};

// Calls f with the network that a configuration describes: a module from samples [n, ...] to [n, classes].
template <class F>
void with_network(const ModelConfig& m, const DataConfig& d, const F& f) {
  if (m.kind == "mlp") return f(Mlp(m, d));
  if (m.kind == "vgg") return f(Vgg(m, d));
  if (m.kind == "resnet") return f(ResNet(m, d));
  f(vision_model(m.kind, {.num_classes = d.classes, .width_divisor = static_cast<int>(m.width_divisor)}));
}

}  // namespace lc::tool
