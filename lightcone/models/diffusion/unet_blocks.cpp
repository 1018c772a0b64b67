#include "lightcone/models/diffusion/unet_blocks.h"

#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc::diffusion {
namespace {

ResnetBlock resnet(const UNetConfig& u, std::int64_t in, std::int64_t out, double scale = 1) {
  return ResnetBlock({.in = in,
                      .out = out,
                      .time = u.block_time_width(),
                      .groups = u.groups,
                      .eps = u.eps,
                      .activation = u.activation,
                      .scale_shift = u.scale_shift,
                      .output_scale = scale});
}
SpatialTransformer transformer(const UNetConfig& u, const UNetLevel& level, bool only_cross_attention) {
  return SpatialTransformer({.channels = level.channels,
                             .heads = level.heads,
                             .layers = level.depth,
                             .context = level.context,
                             .groups = u.groups,
                             .linear_projection = u.linear_projection,
                             .only_cross_attention = only_cross_attention});
}

}  // namespace

DownBlock::DownBlock(const UNetConfig& u, std::size_t k, std::int64_t in) {
  const UNetLevel& level = u.levels[k];
  for (std::int64_t n = 0; n < level.layers; ++n) {
    resnets_.push_back(resnet(u, n == 0 ? in : level.channels, level.channels));
    if (level.attends_down) attentions_.push_back(transformer(u, level, u.only_cross_attention));
  }
  if (k + 1 < u.levels.size()) down_.emplace(level.channels, u.downsample_padding);
}
void DownBlock::visit(nn::Visitor& v) {
  v("resnets", resnets_)("attentions", attentions_);
  if (down_) v("downsamplers.0", *down_);
}
Tensor DownBlock::operator()(Tensor x, const Tensor& time, const Tensor& context, std::vector<Tensor>& skips) const {
  for (std::size_t n = 0; n < resnets_.size(); ++n) {
    x = resnets_[n](x, time);
    if (!attentions_.empty()) x = attentions_[n](x, context);
    skips.push_back(x);
  }
  if (down_) skips.push_back(x = (*down_)(x));
  return x;
}

MiddleBlock::MiddleBlock(const UNetConfig& u) {
  const UNetLevel& level = u.levels.back();
  const int resnets = u.mid == MidBlock::CrossAttention ? 2 : 1;
  for (int n = 0; n < resnets; ++n) resnets_.push_back(resnet(u, level.channels, level.channels, u.mid_scale));
  if (u.mid == MidBlock::CrossAttention) attentions_.push_back(transformer(u, level, false));
}
void MiddleBlock::visit(nn::Visitor& v) { v("resnets", resnets_)("attentions", attentions_); }
Tensor MiddleBlock::operator()(const Tensor& x, const Tensor& time, const Tensor& context) const {
  const Tensor h = resnets_[0](x, time);
  return attentions_.empty() ? h : resnets_[1](attentions_[0](h, context), time);
}

UpBlock::UpBlock(const UNetConfig& u, std::size_t k, std::int64_t in) {
  const UNetLevel& level = u.levels[k];
  const std::int64_t below = u.levels[k == 0 ? 0 : k - 1].channels;  // what the first value of this level came from
  for (std::int64_t n = 0; n <= level.layers; ++n) {
    const std::int64_t from = n == 0 ? in : level.channels, skip = n == level.layers ? below : level.channels;
    resnets_.push_back(resnet(u, from + skip, level.channels));
    if (level.attends_up) attentions_.push_back(transformer(u, level, u.only_cross_attention));
  }
  if (k > 0) up_.emplace(level.channels);
}
void UpBlock::visit(nn::Visitor& v) {
  v("resnets", resnets_)("attentions", attentions_);
  if (up_) v("upsamplers.0", *up_);
}
Tensor UpBlock::operator()(Tensor x, const Tensor& time, const Tensor& context, std::vector<Tensor>& skips) const {
  for (std::size_t n = 0; n < resnets_.size(); ++n) {
    x = resnets_[n](cat({x, skips.back()}, 1), time);
    skips.pop_back();
    if (!attentions_.empty()) x = attentions_[n](x, context);
  }
  return up_ ? (*up_)(x, skips.back()) : x;
}

}  // namespace lc::diffusion
