#include "lightcone/models/language/feed_forward.h"

#include <cmath>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/expert_linear.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

// The two halves of the last axis.
std::pair<Tensor, Tensor> halves(const Tensor& x, std::int64_t inner) {
  return {x.slice(-1, 0, inner), x.slice(-1, inner, 2 * inner)};
}

}  // namespace

NetworkLayer::NetworkLayer(std::int64_t width, const LanguageNetwork& n, bool transposed)
    : n_(n),
      gate_(width, n.inner, {n.up_bias, transposed}),
      up_(width, n.inner, {n.up_bias, transposed}),
      gate_up_(width, 2 * n.inner, {n.up_bias, transposed}),
      down_(n.inner, width, {n.down_bias, transposed}) {}

void NetworkLayer::visit(nn::Visitor& v) {
  if (n_.gated && n_.joined) v("gate_up", gate_up_);
  else if (n_.gated) v("gate", gate_)("up", up_);
  else v("up", up_);
  v("down", down_);
}

Tensor NetworkLayer::operator()(const Tensor& x) const {
  if (!n_.gated) return down_(activate(n_.activation, up_(x)));
  const auto [gate, up] = n_.joined ? halves(gate_up_(x), n_.inner) : std::pair(gate_(x), up_(x));
  return down_(activate(n_.activation, gate) * up);
}

ExpertsLayer::ExpertsLayer(std::int64_t width, const LanguageExperts& e)
    : width_(width),
      e_(e),
      router_(width, e.count, {e.router_bias}),
      shared_gate_(width, 1),
      shared_(width, {.inner = std::max<std::int64_t>(e.shared, 1),
                      .activation = e.network.activation,
                      .gated = true,
                      .joined = e.network.joined}),
      each_(static_cast<std::size_t>(e.stacked ? 0 : e.count), NetworkLayer(width, e.network)) {}

void ExpertsLayer::visit_stacked(nn::Visitor& v) {
  const std::int64_t inner = e_.network.inner;
  const nn::Init init = nn::uniform_init(1 / std::sqrt(static_cast<double>(width_)));
  const auto matrix = [&](std::int64_t out, std::int64_t in) {
    return e_.stacked_transposed ? Shape{e_.count, in, out} : Shape{e_.count, out, in};
  };
  const auto blocks = [&](const std::string& name, Tensor& bytes, Tensor& scales, std::int64_t out, std::int64_t in) {
    const std::int64_t n = in / kMxfp4Block;
    v.buffer(name + "_blocks", bytes, {e_.count, out, n, kMxfp4Block / 2}, nn::constant_init(0), DType::U8);
    v.buffer(name + "_scales", scales, {e_.count, out, n}, nn::constant_init(0), DType::U8);
  };
  const auto bias = [&](const char* name, Tensor& b, std::int64_t n) {
    if (e_.network.up_bias) v.parameter(name, b, {e_.count, n}, nn::constant_init(0));
  };
  if (e_.mxfp4) {
    blocks("gate_up", gate_up_blocks_, gate_up_scales_, 2 * inner, width_);
    blocks("down", down_blocks_, down_scales_, width_, inner);
  } else if (e_.apart) {
    v.parameter("gate", gate_, matrix(inner, width_), init);
    v.parameter("up", up_, matrix(inner, width_), init);
    v.parameter("down", down_, matrix(width_, inner), init);
  } else {
    v.parameter("gate_up", gate_up_, matrix(2 * inner, width_), init);
    v.parameter("down", down_, matrix(width_, inner), init);
  }
  if (e_.apart) bias("gate_bias", gate_bias_, inner), bias("up_bias", up_bias_, inner);
  else bias("gate_up_bias", gate_up_bias_, 2 * inner);
  if (e_.network.down_bias) v.parameter("down_bias", down_bias_, {e_.count, width_}, nn::constant_init(0));
}

void ExpertsLayer::visit(nn::Visitor& v) {
  v("router", router_);
  if (e_.choice_bias) v.parameter("choice_bias", choice_bias_, {e_.count}, nn::constant_init(0));
  if (e_.stacked) visit_stacked(v);
  else v("", each_);
  if (e_.shared > 0) v("shared", shared_);
  if (e_.shared_gate) v("shared_gate", shared_gate_);
}

// Scores of the experts outside the best groups are -inf. A group is as good as the sum of its best experts.
Tensor ExpertsLayer::allowed(const Tensor& scores) const {
  if (e_.groups <= 1) return scores;
  const Dim tokens = scores.extent(0);
  const std::int64_t size = e_.count / e_.groups;
  const Tensor grouped = scores.reshape({tokens, e_.groups, size});
  const Tensor best = sum(topk(grouped, e_.group_best).values, {-1});
  const Tensor groups = topk(best, e_.chosen_groups).indices;  // [tokens, chosen groups]
  const Tensor in = any(eq(groups.unsqueeze(-1), arange(scores.graph(), e_.groups)), {1});
  return masked_fill(grouped, logical_not(in).unsqueeze(-1), -INFINITY).reshape({tokens, e_.count});
}

