// The encoder of SegFormer: stages of transformer blocks on smaller and smaller maps, without positions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lightcone/nn/conv.h"
#include "lightcone/nn/linear.h"
#include "lightcone/nn/norm.h"
#include "lightcone/ops/ops.h"

namespace lc {

// The sizes of a stage.
struct MixStage {
  std::int64_t in = 0, width = 0, layers = 0, heads = 1, inner = 0;
  int patch = 3, stride = 2;  // the convolution before the blocks has them; patches overlap
  int reduction = 1;          // keys and values are of a map that is so many times smaller along each axis
  std::string activation = "gelu";
};

// A block: attention with reduced keys, and a network with a depthwise convolution of 3 x 3 inside.
class MixBlock {
 public:
  explicit MixBlock(const MixStage& s);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x, std::int64_t h, std::int64_t w) const;  // [batch, h w, width]

 private:
  Tensor attend(const Tensor& x, std::int64_t h, std::int64_t w) const;
  Tensor network(const Tensor& x, std::int64_t h, std::int64_t w) const;

  MixStage s_;
  nn::LayerNorm<> attention_norm_, network_norm_;
  nn::Linear<> query_, key_, value_, output_, up_, down_;
  std::optional<nn::Conv2d<>> reduction_;
  nn::LayerNorm<> reduction_norm_;
  nn::Conv2d<> depthwise_;
};

// Pictures [batch, channels, height, width] -> the maps of all stages, [batch, width, h, w].
class MixTransformer {
 public:
  explicit MixTransformer(const std::vector<MixStage>& stages);
  void visit(nn::Visitor& v) { v("stages", stages_); }
  std::vector<Tensor> operator()(const Tensor& pictures) const;

 private:
  struct Stage {
    nn::Conv2d<> patches;
    nn::LayerNorm<> patch_norm, norm;
    std::vector<MixBlock> blocks;
    void visit(nn::Visitor& v) { v("patches", patches)("patch_norm", patch_norm)("blocks", blocks)("norm", norm); }
  };
  std::vector<Stage> stages_;
};

}  // namespace lc
