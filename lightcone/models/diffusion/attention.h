// Attention of the networks of diffusion models, and the spatial transformers of UNets. Parameters have diffusers'
// names.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lightcone/models/diffusion/layers.h"
#include "lightcone/nn/norm.h"

namespace lc::diffusion {

// Options of Attention.
struct AttentionSizes {
  std::int64_t width = 0;       // that the queries' tokens and the result have
  std::int64_t context = 0;     // width of the tokens attended to; 0: the queries' own
  std::int64_t heads = 1;       // number of heads
  std::int64_t head_width = 0;  // what one head has; 0: width / heads
  bool bias = false;            // queries, keys and values have one
};
// Multi-head attention without a mask. Parameters: to_q, to_k, to_v and to_out.0.
class Attention {
 public:
  explicit Attention(const AttentionSizes& o);
  void visit(nn::Visitor& v);
  // x [batch, n, width] attends to context [batch, m, context], or to itself: [batch, n, width].
  Tensor operator()(const Tensor& x, const Tensor& context = {}) const;

 private:
  std::int64_t heads_;
  nn::Linear<> to_q_, to_k_, to_v_, to_out_;
};

// [batch, n, heads head] -> [batch, heads, n, head], and back.
Tensor split_heads(const Tensor& x, std::int64_t heads);
Tensor join_heads(const Tensor& x);

// A feed-forward network whose inner values are gated by gelu of others (GEGLU; N. Shazeer, "GLU variants improve
// transformer", 2020). Parameters: net.0.proj, net.2.
class GatedFeedForward {
 public:
  explicit GatedFeedForward(std::int64_t width) : in_(width, 8 * width), out_(4 * width, width), inner_(4 * width) {}
  void visit(nn::Visitor& v) { v("net.0.proj", in_)("net.2", out_); }
  Tensor operator()(const Tensor& x) const;

 private:
  nn::Linear<> in_, out_;
  std::int64_t inner_;
};

// Options of SpatialTransformer.
struct SpatialTransformerOptions {
  std::int64_t channels = 0, heads = 1, layers = 1;
  std::int64_t context = 0;  // width of the tokens of the text
  std::int64_t groups = 32;
  bool linear_projection = false;     // tokens, not pixels, are projected (use_linear_projection)
  bool only_cross_attention = false;  // the first attention of a layer also attends to the text
};
// Pixels as tokens that attend to each other and to a text. Parameters: norm, proj_in, transformer_blocks, proj_out.
class SpatialTransformer {
 public:
  // Throws Error if there are more heads than channels.
  explicit SpatialTransformer(const SpatialTransformerOptions& o);
  void visit(nn::Visitor& v);
  // x [batch, channels, h, w], context [batch, m, context] -> [batch, channels, h, w].
  Tensor operator()(const Tensor& x, const Tensor& context) const;

 private:
  // One layer: attention to itself, attention to the text, a feed-forward network. Parameters: norm1 ... norm3, attn1,
  // attn2, ff.
  class Layer {
   public:
    explicit Layer(const SpatialTransformerOptions& o);
    void visit(nn::Visitor& v);
    Tensor operator()(const Tensor& x, const Tensor& context) const;

   private:
    bool only_cross_attention_;
    nn::LayerNorm<> norm1_, norm2_, norm3_;
    Attention attn1_, attn2_;
    GatedFeedForward ff_;
  };

  GroupNorm norm_;
  std::optional<nn::Linear<>> linear_in_, linear_out_;
  std::optional<nn::Conv2d<>> conv_in_, conv_out_;
  std::vector<Layer> layers_;
};

}  // namespace lc::diffusion
