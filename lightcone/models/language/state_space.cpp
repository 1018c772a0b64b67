#include "lightcone/models/language/state_space.h"

#include <cmath>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

StateSpaceLayer::StateSpaceLayer(std::int64_t width, const StateSpace& s)
    : s_(s),
      in_(width, 2 * s.inner, {s.bias}),
      select_(s.inner, s.rank + 2 * s.state),
      step_(s.rank, s.inner, {.bias = true}),
      output_(s.inner, width, {s.bias}) {}

void StateSpaceLayer::visit(nn::Visitor& v) {
  const nn::Init small = nn::uniform_init(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(s_.kernel, 1))));
  v("in", in_).parameter("conv.weight", conv_, {s_.inner, 1, s_.kernel}, small);
  if (s_.conv_bias) v.parameter("conv.bias", conv_bias_, {s_.inner}, nn::constant_init(0));
  v("select", select_)("step", step_).parameter("decay", decay_, {s_.inner, s_.state}, nn::constant_init(0));
  v.parameter("skip", skip_, {s_.inner}, nn::constant_init(1))("output", output_);
}

// Each row reads itself and the kernel - 1 rows before it: [..., rows, inner].
Tensor StateSpaceLayer::convolved(const Tensor& x, const DecoderStates& states) const {
  const std::int64_t before = s_.kernel - 1;
  const Dim rows = x.extent(-2);
  Tensor all;
  if (states.graph && before > 0) {
    const Tensor held = states.graph->input(states.name + ".conv", {before, s_.inner});
    all = cat({held, x}, -2);
    states.graph->assign(held, all.slice(0, rows, rows + before));
  } else {
    all = x.pad(x.rank() - 2, before, 0);
  }
  Tensor y = all.slice(-2, 0, rows) * conv_.slice(2, 0, 1).reshape({s_.inner});
  for (std::int64_t k = 1; k < s_.kernel; ++k)
    y = y + all.slice(-2, k, rows + k) * conv_.slice(2, k, k + 1).reshape({s_.inner});
  return s_.conv_bias ? y + conv_bias_ : y;
}

// h_t = exp(rate step_t) h_(t-1) + step_t in_t x_t and y_t = out_t h_t, where the rate is -exp(decay) or as stored.
// With T_t, the sum of the steps up to t, h_t is the sum over s <= t of exp(rate (T_t - T_s)) step_s in_s x_s, and of
// what is left of the state before. x and step are [..., rows, inner], in and out [..., rows, state].
Tensor StateSpaceLayer::recurrence(const Tensor& x, const Tensor& step, const Tensor& in, const Tensor& out,
                                   const DecoderStates& states) const {
  const Dim rows = x.extent(-2);
  const Tensor rate = s_.rates ? decay_ : -exp(decay_);  // [inner, state]
  const Tensor total = cumsum(step, x.rank() - 2);       // [..., rows, inner]
  // [..., rows t, rows s, inner, state]
  const Tensor apart = (total.unsqueeze(-2) - total.unsqueeze(-3)).unsqueeze(-1);
  const Tensor t = x.graph().index({rows, rows, 1, 1}, Dim::index(0, rows));
  const Tensor s = x.graph().index({rows, rows, 1, 1}, Dim::index(1, rows));
  const Tensor left = exp(where(s <= t, apart * rate, -INFINITY));
  const Tensor added = (step * x).unsqueeze(-1) * in.unsqueeze(-2);  // [..., rows, inner, state]
  const Tensor h = sum(left * added.unsqueeze(-4), {-3});            // [..., rows, inner, state]
  Tensor all = h;
  if (states.graph) {
    const Tensor held = states.graph->input(states.name + ".state", {s_.inner, s_.state});
    all = h + exp(total.unsqueeze(-1) * rate) * held;
    states.graph->assign(held, all.slice(0, rows - 1, rows).squeeze(0));
  }
  return sum(all * out.unsqueeze(-2), {-1});
}

Tensor StateSpaceLayer::operator()(const Tensor& x, const Tensor& shown, const DecoderStates& states) const {
  const auto visible = [&](const Tensor& t) { return shown.defined() ? where(shown, t, 0.0) : t; };
  const Tensor both = in_(visible(x)), gate = both.slice(-1, s_.inner, 2 * s_.inner);
  const Tensor u = visible(activate(s_.activation, convolved(both.slice(-1, 0, s_.inner), states)));
  const Tensor chosen = select_(u);
  const Tensor step = softplus(step_(chosen.slice(-1, 0, s_.rank)));
  const Tensor in = chosen.slice(-1, s_.rank, s_.rank + s_.state);
  const Tensor out = chosen.slice(-1, s_.rank + s_.state, s_.rank + 2 * s_.state);
  const Tensor y = recurrence(u, step, in, out, states) + u * skip_;
  return output_(y * activate(s_.activation, gate));
}

}  // namespace lc
