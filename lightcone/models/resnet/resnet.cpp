#include "lightcone/models/resnet/resnet.h"

namespace lc {
namespace {

std::vector<int> blocks(int depth) {
  switch (depth) {
    case 18: return {2, 2, 2, 2};
    case 34:
    case 50: return {3, 4, 6, 3};
    case 101: return {3, 4, 23, 3};
    case 152: return {3, 8, 36, 3};
    default: throw Error("ResNet", str_cat("there is none of ", depth, " layers; they have 18, 34, 50, 101 or 152"));
  }
}
bool has_bottlenecks(const ResNetOptions& o) { return o.depth >= 50; }

std::int64_t base_width(const ResNetOptions& o) {
  if (o.width_divisor < 1 || 64 % o.width_divisor != 0)
    throw Error("ResNet", str_cat("a width_divisor of ", o.width_divisor, " leaves no whole number of 64 channels"));
  return 64 / o.width_divisor;
}
std::int64_t out_width(const ResNetOptions& o, int stage) {
  return (base_width(o) << stage) * (has_bottlenecks(o) ? 4 : 1);
}

}  // namespace

ResNet::ConvNorm::ConvNorm(std::int64_t in, std::int64_t out, int kernel, int stride, int groups)
    : conv(in, out, kernel, {.stride = {stride}, .padding = {kernel / 2}, .groups = groups}, false), norm(out) {}

ResNet::Block ResNet::basic_block(std::int64_t in, std::int64_t out, int stride) {
  return {{ConvNorm(in, out, 3, stride), ConvNorm(out, out, 3)}, {}, false};
}
ResNet::Block ResNet::bottleneck(std::int64_t in, std::int64_t width, std::int64_t out, int stride, int groups) {
  return {{ConvNorm(in, width, 1), ConvNorm(width, width, 3, stride, groups), ConvNorm(width, out, 1)}, {}, false};
}

ResNet::ResNet(const ResNetOptions& o) : stem_(3, base_width(o), 7, 2), fc_(out_width(o, 3), o.num_classes) {
  if (!has_bottlenecks(o) && (o.groups != 1 || o.width_per_group != 64))
    throw Error("ResNet", str_cat("a network of ", o.depth, " layers has no bottlenecks, which alone have groups"));
  std::int64_t in = base_width(o);
  for (const int count : blocks(o.depth)) {
    const int stage = static_cast<int>(layers_.size());
    const std::int64_t out = out_width(o, stage), width = (base_width(o) << stage) * o.width_per_group / 64 * o.groups;
    if (width < 1)
      throw Error("ResNet",
                  str_cat(o.groups, " groups of ", o.width_per_group, " channels leave nothing of a bottleneck"));
    std::vector<Block>& layer = layers_.emplace_back();
    for (int k = 0; k < count; ++k) {
      const int stride = stage > 0 && k == 0 ? 2 : 1;
      Block b = has_bottlenecks(o) ? bottleneck(in, width, out, stride, o.groups) : basic_block(in, out, stride);
      if (stride != 1 || in != out) b.downsample = ConvNorm(in, out, 1, stride);
      b.zero_init = o.zero_init_residual;
      layer.push_back(std::move(b));
      in = out;
    }
  }
}

void ResNet::require_pictures(const Tensor& x) {
  if (x.rank() != 4 || x.extent(1) != Dim(3))
    throw Error("ResNet", str_cat("needs pictures [batch, 3, height, width], not ", str(x.shape())));
}

void ResNet::Block::visit(nn::Visitor& v) {
  for (std::size_t k = 0; k < body.size(); ++k) {
    v(str_cat("conv", k + 1), body[k].conv);
    std::optional<nn::Visitor::ScopedInit> zero;
    if (zero_init && k + 1 == body.size()) zero.emplace(v, nn::Init{}, nn::Init{}, nn::constant_init(0));
    v(str_cat("bn", k + 1), body[k].norm);
  }
  if (downsample) v("downsample.0", downsample->conv)("downsample.1", downsample->norm);
}

void ResNet::visit(nn::Visitor& v) {
  using namespace nn::init;
  const nn::Init kaiming = [](const Extents& s, const Source& from) {
    return kaiming_normal(s, from, {.mode = Fan::Out, .nonlinearity = Nonlinearity::Relu});
  };
  {
    const nn::Visitor::ScopedInit first(v, kaiming);
    v("conv1", stem_.conv)("bn1", stem_.norm);
    for (std::size_t k = 0; k < layers_.size(); ++k) v(str_cat("layer", k + 1), layers_[k]);
  }
  v("fc", fc_);
}

}  // namespace lc
