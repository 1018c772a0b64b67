// The networks of decoder-only language models: one for all tokens, or experts of which a router chooses some.
//
// Parameters of a network: up and down; gate, or gate_up in place of gate and up. Of experts: router, choice_bias
// [experts]; of each expert N N.gate, N.up and N.down, or of all of them gate_up (or gate and up) and down [experts,
// ...] and their biases (gate_up_bias, ...), or in place of gate_up and down their _blocks and _scales of MXFP4; shared
// (a network), shared_gate.
#pragma once

#include <utility>
#include <vector>

#include "lightcone/models/blocks/projection.h"
#include "lightcone/models/language/config/language_config.h"
#include "lightcone/nn/parameter.h"

namespace lc {

// The network of one layer: x [..., width] -> the same shape.
class NetworkLayer {
 public:
  NetworkLayer(std::int64_t width, const LanguageNetwork& n, bool transposed = false);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x) const;

 private:
  friend class ExpertsLayer;
  LanguageNetwork n_;
  Projection gate_, up_, gate_up_, down_;
};

// The experts of one layer: x [..., width] -> the same shape.
class ExpertsLayer {
 public:
  ExpertsLayer(std::int64_t width, const LanguageExperts& e);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x) const;

 private:
  struct Choice {
    Tensor experts, weights;  // i64 and f32 [tokens, chosen]
  };
  Choice choose(const Tensor& x) const;
  Tensor allowed(const Tensor& scores) const;
  Tensor apart(const Tensor& x, const Tensor& experts) const;
  std::pair<Tensor, Tensor> gate_and_up(const Tensor& x, const Tensor& experts) const;
  Tensor inner(const Tensor& x, const Tensor& experts) const;
  void visit_stacked(nn::Visitor& v);
  nn::Parameter stacked(const Tensor& whole, const Tensor& blocks, const Tensor& scales) const;
  nn::Parameter gathered(Tensor Projection::*part, Projection NetworkLayer::*of) const;

  std::int64_t width_;
  LanguageExperts e_;
  Projection router_, shared_gate_;
  NetworkLayer shared_;
  std::vector<NetworkLayer> each_;
  Tensor choice_bias_, gate_up_, gate_up_bias_, down_, down_bias_;
  Tensor gate_, gate_bias_, up_, up_bias_;
  Tensor gate_up_blocks_, gate_up_scales_, down_blocks_, down_scales_;
};

}  // namespace lc
