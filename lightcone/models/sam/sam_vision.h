// SAM's encoder of pictures: a ViT whose layers attend within windows or over the whole map, with relative positions of
// rows and columns that depend on the query (Y. Li et al., "MViTv2", 2021), and a neck of convolutions.
//
// Parameters: patch_embed.projection, pos_embed, layers.K.{layer_norm1,attn.{qkv,proj,rel_pos_h,rel_pos_w},layer_norm2,
// mlp.lin1,mlp.lin2}, neck.{conv1,layer_norm1,conv2,layer_norm2}, as files name them.
#pragma once

#include <vector>

#include "lightcone/models/sam/sam_config.h"
#include "lightcone/nn/conv.h"
#include "lightcone/nn/linear.h"
#include "lightcone/nn/norm.h"

namespace lc {

// Two layers with an activation between them. Parameters: lin1, lin2.
class SamMlp {
 public:
  SamMlp(std::int64_t width, std::int64_t inner, std::string activation)
      : first_(width, inner), second_(inner, width), activation_(std::move(activation)) {}
  void visit(nn::Visitor& v) { v("lin1", first_)("lin2", second_); }
  Tensor operator()(const Tensor& x) const;

 private:
  nn::Linear<> first_, second_;
  std::string activation_;
};

// Normalises the channels of [batch, channels, height, width].
Tensor sam_norm(const nn::LayerNorm<>& norm, const Tensor& x);

// One layer: x [batch, n, n, width] -> the same shape.
class SamVisionLayer {
 public:
  SamVisionLayer(const SamVisionConfig& c, bool global);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor attend(const Tensor& x) const;  // x [batch, side, side, width], all of which see each other
  Tensor in_windows(const Tensor& x) const;

  std::int64_t width_, heads_, side_;
  bool global_, relative_;
  nn::LayerNorm<> norm1_, norm2_;
  nn::Linear<> query_key_value_, projection_;
  Tensor rows_, columns_;  // vectors for each distance, [2 side - 1, width / heads]
  SamMlp mlp_;
};

// Pictures f32 [batch, channels, n, n] of the size in the configuration -> features [batch, out, n / patch, n / patch].
class SamVision {
 public:
  explicit SamVision(const SamVisionConfig& c);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& pictures) const;

 private:
  SamVisionConfig c_;
  nn::Conv2d<> patches_;
  Tensor positions_;
  std::vector<SamVisionLayer> layers_;
  nn::Conv2d<> conv1_, conv2_;
  nn::LayerNorm<> norm1_, norm2_;
};

}  // namespace lc
