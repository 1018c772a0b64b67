#include "lightcone/models/detr/detr_transformer.h"

#include <cmath>
#include <numbers>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/patch_embedding.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

// Sines and cosines in turn of n places along one axis, from just above 0 to a whole turn: [n, width].
Tensor waves(Graph& g, std::int64_t n, std::int64_t width) {
  constexpr double kTemperature = 10000, kAboveZero = 1e-6;
  const Tensor place =
      (to(arange(g, n), DType::F32) + 1.0) * (2 * std::numbers::pi / (static_cast<double>(n) + kAboveZero));
  const Tensor pair = to(arange(g, width / 2), DType::F32);
  const Tensor rate = exp(pair * (-2 * std::log(kTemperature) / static_cast<double>(width)));
  const Tensor angle = place.reshape({n, 1}) * rate;  // [n, width / 2]
  return stack({sin(angle), cos(angle)}, 2).reshape({n, width});
}

// The positions of a grid: half of the channels tell the row, the others the column, [1, h w, width].
Tensor grid_positions(Graph& g, std::int64_t h, std::int64_t w, std::int64_t width) {
  const std::int64_t half = width / 2;
  const Tensor rows = waves(g, h, half).reshape({h, 1, half}).expand({h, w, half});
  const Tensor columns = waves(g, w, half).reshape({1, w, half}).expand({h, w, half});
  return cat({rows, columns}, 2).reshape({1, h * w, width});
}

}  // namespace

DetrAttention::DetrAttention(std::int64_t width, std::int64_t heads)
    : width_(width),
      heads_(heads),
      query_(width, width),
      key_(width, width),
      value_(width, width),
      output_(width, width) {}
void DetrAttention::visit(nn::Visitor& v) { v("query", query_)("key", key_)("value", value_)("output", output_); }
Tensor DetrAttention::operator()(const Tensor& queries, const Tensor& keys, const Tensor& values) const {
  const auto split = [&](const Tensor& x) {
    return x.reshape({x.extent(0), x.extent(1), heads_, width_ / heads_}).permute({0, 2, 1, 3});
  };
  const Tensor y = scaled_dot_product_attention(split(query_(queries)), split(key_(keys)), split(value_(values)),
                                                AttentionOptions{});
  return output_(y.permute({0, 2, 1, 3}).reshape({queries.extent(0), queries.extent(1), width_}));
}

DetrLayer::DetrLayer(std::int64_t width, std::int64_t heads, std::int64_t inner, const std::string& activation,
                     bool decodes)
    : decodes_(decodes),
      activation_(activation),
      attention_(width, heads),
      cross_(width, heads),
      attention_norm_(width),
      cross_norm_(width),
      norm_(width),
      up_(width, inner),
      down_(inner, width) {}
void DetrLayer::visit(nn::Visitor& v) {
  v("attention", attention_)("attention_norm", attention_norm_);
  if (decodes_) v("cross", cross_)("cross_norm", cross_norm_);
  v("up", up_)("down", down_)("norm", norm_);
}
Tensor DetrLayer::operator()(Tensor x, const Tensor& positions, const Tensor& memory,
                             const Tensor& memory_positions) const {
  const Tensor placed = x + positions;
  x = attention_norm_(x + attention_(placed, placed, x));
  if (decodes_) x = cross_norm_(x + cross_(x + positions, memory + memory_positions, memory));
  return norm_(x + down_(activate(activation_, up_(x))));
}

DetrTransformer::DetrTransformer(const DetrTransformerOptions& o)
    : o_(o),
      encoder_(static_cast<std::size_t>(o.encoder_layers),
               DetrLayer(o.width, o.encoder_heads, o.encoder_inner, o.activation, false)),
      decoder_(static_cast<std::size_t>(o.decoder_layers),
               DetrLayer(o.width, o.decoder_heads, o.decoder_inner, o.activation, true)),
      norm_(o.width) {}
void DetrTransformer::visit(nn::Visitor& v) {
  v.parameter("queries", queries_, {o_.queries, o_.width}, nn::constant_init(0));
  v("encoder", encoder_)("decoder", decoder_)("norm", norm_);
}
Tensor DetrTransformer::operator()(const Tensor& features) const {
  const OpScope scope("DetrTransformer", nn::At::current());
  const std::int64_t h = number_of(features, 2, "DETR"), w = number_of(features, 3, "DETR");
  const Dim batch = features.extent(0);
  const Tensor positions = grid_positions(features.graph(), h, w, o_.width);
  Tensor memory = features.reshape({batch, o_.width, h * w}).permute({0, 2, 1});
  for (const DetrLayer& layer : encoder_) memory = layer(memory, positions);
  const Tensor queries = queries_.unsqueeze(0).expand({batch, o_.queries, o_.width});
  Tensor x = full_like(queries, 0);
  for (const DetrLayer& layer : decoder_) x = layer(x, queries, memory, positions);
  return norm_(x);
}

}  // namespace lc
