#include "lightcone/models/language/language_net.h"

#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

namespace {

NormOptions final_norm(const LanguageConfig& c) {
  NormOptions o = c.norm;
  if (c.final_eps > 0) o.eps = c.final_eps;
  return o;
}

}  // namespace

LanguageNet::LanguageNet(LanguageConfig c)
    : c_(std::move(c)),
      tokens_(c_.vocab, inner_width()),
      positions_(c_.positions, c_.width),
      embedding_projection_(inner_width(), c_.width),
      output_projection_(c_.width, inner_width()),
      embedding_norm_(c_.width, c_.norm),
      norm_(c_.width, final_norm(c_)),
      head_(inner_width(), outputs(), {c_.head_bias}) {
  for (const LanguageLayerKind& kind : c_.layers) layers_.emplace_back(c_, kind);
}

std::int64_t LanguageNet::outputs() const {
  if (c_.top == LanguageHead::Answer) return 2;
  return c_.top == LanguageHead::Words ? c_.vocab : std::ssize(c_.labels);
}

void LanguageNet::visit(nn::Visitor& v) {
  v("tokens", tokens_);
  if (c_.positions > 0) v("positions", positions_);
  if (c_.embedding_width > 0) v("embedding_projection", embedding_projection_);
  if (c_.embedding_norm) v("embedding_norm", embedding_norm_);
  v("layers", layers_);
  if (c_.final_norm) v("norm", norm_);
  if (c_.embedding_width > 0) v("output_projection", output_projection_);
  if (c_.top == LanguageHead::None) return;
  if (c_.top != LanguageHead::Words || !c_.tied) v("head", head_);
  else if (c_.head_bias) v.parameter("head.bias", head_bias_, {c_.vocab}, nn::constant_init(0));
}

Tensor LanguageNet::embed(const Tensor& ids, const Positions& at, const Replace& replaced) const {
  Tensor x = tokens_(ids);
  if (replaced) x = replaced(x);
  if (c_.embedding_width > 0) x = embedding_projection_(x);
  if (c_.embedding_scale != 1) x = x * c_.embedding_scale;
  if (c_.positions > 0)
    x = x + positions_((c_.positions_by_mask ? at.shown_numbers() : at.numbers()) + c_.position_offset);
  return c_.embedding_norm ? embedding_norm_(x) : x;
}

Tensor LanguageNet::hidden(const Tensor& ids, const Positions& at, const DecoderStates& states,
                           const Replace& replaced) const {
  Tensor x = embed(ids, at, replaced);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    DecoderStates own = states;
    own.name = str_cat("cache.", i);
    x = layers_[i](x, at, own);
  }
  return x;
}

Tensor LanguageNet::finished(const Tensor& x) const {
  const Tensor y = c_.final_norm ? norm_(x) : x;
  return c_.embedding_width > 0 ? output_projection_(y) : y;
}

Tensor LanguageNet::words(const Tensor& hidden) const {
  Tensor y;
  if (!c_.tied) y = head_(hidden);
  else y = c_.head_bias ? linear(hidden, tokens_.weight, head_bias_) : linear(hidden, tokens_.weight);
  if (c_.logits_scale != 1) y = y * c_.logits_scale;
  return c_.logits_cap > 0 ? tanh(y * (1 / c_.logits_cap)) * c_.logits_cap : y;
}

// The last row of each text that is not padding, by the id of padding or, if the model has none, by the mask.
Tensor LanguageNet::last_token(const Tensor& hidden, const Tensor& ids, const Tensor& mask) const {
  const Tensor real = c_.padding ? ne(ids, *c_.padding) : ne(mask, 0);
  const Tensor last = amax(to(real, DType::I64) * arange(ids.graph(), ids.extent(1)), {1});  // [batch]
  const Dim batch = ids.extent(0);
  const Tensor index = broadcast_to(last.reshape({batch, 1, 1}), {batch, 1, inner_width()});
  return gather(hidden, 1, index).squeeze(1);
}

std::map<std::string, Tensor> LanguageNet::operator()(const Tensor& ids, const Tensor& mask,
                                                      const Replace& replaced) const {
  const Positions at(ids.graph(), ids.extent(1), 0, ne(mask, 0));
  const Tensor x = finished(hidden(ids, at, {}, replaced));
  std::map<std::string, Tensor> out{{"hidden", x}};
  if (c_.top == LanguageHead::Words) out["logits"] = words(x);
  else if (c_.top == LanguageHead::Sequence) out["logits"] = head_(last_token(x, ids, mask));
  else if (c_.top != LanguageHead::None) out["logits"] = head_(x);
  return out;
}

Tensor LanguageNet::decode(const Tensor& ids, const DecoderStates& states, bool last_alone) const {
  const Positions at(ids.graph(), ids.extent(0), states.past);
  Tensor x = hidden(ids, at, states, {});
  if (last_alone) x = x.slice(0, ids.extent(0) - 1, ids.extent(0)).squeeze(0);
  return words(finished(x));
}

}  // namespace lc
