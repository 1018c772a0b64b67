#include "lightcone/models/diffusion/attention.h"

#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc::diffusion {
namespace {

std::int64_t inner_of(const AttentionSizes& o) {
  return o.heads * (o.head_width > 0 ? o.head_width : o.width / o.heads);
}
// The width in which a spatial transformer works: heads that are all of one width.
std::int64_t inner_of(const SpatialTransformerOptions& o) { return o.channels / o.heads * o.heads; }

}  // namespace

Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return x.reshape({x.extent(0), x.extent(1), heads, x.extent(2) / Dim(heads)}).permute({0, 2, 1, 3});
}
Tensor join_heads(const Tensor& x) {
  return x.permute({0, 2, 1, 3}).reshape({x.extent(0), x.extent(2), x.extent(1) * x.extent(3)});
}

Attention::Attention(const AttentionSizes& o)
    : heads_(o.heads),
      to_q_(o.width, inner_of(o), {.bias = o.bias}),
      to_k_(o.context > 0 ? o.context : o.width, inner_of(o), {.bias = o.bias}),
      to_v_(o.context > 0 ? o.context : o.width, inner_of(o), {.bias = o.bias}),
      to_out_(inner_of(o), o.width) {}
void Attention::visit(nn::Visitor& v) { v("to_q", to_q_)("to_k", to_k_)("to_v", to_v_)("to_out.0", to_out_); }
Tensor Attention::operator()(const Tensor& x, const Tensor& context) const {
  const Tensor& seen = context.defined() ? context : x;
  return to_out_(join_heads(scaled_dot_product_attention(
      split_heads(to_q_(x), heads_), split_heads(to_k_(seen), heads_), split_heads(to_v_(seen), heads_))));
}

Tensor GatedFeedForward::operator()(const Tensor& x) const {
  const Tensor h = in_(x);
  return out_(narrow(h, -1, 0, inner_) * gelu(narrow(h, -1, inner_, inner_)));
}

SpatialTransformer::Layer::Layer(const SpatialTransformerOptions& o)
    : only_cross_attention_(o.only_cross_attention),
      norm1_(inner_of(o)),
      norm2_(inner_of(o)),
      norm3_(inner_of(o)),
      attn1_({.width = inner_of(o), .context = o.only_cross_attention ? o.context : 0, .heads = o.heads}),
      attn2_({.width = inner_of(o), .context = o.context, .heads = o.heads}),
      ff_(inner_of(o)) {}
void SpatialTransformer::Layer::visit(nn::Visitor& v) {
  v("norm1", norm1_)("attn1", attn1_)("norm2", norm2_)("attn2", attn2_)("norm3", norm3_)("ff", ff_);
}
Tensor SpatialTransformer::Layer::operator()(const Tensor& x, const Tensor& context) const {
  Tensor h = x + attn1_(norm1_(x), only_cross_attention_ ? context : Tensor());
  h = h + attn2_(norm2_(h), context);
  return h + ff_(norm3_(h));
}

SpatialTransformer::SpatialTransformer(const SpatialTransformerOptions& o) : norm_(o.groups, o.channels, 1e-6) {
  if (o.heads > o.channels)
    throw Error("SpatialTransformer", str_cat(o.heads, " heads for ", o.channels, " channels (attention_head_dim)"));
  const std::int64_t inner = inner_of(o);
  if (o.linear_projection) linear_in_.emplace(o.channels, inner), linear_out_.emplace(inner, o.channels);
  else conv_in_.emplace(o.channels, inner, 1), conv_out_.emplace(inner, o.channels, 1);
  for (std::int64_t k = 0; k < o.layers; ++k) layers_.emplace_back(o);
}
void SpatialTransformer::visit(nn::Visitor& v) {
  v("norm", norm_);
  if (linear_in_) v("proj_in", *linear_in_);
  else v("proj_in", *conv_in_);
  v("transformer_blocks", layers_);
  if (linear_out_) v("proj_out", *linear_out_);
  else v("proj_out", *conv_out_);
}
Tensor SpatialTransformer::operator()(const Tensor& x, const Tensor& context) const {
  // A convolution of one pixel is a product of tokens, which gives them in the order in which the layers read them.
  const auto projected = [](const std::optional<nn::Linear<>>& of_tokens, const std::optional<nn::Conv2d<>>& of_pixels,
                            const Tensor& tokens) {
    if (of_tokens) return (*of_tokens)(tokens);
    const Tensor& w = of_pixels->weight;
    return linear(tokens, w.reshape({w.extent(0), w.extent(1)}), of_pixels->bias);
  };
  Tensor h = projected(linear_in_, conv_in_, pixels_as_tokens(norm_(x)));
  for (const Layer& layer : layers_) h = layer(h, context);
  return x + tokens_as_pixels(projected(linear_out_, conv_out_, h), x);
}

}  // namespace lc::diffusion
