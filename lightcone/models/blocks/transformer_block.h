// TransformerBlock: attention and a feed-forward network with residual sums, as encoders of texts and pictures have
// them (A. Vaswani et al., "Attention is all you need", 2017). Each projection is a parameter of its own, so that each
// can be stored in its own type.
//
// Parameters: query, key, value, output, attention_norm, up, down, feed_forward_norm; each has .weight and .bias. With
// a layer scale also attention_scale and feed_forward_scale [width].
#pragma once

#include <cstdint>
#include <string>

#include "lightcone/nn/linear.h"
#include "lightcone/nn/norm.h"
#include "lightcone/ops/ops.h"

namespace lc {

// The sizes and the kind of a TransformerBlock.
struct TransformerBlockOptions {
  std::int64_t width = 0, heads = 0;  // heads divide the width
  std::int64_t inner = 0;             // width between the two products of the feed-forward network
  double eps = 1e-5;                  // epsilon of the norms
  std::string activation = "gelu";    // one of activation_names()
  bool norm_first = false;            // norms before attention and network (ViT), not after the sums (BERT)
  bool query_key_value_bias = true;
  bool gated = false;        // "up" gives 2 x inner, of which the first half, activated, scales the second (SwiGLU)
  bool layer_scale = false;  // attention and network are scaled, each channel by a parameter, before they are added
};

// Dropout of a layer in training, beside that of the attention weights (AttentionOptions).
struct ResidualDropout {
  Random* random = nullptr;                // null: no dropout
  double attention = 0, feed_forward = 0;  // probabilities for what is added to the residual stream
};

// One layer as a module: x [batch, length, width] -> the same shape.
class TransformerBlock {
 public:
  explicit TransformerBlock(const TransformerBlockOptions& o);
  void visit(nn::Visitor& v);
  // A mask of `attention` broadcasts to [batch, heads, length, length]; true: attend.
  Tensor operator()(const Tensor& x, const AttentionOptions& attention = {},
                    const nn::At& at = nn::At::current()) const {
    return (*this)(x, attention, ResidualDropout(), at);
  }
  // The same in training.
  Tensor operator()(const Tensor& x, const AttentionOptions& attention, const ResidualDropout& dropout,
                    const nn::At& at = nn::At::current()) const;

 private:
  Tensor attend(const Tensor& x, const AttentionOptions& attention) const;
  Tensor feed_forward(const Tensor& x) const;
  Tensor heads(const Tensor& x) const;  // [batch, length, width] -> [batch, heads, length, head]

  TransformerBlockOptions o_;
  nn::Linear<> query_, key_, value_, output_;
  nn::LayerNorm<> attention_norm_;
  nn::Linear<> up_, down_;
  nn::LayerNorm<> feed_forward_norm_;
  Tensor attention_scale_, feed_forward_scale_;
};

}  // namespace lc
