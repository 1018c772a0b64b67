#include "lightcone/models/language/language_attention.h"

#include <bit>
#include <cmath>

#include "lightcone/models/blocks/table.h"
#include "lightcone/nn/attention.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

double scale_of(const LanguageLayerKind& kind, std::int64_t head) {
  return kind.scale != 0 ? kind.scale : 1 / std::sqrt(static_cast<double>(head));
}

double rounded_to_bf16(double x) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

// The slopes of ALiBi (O. Press et al., 2021): a geometric sequence for a power of two heads; the other heads take
// every second number of the next finer one.
std::vector<double> slopes_of(const LanguageAttention& a) {
  const auto whole = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(a.heads)));
  std::vector<double> slopes;
  for (std::int64_t k = 0; k < a.heads; ++k) {
    const double power = k < whole ? 8.0 * static_cast<double>(k + 1) / static_cast<double>(whole)
                                   : 4.0 * static_cast<double>(2 * (k - whole) + 1) / static_cast<double>(whole);
    const double slope = std::exp2(-power);
    slopes.push_back(a.alibi_scale * (a.alibi_rounded ? rounded_to_bf16(slope) : slope));
  }
  return slopes;
}

// [heads, rows, positions]
Tensor alibi_of(const LanguageAttention& a, const Positions& at) {
  const Tensor far = at.distances();
  const Tensor slopes = prim::cast(table_of(far.graph(), slopes_of(a)), DType::F32);
  return slopes.reshape({a.heads, 1, 1}) * far.unsqueeze(0);
}

// Scores, their softmax and the sum one by one.
Tensor attend_in_steps(const LanguageAttention& a, double scale, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& sinks, const Tensor& mask) {
  const auto group = static_cast<int>(a.heads / a.kv_heads);
  const auto for_heads = [&](const Tensor& t) { return group > 1 ? repeat_interleave(t, group, -3) : t; };
  Tensor scores = matmul(q, for_heads(k).transpose(-1, -2)) * scale;
  if (a.cap > 0) scores = tanh(scores * (1 / a.cap)) * a.cap;
  if (mask.dtype() == DType::Bool) scores = masked_fill(scores, logical_not(mask), -INFINITY);
  else scores = scores + mask;
  if (!sinks.defined()) return matmul(softmax(scores, -1), for_heads(v));
  Shape column = scores.shape();
  column.back() = 1;
  const Tensor with = cat({scores, broadcast_to(sinks.reshape({a.heads, 1, 1}), column)}, -1);
  return matmul(softmax(with, -1).slice(-1, 0, scores.extent(-1)), for_heads(v));
}

}  // namespace

Tensor attend(const LanguageAttention& a, const LanguageLayerKind& kind, const Tensor& q, const Tensor& k,
              const Tensor& v, const Tensor& sinks, const Positions& at) {
  const double scale = scale_of(kind, a.head);
  Tensor mask = at.mask(kind);
  if (a.alibi) {
    const Tensor bias = alibi_of(a, at);
    mask = where(at.whole_mask(kind), bias, full_like(bias, -INFINITY, DType::F32));
  }
  if (a.cap == 0 && !sinks.defined())
    return scaled_dot_product_attention(q, k, v, {.attn_mask = mask, .is_causal = !mask.defined(), .scale = scale});
  return attend_in_steps(a, scale, q, k, v, sinks, mask.defined() ? mask : at.whole_mask(kind));
}

AttentionLayer::AttentionLayer(const LanguageConfig& c, const LanguageLayerKind& kind)
    : a_(c.attention),
      kind_(kind),
      query_(c.width, a_.heads * a_.head, {a_.query_bias, c.transposed}),
      key_(c.width, a_.kv_heads * a_.head, {a_.key_bias, c.transposed}),
      value_(c.width, a_.kv_heads * a_.head, {a_.value_bias, c.transposed}),
      query_key_value_(c.width, rows(), {a_.query_bias, c.transposed}),
      output_(a_.heads * a_.head, c.width, {a_.output_bias, c.transposed}),
      query_norm_(a_.norm == HeadNorm::Whole ? a_.heads * a_.head : a_.head, a_.norm_options),
      key_norm_(a_.norm == HeadNorm::Whole ? a_.kv_heads * a_.head : a_.head, a_.norm_options) {
  if (kind.rope) rope_ = c.ropes.at(*kind.rope);
}

