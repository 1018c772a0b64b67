#include "lightcone/models/sam/sam_decoder.h"

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/patch_embedding.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

SamAttention::SamAttention(const SamDecoderConfig& c, std::int64_t downsampling)
    : heads_(c.heads),
      inner_(c.width / downsampling),
      query_(c.width, inner_),
      key_(c.width, inner_),
      value_(c.width, inner_),
      out_(inner_, c.width) {}

Tensor SamAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value) const {
  const auto heads = [&](const Tensor& x) {
    return x.reshape({x.extent(0), x.extent(1), heads_, inner_ / heads_}).permute({0, 2, 1, 3});
  };
  const Tensor y =
      scaled_dot_product_attention(heads(query_(query)), heads(key_(key)), heads(value_(value)), AttentionOptions{});
  return out_(y.permute({0, 2, 1, 3}).reshape({query.extent(0), query.extent(1), inner_}));
}

SamTwoWayLayer::SamTwoWayLayer(const SamDecoderConfig& c, bool first)
    : first_(first),
      self_(c, 1),
      to_places_(c, c.downsampling),
      to_tokens_(c, c.downsampling),
      mlp_(c.width, c.inner, c.activation),
      norms_(4, nn::LayerNorm<>(c.width, {.eps = c.eps})) {}

void SamTwoWayLayer::visit(nn::Visitor& v) {
  v("self_attn", self_)("layer_norm1", norms_[0])("cross_attn_token_to_image", to_places_)("layer_norm2", norms_[1]);
  v("mlp", mlp_)("layer_norm3", norms_[2])("layer_norm4", norms_[3])("cross_attn_image_to_token", to_tokens_);
}

SamTwoWayLayer::Sides SamTwoWayLayer::operator()(const Sides& x, const Sides& at) const {
  Tensor tokens = x.tokens;
  if (first_) {
    tokens = self_(tokens, tokens, tokens);  // the first layer replaces what the tokens began as
  } else {
    const Tensor placed = tokens + at.tokens;
    tokens = tokens + self_(placed, placed, tokens);
  }
  tokens = norms_[0](tokens);
  const Tensor places = x.places + at.places;
  tokens = norms_[1](tokens + to_places_(tokens + at.tokens, places, x.places));
  tokens = norms_[2](tokens + mlp_(tokens));
  return {tokens, norms_[3](x.places + to_tokens_(places, tokens + at.tokens, tokens))};
}

SamFeedForward::SamFeedForward(std::int64_t in, std::int64_t inner, std::int64_t out, std::int64_t depth)
    : in_(in, inner), out_(inner, out), layers_(static_cast<std::size_t>(depth - 2), nn::Linear<>(inner, inner)) {}
Tensor SamFeedForward::operator()(const Tensor& x) const {
  Tensor y = relu(in_(x));
  for (const nn::Linear<>& layer : layers_) y = relu(layer(y));
  return out_(y);
}

SamDecoder::SamDecoder(const SamDecoderConfig& c)
    : c_(c),
      score_token_(1, c.width),
      mask_tokens_(1 + c.masks, c.width),
      last_(c, c.downsampling),
      last_norm_(c.width),
      upscale_norm_(c.width / 4, {.eps = 1e-6}),
      upscale1_(c.width, c.width / 4, 2, {.stride = {2}}),
      upscale2_(c.width / 4, c.width / 8, 2, {.stride = {2}}),
      of_masks_(static_cast<std::size_t>(1 + c.masks), SamFeedForward(c.width, c.width, c.width / 8, 3)),
      of_scores_(c.width, c.score_width, 1 + c.masks, c.score_depth) {
  for (std::int64_t k = 0; k < c.layers; ++k) layers_.emplace_back(c, k == 0);
}

void SamDecoder::visit(nn::Visitor& v) {
  v("iou_token", score_token_)("mask_tokens", mask_tokens_)("transformer.layers", layers_);
  v("transformer.final_attn_token_to_image", last_)("transformer.layer_norm_final_attn", last_norm_);
  v("upscale_conv1", upscale1_)("upscale_layer_norm", upscale_norm_)("upscale_conv2", upscale2_);
  v("output_hypernetworks_mlps", of_masks_)("iou_prediction_head", of_scores_);
}

SamDecoder::Result SamDecoder::operator()(const Tensor& map, const Tensor& positions, const Tensor& prompts) const {
  const Dim batch = map.extent(0);
  const std::int64_t n = number_of(map, 2, "SamDecoder"), count = 1 + c_.masks;
  const Tensor own = cat({Tensor(score_token_.weight), Tensor(mask_tokens_.weight)}, 0);
  Tensor tokens = own.unsqueeze(0).expand({batch, 1 + count, c_.width});
  if (prompts.defined()) tokens = cat({tokens, prompts}, 1);
  const SamTwoWayLayer::Sides at{tokens, positions.unsqueeze(0)};
  SamTwoWayLayer::Sides x{tokens, map.reshape({batch, c_.width, n * n}).permute({0, 2, 1})};
  for (const SamTwoWayLayer& layer : layers_) x = layer(x, at);
  x.tokens = last_norm_(x.tokens + last_(x.tokens + at.tokens, x.places + at.places, x.places));
  const Tensor places = x.places.permute({0, 2, 1}).reshape({batch, c_.width, n, n});
  const Tensor large = gelu(upscale2_(gelu(sam_norm(upscale_norm_, upscale1_(places)))));
  std::vector<Tensor> weights;
  for (std::int64_t k = 0; k < count; ++k)
    weights.push_back(of_masks_[static_cast<std::size_t>(k)](narrow(x.tokens, 1, 1 + k, 1)));
  const Tensor masks = matmul(cat(weights, 1), large.reshape({batch, c_.width / 8, 16 * n * n}));
  return {masks.reshape({batch, count, 4 * n, 4 * n}), of_scores_(select(x.tokens, 1, 0))};
}

}  // namespace lc
