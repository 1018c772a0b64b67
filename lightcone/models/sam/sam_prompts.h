// SAM's encoder of prompts: points, boxes and masks as vectors.
//
// Parameters: mask_embed.{conv1,layer_norm1,conv2,layer_norm2,conv3}, no_mask_embed, point_embed.K, not_a_point_embed,
// as files name them. The frequencies of positions are those of the whole model.
#pragma once

#include <vector>

#include "lightcone/models/sam/sam_config.h"
#include "lightcone/nn/conv.h"
#include "lightcone/nn/linear.h"
#include "lightcone/nn/norm.h"

namespace lc {

// Encodes places (x, y) from 0 to 1, f32 [..., 2], by sines and cosines of random frequencies [2, features] (M. Tancik
// et al., "Fourier features", 2020): [..., 2 features].
Tensor sam_positions(const Tensor& places, const Tensor& frequencies);
// The middles of the cells of a grid: [n n, 2 features], rows first.
Tensor sam_grid_positions(Graph& g, std::int64_t n, const Tensor& frequencies);

class SamPrompts {
 public:
  explicit SamPrompts(const SamPromptConfig& c);
  void visit(nn::Visitor& v);
  // Points f32 [batch, prompts, points, 2] in pixels and their labels i64 [batch, prompts, points] (1: in the object,
  // 0: beside it, -1: no point, -10: only fills up) -> [batch, prompts, points, width]. `alone`: there are no boxes,
  // and a point that is none follows.
  Tensor points(const Tensor& points, const Tensor& labels, bool alone, const Tensor& frequencies) const;
  // Boxes f32 [batch, prompts, 4], left, top, right, bottom -> [batch, prompts, 2, width].
  Tensor boxes(const Tensor& boxes, const Tensor& frequencies) const;
  // Masks f32 [batch, 1, 4 n, 4 n] of n x n patches -> [batch, width, n, n].
  Tensor masks(const Tensor& masks) const;
  Tensor no_mask() const;  // the same without masks: [1, width, 1, 1]

 private:
  SamPromptConfig c_;
  nn::Conv2d<> conv1_, conv2_, conv3_;
  nn::LayerNorm<> norm1_, norm2_;
  nn::Embedding<> no_mask_, no_point_;
  std::vector<nn::Embedding<>> kinds_;  // out, in, left top, right bottom
};

}  // namespace lc