std::int64_t AttentionLayer::rows() const { return (a_.heads + 2 * a_.kv_heads) * a_.head; }

void AttentionLayer::visit(nn::Visitor& v) {
  if (a_.layout == QueryKeyValue::Separate) v("query", query_)("key", key_)("value", value_);
  else v("query_key_value", query_key_value_);
  if (a_.norm != HeadNorm::None) v("query_norm", query_norm_)("key_norm", key_norm_);
  v("output", output_);
  if (a_.sinks) v.parameter("sinks", sinks_, {a_.heads}, nn::constant_init(0));
}

// [..., rows, count * head] -> [..., rows, count, head]
Tensor AttentionLayer::heads(const Tensor& x, std::int64_t count) const {
  Shape s = x.shape();
  s.back() = count;
  s.push_back(a_.head);
  return x.reshape(s);
}

// The heads as [..., rows, heads, head], of a matrix for all of them.
AttentionLayer::Heads AttentionLayer::split(const Tensor& x) const {
  const std::int64_t q = a_.heads * a_.head, k = a_.kv_heads * a_.head, group = a_.heads / a_.kv_heads;
  if (a_.layout == QueryKeyValue::Joined)
    return {heads(x.slice(-1, 0, q), a_.heads), heads(x.slice(-1, q, q + k), a_.kv_heads),
            heads(x.slice(-1, q + k, q + 2 * k), a_.kv_heads)};
  Shape s = x.shape();
  s.back() = a_.kv_heads;
  s.push_back(group + 2), s.push_back(a_.head);
  const Tensor all = x.reshape(s);
  Shape queries = x.shape();
  queries.back() = a_.heads;
  queries.push_back(a_.head);
  return {all.slice(-2, 0, group).reshape(queries), all.select(-2, group), all.select(-2, group + 1)};
}

AttentionLayer::Heads AttentionLayer::projected(const Tensor& x) const {
  const bool whole = a_.norm == HeadNorm::Whole;
  const auto limited = [&](const Tensor& t) { return a_.clip > 0 ? clamp(t, -a_.clip, a_.clip) : t; };
  Heads h;
  if (a_.layout == QueryKeyValue::Separate) {
    const auto normed = [&](const Norm& n, const Tensor& t) { return limited(whole ? n(t) : t); };
    h = {heads(normed(query_norm_, query_(x)), a_.heads), heads(normed(key_norm_, key_(x)), a_.kv_heads),
         heads(limited(value_(x)), a_.kv_heads)};
  } else {
    h = split(limited(query_key_value_(x)));
  }
  if (a_.norm == HeadNorm::Head) h.q = query_norm_(h.q), h.k = key_norm_(h.k);
  return {h.q.transpose(-3, -2), h.k.transpose(-3, -2), h.v.transpose(-3, -2)};
}

// [..., heads, rows, head] -> [..., rows, heads * head]
Tensor AttentionLayer::joined(const Tensor& y) const {
  Shape s = y.transpose(-3, -2).shape();
  s.pop_back();
  s.back() = a_.heads * a_.head;
  return y.transpose(-3, -2).reshape(s);
}

Tensor AttentionLayer::operator()(const Tensor& x, const Positions& at, const DecoderStates& states) const {
  Heads h = projected(x);
  if (rope_) {
    const RopeAngles angles = at.angles(*rope_);
    h.q = rotated(h.q, angles, rope_->interleaved), h.k = rotated(h.k, angles, rope_->interleaved);
  }
  if (states.graph) {
    const nn::KeyValueCache held(*states.graph, states.name + ".key", states.name + ".value",
                                 {a_.kv_heads, states.context, a_.head}, states.past, states.type);
    const auto [k, v] = held.append(h.k, h.v);
    h.k = k, h.v = v;
  }
  return output_(joined(attend(a_, kind_, h.q, h.k, h.v, sinks_, at)));
}

}  // namespace lc
