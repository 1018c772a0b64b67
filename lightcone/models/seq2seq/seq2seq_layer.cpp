#include "lightcone/models/seq2seq/seq2seq_layer.h"

#include <cmath>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/ops.h"

namespace lc {

Seq2SeqNorm::Seq2SeqNorm(const Seq2SeqConfig& c)
    : by_square_(c.rms_norm), layer_(c.width, {.eps = c.eps}), square_(c.width, {.eps = c.eps}) {}

void Seq2SeqNorm::visit(nn::Visitor& v) {
  if (by_square_) square_.visit(v);
  else layer_.visit(v);
}

Seq2SeqAttention::Seq2SeqAttention(const Seq2SeqConfig& c, std::int64_t heads, bool has_queries, bool has_keys)
    : heads_(heads),
      head_(c.head),
      scale_(c.attention_scale),
      has_queries_(has_queries),
      has_keys_(has_keys),
      query_(c.width, heads * c.head, {.bias = c.biases}),
      key_(c.width, heads * c.head, {.bias = c.key_bias}),
      value_(c.width, heads * c.head, {.bias = c.biases}),
      output_(heads * c.head, c.width, {.bias = c.biases}) {}

void Seq2SeqAttention::visit(nn::Visitor& v) {
  if (has_queries_) v("query", query_)("output", output_);
  if (has_keys_) v("key", key_)("value", value_);
}

Tensor Seq2SeqAttention::heads(const Tensor& x) const {
  return x.reshape({x.extent(0), x.extent(1), heads_, head_}).permute({0, 2, 1, 3});
}

double Seq2SeqAttention::scale() const { return scale_.value_or(1 / std::sqrt(static_cast<double>(head_))); }

Tensor Seq2SeqAttention::operator()(const Tensor& x, const KeysValues& to, const Tensor& mask) const {
  const Tensor y =
      scaled_dot_product_attention(heads(query_(x)), to.keys, to.values, {.attn_mask = mask, .scale = scale()});
  return output_(y.permute({0, 2, 1, 3}).reshape({x.extent(0), x.extent(1), heads_ * head_}));
}

Tensor Seq2SeqAttention::weights(const Tensor& x, const Tensor& keys) const {
  return softmax(matmul(heads(query_(x)), keys.transpose(2, 3)) * scale(), -1);
}

Seq2SeqLayer::Seq2SeqLayer(const Seq2SeqConfig& c, const Seq2SeqStack& stack, Seq2SeqPart part, bool cross,
                           bool distance)
    : norm_first_(c.norm_first),
      has_cross_(cross),
      has_distance_(distance),
      gated_(c.gated),
      only_cross_keys_(cross && part == Seq2SeqPart::Encoder),
      activation_(c.activation),
      self_(c, stack.heads, true, true),
      cross_(c, stack.heads, part != Seq2SeqPart::Encoder, part != Seq2SeqPart::Decoder),
      self_norm_(c),
      cross_norm_(c),
      network_norm_(c),
      distance_(c.buckets, stack.heads),
      gate_(c.width, stack.inner, {.bias = c.biases}),
      up_(c.width, stack.inner, {.bias = c.biases}),
      down_(stack.inner, c.width, {.bias = c.biases}) {}

void Seq2SeqLayer::visit(nn::Visitor& v) {
  if (has_cross_) v("cross", cross_);
  if (only_cross_keys_) return;
  if (has_cross_) v("cross_norm", cross_norm_);
  v("self", self_)("self_norm", self_norm_)("network_norm", network_norm_)("up", up_)("down", down_);
  if (has_distance_) v("distance", distance_);
  if (gated_) v("gate", gate_);
}

Tensor Seq2SeqLayer::network(const Tensor& x) const {
  if (gated_) return down_(activate(activation_, gate_(x)) * up_(x));
  return down_(activate(activation_, up_(x)));
}

Tensor Seq2SeqLayer::operator()(const Tensor& x, const Sight& sight) const {
  Tensor y = with_sum(x, self_norm_, [&](const Tensor& h) {
    const KeysValues now = self_.keys_values(h);
    return self_(h, sight.remember ? sight.remember(now) : now, sight.mask);
  });
  if (has_cross_)
    y = with_sum(y, cross_norm_, [&](const Tensor& h) {
      if (sight.cross_weights) *sight.cross_weights = cross_.weights(h, sight.cross.keys);
      return cross_(h, sight.cross, sight.cross_mask);
    });
  return with_sum(y, network_norm_, [&](const Tensor& h) { return network(h); });
}

}  // namespace lc
