#include "lightcone/nn/transformer.h"

namespace lc::nn {
namespace {

lc::Tensor dropped(const lc::Tensor& x, double p, Random* random) { return random ? random->dropout(x, p) : x; }

MultiheadAttention attention(std::int64_t d_model, int nhead, const TransformerLayerOptions& o, bool causal) {
  return {d_model, nhead, {.dropout = o.dropout, .bias = o.bias, .causal = causal}};
}
LayerNorm<> norm(std::int64_t d_model, const TransformerLayerOptions& o) {
  return LayerNorm<>(d_model, {.eps = o.layer_norm_eps, .bias = o.bias});
}

// x + f(x), normalised before f or after the sum.
template <class F>
lc::Tensor beside(const lc::Tensor& x, const LayerNorm<>& norm, bool norm_first, const F& f) {
  return norm_first ? x + f(norm(x)) : norm(x + f(x));
}

}  // namespace

FeedForward::FeedForward(std::int64_t d_model, const TransformerLayerOptions& o)
    : linear1(d_model, o.dim_feedforward, {.bias = o.bias}),
      linear2(o.dim_feedforward, d_model, {.bias = o.bias}),
      activation(o.activation),
      dropout(o.dropout) {}
lc::Tensor FeedForward::run(const lc::Tensor& x, Random* random) const {
  const lc::Tensor h = linear1(x);
  const lc::Tensor active = activation == Activation::ReLU ? relu(h) : gelu(h);
  return dropped(linear2(dropped(active, dropout, random)), dropout, random);
}

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t d_model, int nhead, const TransformerLayerOptions& o)
    : o_(o),
      self_attn_(attention(d_model, nhead, o, o.causal)),
      feed_forward_(d_model, o),
      norm1_(norm(d_model, o)),
      norm2_(norm(d_model, o)) {}
void TransformerEncoderLayer::visit(Visitor& v) {
  v("self_attn", self_attn_)("linear1", feed_forward_.linear1)("linear2", feed_forward_.linear2);
  v("norm1", norm1_)("norm2", norm2_);
}
lc::Tensor TransformerEncoderLayer::run(Operand src, const AttentionMasks& masks, Random* random) const {
  const OpScope scope("TransformerEncoderLayer", src.at);
  const lc::Tensor h = beside(src, norm1_, o_.norm_first, [&](const lc::Tensor& x) {
    return dropped(self_attn_.attend(x, x, x, masks, random), o_.dropout, random);
  });
  return beside(h, norm2_, o_.norm_first, [&](const lc::Tensor& x) { return feed_forward_.run(x, random); });
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t d_model, int nhead, const TransformerLayerOptions& o)
    : o_(o),
      self_attn_(attention(d_model, nhead, o, o.causal)),
      multihead_attn_(attention(d_model, nhead, o, false)),
      feed_forward_(d_model, o),
      norm1_(norm(d_model, o)),
      norm2_(norm(d_model, o)),
      norm3_(norm(d_model, o)) {}
void TransformerDecoderLayer::visit(Visitor& v) {
  v("self_attn", self_attn_)("multihead_attn", multihead_attn_)("linear1", feed_forward_.linear1);
  v("linear2", feed_forward_.linear2)("norm1", norm1_)("norm2", norm2_)("norm3", norm3_);
}
lc::Tensor TransformerDecoderLayer::run(Operand tgt, const lc::Tensor& memory, const DecoderMasks& masks,
                                        Random* random) const {
  const OpScope scope("TransformerDecoderLayer", tgt.at);
  lc::Tensor h = beside(tgt, norm1_, o_.norm_first, [&](const lc::Tensor& x) {
    return dropped(self_attn_.attend(x, x, x, masks.self, random), o_.dropout, random);
  });
  h = beside(h, norm2_, o_.norm_first, [&](const lc::Tensor& x) {
    return dropped(multihead_attn_.attend(x, memory, memory, masks.memory, random), o_.dropout, random);
  });
  return beside(h, norm3_, o_.norm_first, [&](const lc::Tensor& x) { return feed_forward_.run(x, random); });
}

void TransformerEncoder::visit(Visitor& v) {
  v("layers", layers_);
  if (norm_) v("norm", *norm_);
}
lc::Tensor TransformerEncoder::run(Operand src, const AttentionMasks& masks, Random* random) const {
  const OpScope scope("TransformerEncoder", src.at);
  lc::Tensor x = src;
  for (const TransformerEncoderLayer& layer : layers_) x = layer.run(x, masks, random);
  return norm_ ? (*norm_)(x) : x;
}

void TransformerDecoder::visit(Visitor& v) {
  v("layers", layers_);
  if (norm_) v("norm", *norm_);
}
lc::Tensor TransformerDecoder::run(Operand tgt, const lc::Tensor& memory, const DecoderMasks& masks,
                                   Random* random) const {
  const OpScope scope("TransformerDecoder", tgt.at);
  lc::Tensor x = tgt;
  for (const TransformerDecoderLayer& layer : layers_) x = layer.run(x, memory, masks, random);
  return norm_ ? (*norm_)(x) : x;
}

Transformer::Transformer(std::int64_t d_model, int nhead, const TransformerOptions& o)
    : encoder_(TransformerEncoderLayer(d_model, nhead, o.layer), o.num_encoder_layers, norm(d_model, o.layer)),
      decoder_(TransformerDecoderLayer(d_model, nhead, o.layer), o.num_decoder_layers, norm(d_model, o.layer)),
      dropout_(o.layer.dropout) {}
void Transformer::visit(Visitor& v) {
  const Visitor::ScopedInit xavier(
      v, [](const init::Extents& s, const init::Source& from) { return init::xavier_uniform(s, from); });
  v("encoder", encoder_)("decoder", decoder_);
}

}  // namespace lc::nn
