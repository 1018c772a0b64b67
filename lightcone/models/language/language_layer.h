// A layer of a decoder-only language model: attention and a network with norms and residual sums.
//
// Parameters: attention (latent or not), network or experts, and the norms attention_norm, network_norm,
// attention_output_norm and network_output_norm, as far as NormPlace has them. Of a state space: mixer, mixer_norm.
#pragma once

#include "lightcone/models/language/feed_forward.h"
#include "lightcone/models/language/language_attention.h"
#include "lightcone/models/language/recurrent/state_space.h"
#include "lightcone/models/language/recurrent/state_space_dual.h"
#include "lightcone/models/language/recurrent/time_mixing.h"

namespace lc {

// One layer: x [..., rows, width] -> the same shape.
class LanguageLayer {
 public:
  LanguageLayer(const LanguageConfig& c, const LanguageLayerKind& kind);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x, const Positions& at, const DecoderStates& states) const;

 private:
  Tensor run(const Tensor& x, const Positions& at, const DecoderStates& states) const;
  Tensor attend(const Tensor& x, const Positions& at, const DecoderStates& states) const;
  Tensor network(const Tensor& x, const Positions& at, const DecoderStates& states) const;
  Tensor plus(const Tensor& x, const Tensor& more) const;
  bool before() const { return place_ == NormPlace::Before || place_ == NormPlace::Both; }
  bool output() const { return place_ == NormPlace::Output || place_ == NormPlace::Both; }

  NormPlace place_;
  bool parallel_, shared_norm_, latent_, routed_, mixes_, dual_, averages_;
  double residual_scale_, after_;
  AttentionLayer attention_;
  LatentAttentionLayer latent_attention_;
  NetworkLayer network_;
  ExpertsLayer experts_;
  StateSpaceLayer mixer_;
  StateSpaceDualLayer dual_mixer_;
  TimeMixingLayer time_mixing_;
  ChannelMixingLayer channel_mixing_;
  Norm attention_norm_, network_norm_, attention_output_norm_, network_output_norm_;
};

}  // namespace lc
