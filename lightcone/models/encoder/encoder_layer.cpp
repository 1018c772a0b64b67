#include "lightcone/models/encoder/encoder_layer.h"

#include <cmath>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

EncoderLayer::EncoderLayer(const EncoderConfig& c, bool first)
    : width_(c.width),
      heads_(c.heads),
      inner_(c.inner),
      activation_(c.activation),
      gating_(c.gate),
      norm_first_(c.norm_first),
      first_norm_(!(c.norm_first && first)),
      joined_(c.joined),
      disentangled_(c.disentangled),
      query_key_value_(c.width, 3 * c.width, {.bias = c.attention_bias}),
      query_(c.width, c.width, {.bias = c.attention_bias}),
      key_(query_),
      value_(query_),
      output_(query_),
      distance_query_(c.width, c.width),
      distance_key_(c.width, c.width),
      up_(c.width, c.gate == EncoderGate::Joined ? 2 * c.inner : c.inner, {.bias = c.network_bias}),
      gate_(c.width, c.inner, {.bias = c.network_bias}),
      down_(c.inner, c.width, {.bias = c.network_bias}),
      attention_norm_(c.width, {.eps = c.eps, .bias = c.norm_bias}),
      feed_forward_norm_(c.width, {.eps = c.eps, .bias = c.norm_bias}) {}

void EncoderLayer::visit(nn::Visitor& v) {
  if (joined_) v("query_key_value", query_key_value_);
  else v("query", query_)("key", key_)("value", value_);
  if (disentangled_ && !disentangled_->shared) {
    if (disentangled_->queries) v("distance_key", distance_key_);
    if (disentangled_->keys) v("distance_query", distance_query_);
  }
  v("output", output_);
  if (first_norm_) v("attention_norm", attention_norm_);
  v("up", up_);
  if (gating_ == EncoderGate::Separate) v("gate", gate_);
  v("down", down_)("feed_forward_norm", feed_forward_norm_);
}

Tensor EncoderLayer::heads(const Tensor& x) const {
  return x.reshape({x.extent(0), x.extent(1), heads_, width_ / heads_}).permute({0, 2, 1, 3});
}

// Scores are sums of up to three products, whose variances add up.
double EncoderLayer::scale() const {
  const int products = disentangled_ ? 1 + disentangled_->queries + disentangled_->keys : 1;
  return 1 / std::sqrt(static_cast<double>(width_ / heads_ * products));
}

// What distances add to the scores, [batch, heads, length, length].
Tensor EncoderLayer::by_distance(const Tensor& q, const Tensor& k, const EncoderAttention& a) const {
  const Tensor table = a.table.unsqueeze(0);
  const Shape scores{q.extent(0), q.extent(1), q.extent(2), k.extent(2)};
  const auto chosen = [&](const Tensor& x, const nn::Linear<>& projection, const Tensor& distances) {
    const Tensor all = matmul(x, heads(projection(table)).transpose(-1, -2));  // [batch, heads, length, 2 span]
    return gather(all, -1, broadcast_to(distances, scores));
  };
  Tensor sum;
  const bool shared = disentangled_->shared;
  if (disentangled_->queries) sum = chosen(q, shared ? key_ : distance_key_, a.distances);
  if (disentangled_->keys) {
    const Tensor more = chosen(k, shared ? query_ : distance_query_, a.distances_back).transpose(-1, -2);
    sum = sum.defined() ? sum + more : more;
  }
  return sum;
}

Tensor EncoderLayer::attend(const Tensor& x, const EncoderAttention& a) const {
  Tensor q, k, v;
  if (joined_) {
    const Tensor all = query_key_value_(x);
    const auto third = [&](int n) { return heads(narrow(all, 2, n * width_, width_)); };
    q = third(0), k = third(1), v = third(2);
  } else {
    q = heads(query_(x)), k = heads(key_(x)), v = heads(value_(x));
  }
  if (a.angles.cos.defined()) q = rotated(q, a.angles, false), k = rotated(k, a.angles, false);
  AttentionOptions o{.attn_mask = a.mask, .dropout_p = a.dropout, .scale = scale(), .random = a.random};
  if (a.table.defined()) o.attn_mask = where(a.mask, by_distance(q, k, a) * scale(), -INFINITY);
  const Tensor y = scaled_dot_product_attention(q, k, v, o);
  return output_(y.permute({0, 2, 1, 3}).reshape({x.extent(0), x.extent(1), width_}));
}

Tensor EncoderLayer::feed_forward(const Tensor& x) const {
  const Tensor up = up_(x);
  if (gating_ == EncoderGate::None) return down_(activate(activation_, up));
  if (gating_ == EncoderGate::Separate) return down_(activate(activation_, gate_(x)) * up);
  return down_(activate(activation_, narrow(up, 2, 0, inner_)) * narrow(up, 2, inner_, inner_));
}

Tensor EncoderLayer::operator()(const Tensor& x, const EncoderAttention& a, const ResidualDropout& dropout,
                                const nn::At& at) const {
  const OpScope scope("EncoderLayer", at);
  const auto drop = [&](const Tensor& y, double p) {
    return dropout.random && p > 0 ? dropout.random->dropout(y, p) : y;
  };
  if (norm_first_) {
    const Tensor h = x + drop(attend(first_norm_ ? attention_norm_(x) : x, a), dropout.attention);
    return h + drop(feed_forward(feed_forward_norm_(h)), dropout.feed_forward);
  }
  const Tensor h = attention_norm_(x + drop(attend(x, a), dropout.attention));
  return feed_forward_norm_(h + drop(feed_forward(h), dropout.feed_forward));
}

Tensor disentangled_distances(Graph& g, const DisentangledAttention& d, const Dim& length, bool back) {
  const Shape shape{length, length};
  const Tensor i = g.index(shape, Dim::index(0, length)), j = g.index(shape, Dim::index(1, length));
  Tensor distance = i - j;  // how far a query, or, back, a key lies behind
  if (d.buckets > 0) {
    const auto exact = static_cast<double>(d.buckets / 2);
    const double growth = (exact - 1) / std::log2(static_cast<double>(d.most - 1) / exact);
    const Tensor far = abs(to(distance, DType::F64));
    // what is a whole number counts as it is, however it is rounded
    constexpr double kSlack = 1e-9;
    const Tensor bucket = ceil(log2(clamp_min(far, exact) * (1 / exact)) * growth - kSlack) + exact;
    const Tensor signed_bucket = where(distance < 0, -bucket, bucket);
    distance = where(far <= exact, distance, to(signed_bucket, DType::I64));
  }
  return clamp(back ? d.span - distance : distance + d.span, 0, 2 * d.span - 1);
}

}  // namespace lc
