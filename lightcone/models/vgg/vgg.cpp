#include "lightcone/models/vgg/vgg.h"

#include <algorithm>

namespace lc {
namespace {

// Number of convolutions of each of the five blocks, which have 64, 128, 256, 512 and 512 channels.
std::vector<int> convolutions(int depth) {
  switch (depth) {
    case 11: return {1, 1, 2, 2, 2};
    case 13: return {2, 2, 2, 2, 2};
    case 16: return {2, 2, 3, 3, 3};
    case 19: return {2, 2, 4, 4, 4};
    default: throw Error("VGG", str_cat("there is none of ", depth, " layers; they have 11, 13, 16 or 19"));
  }
}

std::int64_t divided(std::int64_t width, int divisor) {
  if (divisor < 1 || width % divisor != 0)
    throw Error("VGG", str_cat("a width_divisor of ", divisor, " leaves no whole number of ", width, " channels"));
  return width / divisor;
}

auto classifier(const VGGOptions& o) {
  const std::int64_t in = divided(512, o.width_divisor) * 7 * 7, hidden = divided(4096, o.width_divisor);
  return nn::Sequential(nn::Linear<>(in, hidden), nn::ReLU{}, nn::Dropout(o.dropout),      //
                        nn::Linear<>(hidden, hidden), nn::ReLU{}, nn::Dropout(o.dropout),  //
                        nn::Linear<>(hidden, o.num_classes));
}

}  // namespace

VGG::VGG(const VGGOptions& o) : classifier_(classifier(o)) {
  std::int64_t in = 3, width = 64;
  for (const int count : convolutions(o.depth)) {
    const std::int64_t out = divided(width, o.width_divisor);
    for (int k = 0; k < count; ++k) {
      features_.push_back(nn::Conv2d<>(in, out, 3, {.padding = {1}}));
      if (o.batch_norm) features_.push_back(nn::BatchNorm2d<>(out));
      features_.push_back(nn::ReLU{});
      in = out;
    }
    features_.push_back(nn::MaxPool2d<2>());
    width = std::min<std::int64_t>(2 * width, 512);
  }
}

void VGG::require_pictures(const Tensor& x) {
  const auto small = [&](int axis) { return x.extent(axis).constant().value_or(32) < 32; };
  if (x.rank() != 4 || x.extent(1) != Dim(3) || small(2) || small(3))
    throw Error("VGG", str_cat("needs pictures [batch, 3, height, width] of 32 x 32 or more, not ", str(x.shape())));
}

void VGG::visit(nn::Visitor& v) {
  using namespace nn::init;
  const nn::Init zero = nn::constant_init(0);
  const nn::Init kaiming = [](const Extents& s, const Source& from) {
    return kaiming_normal(s, from, {.mode = Fan::Out, .nonlinearity = Nonlinearity::Relu});
  };
  const nn::Init narrow = [](const Extents& s, const Source& from) { return normal(s, from, 0, 0.01); };
  {
    const nn::Visitor::ScopedInit first(v, kaiming, zero);
    for (std::size_t k = 0; k < features_.size(); ++k)
      std::visit([&](auto& layer) { v(str_cat("features.", k), layer); }, features_[k]);
  }
  const nn::Visitor::ScopedInit first(v, narrow, zero);
  v("classifier", classifier_);
}

}  // namespace lc
