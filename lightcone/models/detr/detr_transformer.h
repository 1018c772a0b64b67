// The transformer of DETR: positions are added to queries and keys in every layer, not to the values.
#pragma once

#include <string>
#include <vector>

#include "lightcone/nn/linear.h"
#include "lightcone/nn/norm.h"
#include "lightcone/ops/ops.h"

namespace lc {

// Sizes of the transformer.
struct DetrTransformerOptions {
  std::int64_t width = 256, queries = 100;
  std::int64_t encoder_layers = 6, encoder_heads = 8, encoder_inner = 2048;
  std::int64_t decoder_layers = 6, decoder_heads = 8, decoder_inner = 2048;
  std::string activation = "relu";
};

// Attention with projections of its own: queries [batch, n, width], keys and values [batch, m, width].
class DetrAttention {
 public:
  DetrAttention(std::int64_t width, std::int64_t heads);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& queries, const Tensor& keys, const Tensor& values) const;

 private:
  std::int64_t width_, heads_;
  nn::Linear<> query_, key_, value_, output_;
};

// A layer of the encoder, or with attention to what the encoder gives one of the decoder. Norms follow the sums.
class DetrLayer {
 public:
  DetrLayer(std::int64_t width, std::int64_t heads, std::int64_t inner, const std::string& activation, bool decodes);
  void visit(nn::Visitor& v);
  // x with its positions, and what it attends to besides itself with its positions.
  Tensor operator()(Tensor x, const Tensor& positions, const Tensor& memory = {},
                    const Tensor& memory_positions = {}) const;

 private:
  bool decodes_;
  std::string activation_;
  DetrAttention attention_, cross_;
  nn::LayerNorm<> attention_norm_, cross_norm_, norm_;
  nn::Linear<> up_, down_;
};

// Features [batch, width, h, w] -> hidden states of the queries [batch, queries, width]. The positions of the features
// are sines and cosines of their rows and columns.
class DetrTransformer {
 public:
  explicit DetrTransformer(const DetrTransformerOptions& o);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& features) const;

 private:
  DetrTransformerOptions o_;
  std::vector<DetrLayer> encoder_, decoder_;
  nn::LayerNorm<> norm_;
  Tensor queries_;
};

}  // namespace lc
