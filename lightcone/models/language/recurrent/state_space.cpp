#include "lightcone/models/language/recurrent/state_space.h"

#include <algorithm>
#include <cmath>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/language/recurrent/row_blocks.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

void RowConvolution::visit(nn::Visitor& v) {
  const nn::Init small = nn::uniform_init(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(kernel_, 1))));
  v.parameter("weight", weight_, {channels_, 1, kernel_}, small);
  if (has_bias_) v.parameter("bias", bias_, {channels_}, nn::constant_init(0));
}

Tensor RowConvolution::operator()(const Tensor& x, const DecoderStates& states) const {
  const std::int64_t before = kernel_ - 1;
  const Dim rows = x.extent(-2);
  Tensor all;
  if (states.graph && before > 0) {
    const Tensor held = states.graph->input(states.name + ".conv", {before, channels_});
    all = cat({held, x}, -2);
    states.graph->assign(held, all.slice(0, rows, rows + before));
  } else {
    all = x.pad(x.rank() - 2, before, 0);
  }
  Tensor y = all.slice(-2, 0, rows) * weight_.slice(2, 0, 1).reshape({channels_});
  for (std::int64_t k = 1; k < kernel_; ++k)
    y = y + all.slice(-2, k, rows + k) * weight_.slice(2, k, k + 1).reshape({channels_});
  return has_bias_ ? y + bias_ : y;
}

StateSpaceLayer::StateSpaceLayer(std::int64_t width, const StateSpace& s)
    : s_(s),
      in_(width, 2 * s.inner, {s.bias}),
      select_(s.inner, s.rank + 2 * s.state),
      step_(s.rank, s.inner, {.bias = true}),
      output_(s.inner, width, {s.bias}),
      conv_(s.inner, s) {}

void StateSpaceLayer::visit(nn::Visitor& v) {
  v("in", in_)("conv", conv_);
  v("select", select_)("step", step_).parameter("decay", decay_, {s_.inner, s_.state}, nn::constant_init(0));
  v.parameter("skip", skip_, {s_.inner}, nn::constant_init(1))("output", output_);
}

// h_t = exp(rate step_t) h_(t-1) + step_t in_t x_t and y_t = out_t h_t, where the rate is -exp(decay) or as stored. x
// and step are
// [..., rows, inner], in and out [..., rows, state].
Tensor StateSpaceLayer::recurrence(const Tensor& x, const Tensor& step, const Tensor& in, const Tensor& out,
                                   const DecoderStates& states) const {
  const Tensor rate = s_.rates ? decay_ : -exp(decay_);  // [inner, state]
  const bool one_text = x.rank() == 2;
  const auto batched = [&](const Tensor& t) { return one_text ? t.unsqueeze(0) : t; };
  const Tensor added = (step * x).unsqueeze(-1) * in.unsqueeze(-2);  // [..., rows, inner, state]
  Tensor all = decaying_sums(batched(step), batched(added), rate);
  if (one_text) all = all.squeeze(0);
  if (states.graph) {
    const Dim rows = x.extent(0);
    const Tensor held = states.graph->input(states.name + ".state", {s_.inner, s_.state});
    all = all + exp(cumsum(step, 0).unsqueeze(-1) * rate) * held;
    states.graph->assign(held, all.slice(0, rows - 1, rows).squeeze(0));
  }
  return sum(all * out.unsqueeze(-2), {-1});
}

Tensor StateSpaceLayer::normed(const Tensor& x) const {
  return s_.inner_eps > 0 ? rms_norm(x, {*x.extent(-1).constant()}, {}, s_.inner_eps) : x;
}

Tensor StateSpaceLayer::operator()(const Tensor& x, const Tensor& shown, const DecoderStates& states) const {
  const auto visible = [&](const Tensor& t) { return shown.defined() ? where(shown, t, 0.0) : t; };
  const Tensor both = in_(visible(x)), gate = both.slice(-1, s_.inner, 2 * s_.inner);
  const Tensor u = visible(activate(s_.activation, conv_(both.slice(-1, 0, s_.inner), states)));
  const Tensor chosen = select_(u);
  const Tensor step = softplus(step_(normed(chosen.slice(-1, 0, s_.rank))));
  const Tensor in = normed(chosen.slice(-1, s_.rank, s_.rank + s_.state));
  const Tensor out = normed(chosen.slice(-1, s_.rank + s_.state, s_.rank + 2 * s_.state));
  const Tensor y = recurrence(u, step, in, out, states) + u * skip_;
  return output_(y * activate(s_.activation, gate));
}

}  // namespace lc
