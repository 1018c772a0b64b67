#include "lightcone/models/segformer/mix_transformer.h"

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/patch_embedding.h"

namespace lc {
namespace {

Tensor tokens_of(const Tensor& map) {
  return map.reshape({map.extent(0), map.extent(1), map.extent(2) * map.extent(3)}).permute({0, 2, 1});
}
Tensor map_of(const Tensor& tokens, std::int64_t h, std::int64_t w) {
  return tokens.permute({0, 2, 1}).reshape({tokens.extent(0), tokens.extent(2), h, w});
}

}  // namespace

MixBlock::MixBlock(const MixStage& s)
    : s_(s),
      attention_norm_(s.width),
      network_norm_(s.width),
      query_(s.width, s.width),
      key_(s.width, s.width),
      value_(s.width, s.width),
      output_(s.width, s.width),
      up_(s.width, s.inner),
      down_(s.inner, s.width),
      reduction_norm_(s.width),
      depthwise_(s.inner, s.inner, 3, {.padding = {1}, .groups = static_cast<int>(s.inner)}) {
  if (s.reduction > 1) reduction_.emplace(s.width, s.width, s.reduction, ConvOptions{.stride = {s.reduction}});
}

void MixBlock::visit(nn::Visitor& v) {
  v("attention_norm", attention_norm_)("query", query_)("key", key_)("value", value_)("output", output_);
  if (reduction_) v("reduction", *reduction_)("reduction_norm", reduction_norm_);
  v("network_norm", network_norm_)("up", up_)("depthwise", depthwise_)("down", down_);
}

Tensor MixBlock::attend(const Tensor& x, std::int64_t h, std::int64_t w) const {
  const Tensor seen = reduction_ ? reduction_norm_(tokens_of((*reduction_)(map_of(x, h, w)))) : x;
  const auto split = [&](const Tensor& t) {
    return t.reshape({t.extent(0), t.extent(1), s_.heads, s_.width / s_.heads}).permute({0, 2, 1, 3});
  };
  const Tensor y =
      scaled_dot_product_attention(split(query_(x)), split(key_(seen)), split(value_(seen)), AttentionOptions{});
  return output_(y.permute({0, 2, 1, 3}).reshape({x.extent(0), x.extent(1), s_.width}));
}

Tensor MixBlock::network(const Tensor& x, std::int64_t h, std::int64_t w) const {
  return down_(activate(s_.activation, tokens_of(depthwise_(map_of(up_(x), h, w)))));
}

Tensor MixBlock::operator()(const Tensor& x, std::int64_t h, std::int64_t w) const {
  const Tensor y = x + attend(attention_norm_(x), h, w);
  return y + network(network_norm_(y), h, w);
}

MixTransformer::MixTransformer(const std::vector<MixStage>& stages) {
  for (const MixStage& s : stages)
    stages_.push_back({nn::Conv2d<>(s.in, s.width, s.patch, {.stride = {s.stride}, .padding = {s.patch / 2}}),
                       nn::LayerNorm<>(s.width), nn::LayerNorm<>(s.width),
                       std::vector<MixBlock>(static_cast<std::size_t>(s.layers), MixBlock(s))});
}

std::vector<Tensor> MixTransformer::operator()(const Tensor& pictures) const {
  const OpScope scope("MixTransformer", nn::At::current());
  std::vector<Tensor> maps;
  for (const Stage& s : stages_) {
    const Tensor map = s.patches(maps.empty() ? pictures : maps.back());
    const std::int64_t h = number_of(map, 2, "MixTransformer"), w = number_of(map, 3, "MixTransformer");
    Tensor x = s.patch_norm(tokens_of(map));
    for (const MixBlock& block : s.blocks) x = block(x, h, w);
    maps.push_back(map_of(s.norm(x), h, w));
  }
  return maps;
}

}  // namespace lc