ExpertsLayer::Choice ExpertsLayer::choose(const Tensor& x) const {
  const Tensor logits = router_(x);
  if (e_.router == RouterKind::SoftmaxOfChosen) {
    const Sorted best = topk(logits, e_.chosen);
    return {best.indices, softmax(best.values, -1) * e_.scale};
  }
  const Tensor scores = e_.router == RouterKind::Sigmoid ? sigmoid(logits) : softmax(logits, -1);
  const Tensor experts = topk(allowed(e_.choice_bias ? scores + choice_bias_ : scores), e_.chosen).indices;
  Tensor weights = gather(scores, 1, experts);
  if (e_.normalized) weights = weights / (sum(weights, {-1}, true) + 1e-20);
  return {experts, weights * e_.scale};
}

// One matrix of all experts, of which the file has one each.
nn::Parameter ExpertsLayer::gathered(Tensor Projection::*part, Projection NetworkLayer::*of) const {
  std::vector<Tensor> all;
  for (const NetworkLayer& n : each_) all.push_back(n.*of.*part);
  return stacked_parameter(all);
}

nn::Parameter ExpertsLayer::stacked(const Tensor& whole, const Tensor& blocks, const Tensor& scales) const {
  return e_.mxfp4 ? mxfp4_parameter(blocks, scales) : stored_parameter(whole, e_.stacked_transposed);
}

// The products with the first two matrices of an expert, each [tokens, inner].
std::pair<Tensor, Tensor> ExpertsLayer::gate_and_up(const Tensor& x, const Tensor& experts) const {
  const std::int64_t n = e_.network.inner;
  if (!e_.stacked)
    return {expert_linear(x, experts, gathered(&Projection::weight, &NetworkLayer::gate_)),
            expert_linear(x, experts, gathered(&Projection::weight, &NetworkLayer::up_))};
  const auto with = [&](const Tensor& y, const Tensor& bias) {
    return e_.network.up_bias ? y + nn::rows(bias, experts) : y;
  };
  if (e_.apart)
    return {with(expert_linear(x, experts, stored_parameter(gate_, e_.stacked_transposed)), gate_bias_),
            with(expert_linear(x, experts, stored_parameter(up_, e_.stacked_transposed)), up_bias_)};
  const Tensor both =
      with(expert_linear(x, experts, stacked(gate_up_, gate_up_blocks_, gate_up_scales_)), gate_up_bias_);
  return e_.alternating ? std::pair(both.slice(-1, 0, 2 * n, 2), both.slice(-1, 1, 2 * n, 2)) : halves(both, n);
}

// What the last matrix of an expert reads: [tokens, inner].
Tensor ExpertsLayer::inner(const Tensor& x, const Tensor& experts) const {
  auto [gate, up] = gate_and_up(x, experts);
  if (e_.limit == 0) return activate(e_.network.activation, gate) * up;
  gate = clamp_max(gate, e_.limit), up = clamp(up, -e_.limit, e_.limit);
  return (up + 1.0) * gate * sigmoid(gate * e_.gate_slope);
}

// x [tokens, width] through the expert of each token.
Tensor ExpertsLayer::apart(const Tensor& x, const Tensor& experts) const {
  const Tensor h = inner(x, experts);
  if (!e_.stacked) return expert_linear(h, experts, gathered(&Projection::weight, &NetworkLayer::down_));
  const Tensor y = expert_linear(h, experts, stacked(down_, down_blocks_, down_scales_));
  return e_.network.down_bias ? y + nn::rows(down_bias_, experts) : y;
}

Tensor ExpertsLayer::operator()(const Tensor& x) const {
  Dim tokens = 1;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) tokens = tokens * x.extent(axis);
  const Tensor rows = x.reshape({tokens, width_});
  const Choice choice = choose(rows);
  const Shape each{tokens, e_.chosen, width_};
  const Dim pairs = tokens * Dim(e_.chosen);
  const Tensor y =
      apart(broadcast_to(rows.unsqueeze(1), each).reshape({pairs, width_}), choice.experts.reshape({pairs}));
  Tensor all = sum(y.reshape(each) * choice.weights.unsqueeze(-1), {1});
  if (e_.shared > 0) {
    const Tensor more = shared_(rows);
    all = all + (e_.shared_gate ? more * sigmoid(shared_gate_(rows)) : more);
  }
  return all.reshape(x.shape());
}

}  // namespace lc
