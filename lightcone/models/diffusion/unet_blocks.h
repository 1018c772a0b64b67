// The blocks of UNets: residual blocks with spatial transformers, on the way down, in the middle and on the way up.
// Parameters have diffusers' names: resnets, attentions, downsamplers.0, upsamplers.0.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/models/diffusion/attention.h"
#include "lightcone/models/diffusion/unet_config.h"

namespace lc::diffusion {

// DownBlock2D and CrossAttnDownBlock2D.
class DownBlock {
 public:
  // Level `k` of the UNet, whose input has `in` channels; the last level does not halve the picture.
  DownBlock(const UNetConfig& u, std::size_t k, std::int64_t in);
  void visit(nn::Visitor& v);
  // Appends every value that the way up reads to `skips`; the last one is the result.
  Tensor operator()(Tensor x, const Tensor& time, const Tensor& context, std::vector<Tensor>& skips) const;

 private:
  std::vector<ResnetBlock> resnets_;
  std::vector<SpatialTransformer> attentions_;
  std::optional<Downsample> down_;
};

// UNetMidBlock2DCrossAttn; of UNetMidBlock2D a UNet has one residual block alone.
class MiddleBlock {
 public:
  explicit MiddleBlock(const UNetConfig& u);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x, const Tensor& time, const Tensor& context) const;

 private:
  std::vector<ResnetBlock> resnets_;
  std::vector<SpatialTransformer> attentions_;
};

// UpBlock2D and CrossAttnUpBlock2D.
class UpBlock {
 public:
  // Level `k` of the UNet counted from the first one down, whose input has `in` channels.
  UpBlock(const UNetConfig& u, std::size_t k, std::int64_t in);
  void visit(nn::Visitor& v);
  // Takes its values from the end of `skips`; the result is as large as the last one that it leaves.
  Tensor operator()(Tensor x, const Tensor& time, const Tensor& context, std::vector<Tensor>& skips) const;

 private:
  std::vector<ResnetBlock> resnets_;
  std::vector<SpatialTransformer> attentions_;
  std::optional<Upsample> up_;
};

}  // namespace lc::diffusion
