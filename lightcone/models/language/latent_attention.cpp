#include <algorithm>
#include <cmath>

#include "lightcone/models/language/language_attention.h"
#include "lightcone/nn/attention.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

constexpr double kLatentEps = 1e-6;  // norms of short vectors have it, whatever config.json says of the others

NormOptions latent_norm() { return {.kind = NormKind::Rms, .eps = kLatentEps}; }

// [..., rows, count * n] -> [..., count, rows, n]
Tensor in_heads(const Tensor& x, std::int64_t count, std::int64_t n) {
  Shape s = x.shape();
  s.back() = count;
  s.push_back(n);
  return x.reshape(s).transpose(-3, -2);
}

// t [..., 1, rows, n] -> [..., count, rows, n]
Tensor for_each_head(const Tensor& t, std::int64_t count) {
  Shape s = t.shape();
  s[s.size() - 3] = count;
  return broadcast_to(t, s);
}

}  // namespace

LatentAttentionLayer::LatentAttentionLayer(const LanguageConfig& c, const LanguageLayerKind& kind)
    : l_(c.attention.latent.value_or(LatentAttention{})),
      heads_(c.attention.heads),
      kind_(kind),
      query_(c.width, heads_ * (l_.plain + l_.rotated)),
      query_down_(c.width, l_.query_rank, {c.attention.query_bias}),
      query_up_(l_.query_rank, heads_ * (l_.plain + l_.rotated)),
      latent_down_(c.width, l_.rank + l_.rotated, {c.attention.key_bias}),
      latent_up_(l_.rank, heads_ * (l_.plain + l_.value)),
      output_(heads_ * l_.value, c.width, {c.attention.output_bias}),
      query_down_norm_(l_.query_rank, latent_norm()),
      latent_norm_(l_.rank, latent_norm()) {
  if (kind.rope) rope_ = c.ropes.at(*kind.rope);
  if (kind_.scale == 0) kind_.scale = 1 / std::sqrt(static_cast<double>(l_.plain + l_.rotated));
}

void LatentAttentionLayer::visit(nn::Visitor& v) {
  if (l_.query_rank == 0) v("query", query_);
  else v("query_down", query_down_)("query_down_norm", query_down_norm_)("query_up", query_up_);
  v("latent_down", latent_down_)("latent_norm", latent_norm_);
  const nn::Init init = nn::uniform_init(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(l_.rank, 1))));
  if (l_.apart) {
    v.parameter("key_up", key_up_, {heads_, l_.rank, l_.plain}, init);
    v.parameter("value_up", value_up_, {heads_, l_.value, l_.rank}, init);
  } else {
    v("latent_up", latent_up_);
  }
  v("output", output_);
}

// The matrices by which the heads make keys of the short vectors: [heads, plain, rank].
Tensor LatentAttentionLayer::key_matrices() const {
  if (l_.apart) return key_up_.transpose(-1, -2);
  return latent_up_.weight.reshape({heads_, l_.plain + l_.value, l_.rank}).slice(1, 0, l_.plain);
}

// And values: [heads, value, rank].
Tensor LatentAttentionLayer::value_matrices() const {
  if (l_.apart) return value_up_;
  return latent_up_.weight.reshape({heads_, l_.plain + l_.value, l_.rank}).slice(1, l_.plain, l_.plain + l_.value);
}

AttentionOptions LatentAttentionLayer::options(const Positions& at) const {
  const Tensor mask = at.mask(kind_);
  return {.attn_mask = mask, .is_causal = !mask.defined(), .scale = kind_.scale};
}

// Each head makes its keys and values of the short vectors.
Tensor LatentAttentionLayer::expanded(const Tensor& plain, const Tensor& turned, const Tensor& latent,
                                      const Tensor& key, const Positions& at) const {
  Tensor keys, v;
  if (l_.apart) {
    const Tensor shared = latent.unsqueeze(-3);
    keys = matmul(shared, key_matrices().transpose(-1, -2)), v = matmul(shared, value_matrices().transpose(-1, -2));
  } else {
    const Tensor all = in_heads(latent_up_(latent), heads_, l_.plain + l_.value);
    keys = all.slice(-1, 0, l_.plain), v = all.slice(-1, l_.plain, l_.plain + l_.value);
  }
  const Tensor k = cat({keys, for_each_head(key, heads_)}, -1);
  return scaled_dot_product_attention(cat({plain, turned}, -1), k, v, options(at));
}

// The heads read the short vectors themselves, by queries that were multiplied with the matrix of keys, and the results
// are multiplied with the matrix of values.
Tensor LatentAttentionLayer::absorbed(const Tensor& plain, const Tensor& turned, const Tensor& latent,
                                      const Tensor& key, const Positions& at, const DecoderStates& states) const {
  const nn::KeyValueCache held(*states.graph, states.name + ".key", states.name + ".latent",
                               {1, states.context, l_.rotated}, states.past, states.type,
                               Shape{1, states.context, l_.rank});
  const auto [keys, latents] = held.append(key, latent.unsqueeze(-3));
  const Tensor q = cat({matmul(plain, key_matrices()), turned}, -1);
  const Tensor y = scaled_dot_product_attention(q, cat({latents, keys}, -1), latents, options(at));
  return matmul(y, value_matrices().transpose(-1, -2));
}

Tensor LatentAttentionLayer::operator()(const Tensor& x, const Positions& at, const DecoderStates& states) const {
  const Tensor raw = l_.query_rank == 0 ? query_(x) : query_up_(query_down_norm_(query_down_(x)));
  const Tensor q = in_heads(raw, heads_, l_.plain + l_.rotated), down = latent_down_(x);
  const Tensor plain = q.slice(-1, 0, l_.plain), latent = latent_norm_(down.slice(-1, 0, l_.rank));
  Tensor turned = q.slice(-1, l_.plain, l_.plain + l_.rotated);
  Tensor key = down.slice(-1, l_.rank, l_.rank + l_.rotated).unsqueeze(-3);
  if (rope_) {
    const RopeAngles a = at.angles(*rope_);
    turned = rotated(turned, a, rope_->interleaved), key = rotated(key, a, rope_->interleaved);
  }
  const Tensor y =
      (states.graph ? absorbed(plain, turned, latent, key, at, states) : expanded(plain, turned, latent, key, at))
          .transpose(-3, -2);
  Shape s = y.shape();
  s.pop_back();
  s.back() = heads_ * l_.value;
  return output_(y.reshape(s));
}

}  // namespace lc
