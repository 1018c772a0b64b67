#include "lightcone/models/language/language_layer.h"

#include "lightcone/ops/ops.h"

namespace lc {

LanguageLayer::LanguageLayer(const LanguageConfig& c, const LanguageLayerKind& kind)
    : place_(c.place),
      parallel_(c.parallel),
      shared_norm_(c.shared_norm),
      latent_(c.attention.latent.has_value()),
      routed_(kind.experts),
      mixes_(c.state_space.has_value()),
      dual_(mixes_ && c.state_space->heads > 0),
      averages_(c.time_mixing.has_value()),
      residual_scale_(c.residual_scale * kind.added),
      after_(kind.after),
      attention_(c, kind),
      latent_attention_(c, kind),
      network_(c.width, c.network, c.transposed),
      experts_(c.width, kind.experts ? c.experts : LanguageExperts{}),
      mixer_(c.width, c.state_space.value_or(StateSpace{})),
      dual_mixer_(c.width, c.state_space.value_or(StateSpace{}), c.norm.eps),
      time_mixing_(c.width, c.time_mixing.value_or(TimeMixing{})),
      channel_mixing_(c.width, c.time_mixing.value_or(TimeMixing{})),
      attention_norm_(c.width, c.norm),
      network_norm_(c.width, c.norm),
      attention_output_norm_(c.width, c.norm),
      network_output_norm_(c.width, c.norm) {}

void LanguageLayer::visit(nn::Visitor& v) {
  if (mixes_) {
    if (dual_) v("mixer", dual_mixer_);
    else v("mixer", mixer_);
    v("mixer_norm", attention_norm_);
    return;
  }
  if (averages_) v("attention", time_mixing_);
  else if (latent_) v("attention", latent_attention_);
  else v("attention", attention_);
  if (averages_) v("network", channel_mixing_);
  else if (routed_) v("experts", experts_);
  else v("network", network_);
  if (before() || place_ == NormPlace::Sum) v("attention_norm", attention_norm_);
  if ((before() && !shared_norm_) || place_ == NormPlace::Sum) v("network_norm", network_norm_);
  if (output()) v("attention_output_norm", attention_output_norm_)("network_output_norm", network_output_norm_);
}

Tensor LanguageLayer::attend(const Tensor& x, const Positions& at, const DecoderStates& states) const {
  if (averages_) return time_mixing_(x, at.shown(), states);
  const Tensor y = latent_ ? latent_attention_(x, at, states) : attention_(x, at, states);
  return output() ? attention_output_norm_(y) : y;
}

Tensor LanguageLayer::network(const Tensor& x, const Positions& at, const DecoderStates& states) const {
  if (averages_) return channel_mixing_(x, at.shown(), states);
  const Tensor y = routed_ ? experts_(x) : network_(x);
  return output() ? network_output_norm_(y) : y;
}

Tensor LanguageLayer::plus(const Tensor& x, const Tensor& more) const {
  return x + (residual_scale_ == 1 ? more : more * residual_scale_);
}

Tensor LanguageLayer::operator()(const Tensor& x, const Positions& at, const DecoderStates& states) const {
  const Tensor y = run(x, at, states);
  return after_ == 1 ? y : y * after_;
}

Tensor LanguageLayer::run(const Tensor& x, const Positions& at, const DecoderStates& states) const {
  if (mixes_) {
    const Tensor read = attention_norm_(x);
    return plus(x, dual_ ? dual_mixer_(read, at.shown(), states) : mixer_(read, at.shown(), states));
  }
  if (place_ == NormPlace::Sum) {
    const Tensor h = attention_norm_(plus(x, attend(x, at, states)));
    return network_norm_(plus(h, network(h, at, states)));
  }
  const Tensor read = before() ? attention_norm_(x) : x;
  const Tensor h = plus(x, attend(read, at, states));
  if (parallel_) return plus(h, network(shared_norm_ ? read : network_norm_(x), at, states));
  return plus(h, network(before() ? network_norm_(h) : h, at, states));
}

}  // namespace lc
