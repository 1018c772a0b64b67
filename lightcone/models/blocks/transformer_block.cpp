#include "lightcone/models/blocks/transformer_block.h"

#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/shape.h"

namespace lc {

TransformerBlock::TransformerBlock(const TransformerBlockOptions& o)
    : o_(o),
      query_(o.width, o.width, {.bias = o.query_key_value_bias}),
      key_(o.width, o.width, {.bias = o.query_key_value_bias}),
      value_(o.width, o.width, {.bias = o.query_key_value_bias}),
      output_(o.width, o.width),
      attention_norm_(o.width, {.eps = o.eps}),
      up_(o.width, o.gated ? 2 * o.inner : o.inner),
      down_(o.inner, o.width),
      feed_forward_norm_(o.width, {.eps = o.eps}) {
  if (o.heads < 1 || o.width % o.heads != 0)
    throw Error("TransformerBlock", str_cat(o.heads, " heads do not divide a width of ", o.width));
}

void TransformerBlock::visit(nn::Visitor& v) {
  v("query", query_)("key", key_)("value", value_)("output", output_)("attention_norm", attention_norm_);
  v("up", up_)("down", down_)("feed_forward_norm", feed_forward_norm_);
  if (!o_.layer_scale) return;
  v.parameter("attention_scale", attention_scale_, {o_.width}, nn::constant_init(1));
  v.parameter("feed_forward_scale", feed_forward_scale_, {o_.width}, nn::constant_init(1));
}

Tensor TransformerBlock::heads(const Tensor& x) const {
  return x.reshape({x.extent(0), x.extent(1), o_.heads, o_.width / o_.heads}).permute({0, 2, 1, 3});
}

Tensor TransformerBlock::attend(const Tensor& x, const AttentionOptions& attention) const {
  const Tensor y = scaled_dot_product_attention(heads(query_(x)), heads(key_(x)), heads(value_(x)), attention);
  const Tensor out = output_(y.permute({0, 2, 1, 3}).reshape({x.extent(0), x.extent(1), o_.width}));
  return o_.layer_scale ? out * attention_scale_ : out;
}

Tensor TransformerBlock::feed_forward(const Tensor& x) const {
  const Tensor up = up_(x);
  const auto half = [&](int k) { return narrow(up, 2, k * o_.inner, o_.inner); };
  const Tensor inner = o_.gated ? activate(o_.activation, half(0)) * half(1) : activate(o_.activation, up);
  const Tensor out = down_(inner);
  return o_.layer_scale ? out * feed_forward_scale_ : out;
}

Tensor TransformerBlock::operator()(const Tensor& x, const AttentionOptions& attention, const ResidualDropout& dropout,
                                    const nn::At& at) const {
  const OpScope scope("TransformerBlock", at);
  const auto drop = [&](const Tensor& y, double p) {
    return dropout.random && p > 0 ? dropout.random->dropout(y, p) : y;
  };
  if (o_.norm_first) {
    const Tensor h = x + drop(attend(attention_norm_(x), attention), dropout.attention);
    return h + drop(feed_forward(feed_forward_norm_(h)), dropout.feed_forward);
  }
  const Tensor h = attention_norm_(x + drop(attend(x, attention), dropout.attention));
  return feed_forward_norm_(h + drop(feed_forward(h), dropout.feed_forward));
}

}  // namespace lc
