#include "lightcone/models/language/recurrent/state_space_dual.h"

#include <cmath>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/language/recurrent/row_blocks.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

constexpr std::int64_t kBlock = 64;  // rows that read each other by products

// exp(total_t - total_s) for s <= t, or s < t, and 0 for others: [..., rows t] -> [..., rows t, rows s], where `from`
// is the total at which s begins to count.
Tensor decays(const Tensor& total, const Tensor& from, bool itself) {
  const Dim rows = total.extent(-1);
  const Tensor t = total.graph().index({rows, rows}, Dim::index(0, rows));
  const Tensor s = total.graph().index({rows, rows}, Dim::index(1, rows));
  return exp(where(itself ? s <= t : s < t, total.unsqueeze(-1) - from.unsqueeze(-2), -INFINITY));
}

}  // namespace

StateSpaceDualLayer::StateSpaceDualLayer(std::int64_t width, const StateSpace& s, double eps)
    : s_(s),
      eps_(eps),
      in_(width, 2 * s.inner + 2 * s.groups * s.state + s.heads, {s.bias}),
      output_(s.inner, width, {s.bias}),
      conv_(mixed(), s) {}

void StateSpaceDualLayer::visit(nn::Visitor& v) {
  v("in", in_)("conv", conv_);
  v.parameter("step_bias", step_bias_, {s_.heads}, nn::constant_init(0));
  v.parameter("decay", decay_, {s_.heads}, nn::constant_init(0));
  v.parameter("skip", skip_, {s_.heads}, nn::constant_init(1));
  v.parameter("gate_norm.weight", norm_, {s_.inner}, nn::constant_init(1));
  v("output", output_);
}

// h_t = exp(rate step_t) h_(t-1) + step_t in_t x_t and y_t = out_t h_t for each head. x is [batch, rows, heads, head],
// step [batch, rows, heads], in and out [batch, rows, heads, state] -> [batch, rows, heads, head]. With the sums of the
// steps, rows of a block read each other as attention does, and the states of blocks are summed by their decays.
Tensor StateSpaceDualLayer::recurrence(const Tensor& x, const Tensor& step, const Tensor& in, const Tensor& out,
                                       const DecoderStates& states) const {
  constexpr int kRows = 1;
  const Dim batch = x.extent(0), rows = x.extent(kRows);
  const RowBlocks blocks(rows, kBlock);
  const bool divided = most_rows(x, kRows) > kBlock;
  // [batch, count, heads, size, ...]
  const auto split = [&](const Tensor& t) {
    return (divided ? blocks.split(t, kRows) : t.unsqueeze(kRows)).transpose(2, 3);
  };
  const Tensor steps = split(step), values = split(x), read = split(in), give = split(out);
  const Tensor total = cumsum(steps * -exp(decay_).unsqueeze(-1), 3);  // [batch, count, heads, size], 0 or below
  const Tensor end = narrow(total, 3, total.extent(3) - 1, 1);         // [batch, count, heads, 1]
  const Tensor weights = matmul(give, read.transpose(-1, -2)) * decays(total, total, true) * steps.unsqueeze(-2);
  Tensor y = matmul(weights, values);  // [batch, count, heads, size, head]
  // what a block leaves: [batch, count, heads, state, head]
  const Tensor left = matmul((read * (exp(end - total) * steps).unsqueeze(-1)).transpose(-1, -2), values);
  const Tensor reading = give * exp(total).unsqueeze(-1);
  if (divided) {
    const Tensor ends = cumsum(end.squeeze(-1), 1).transpose(1, 2);  // [batch, heads, count]
    const Tensor between = decays(row_before(ends, 2), ends, false);
    const Shape flat{batch, s_.heads, blocks.count, s_.state * head()};
    const Tensor all = matmul(between, left.transpose(1, 2).reshape(flat));
    const Tensor before = all.reshape({batch, s_.heads, blocks.count, s_.state, head()}).transpose(1, 2);
    y = y + matmul(reading, before);
  }
  if (states.graph) {  // one text, whose rows are one block
    const Tensor held = states.graph->input(states.name + ".state", {s_.heads, s_.state, head()});
    y = y + matmul(reading, held);
    states.graph->assign(held, (left + exp(end).unsqueeze(-1) * held).squeeze(0).squeeze(0));
  }
  y = y.transpose(2, 3);
  return divided ? blocks.merged(y, kRows) : y.squeeze(kRows);
}

Tensor StateSpaceDualLayer::gated(const Tensor& y, const Tensor& gate) const {
  Shape s = y.shape();
  s.back() = s_.groups, s.push_back(s_.inner / s_.groups);
  const Tensor grouped = (y * silu(gate)).reshape(s);
  return rms_norm(grouped, {s_.inner / s_.groups}, OptionalOperand(), eps_).reshape(y.shape()) * norm_;
}

Tensor StateSpaceDualLayer::operator()(const Tensor& given, const Tensor& shown, const DecoderStates& states) const {
  const bool one_text = given.rank() == 2;
  const Tensor x = one_text ? given.unsqueeze(0) : given;
  const auto visible = [&](const Tensor& t) { return shown.defined() ? where(shown, t, 0.0) : t; };
  const Tensor all = in_(visible(x)), gate = all.slice(-1, 0, s_.inner);
  Tensor mixed = all.slice(-1, s_.inner, s_.inner + this->mixed());
  mixed = one_text ? conv_(mixed.squeeze(0), states).unsqueeze(0) : conv_(mixed, states);
  mixed = visible(activate(s_.activation, mixed));
  Tensor step = softplus(all.slice(-1, s_.inner + this->mixed(), all.extent(-1)) + step_bias_);
  step = clamp_min(step, s_.least_step);
  if (s_.most_step > 0) step = clamp_max(step, s_.most_step);
  const Dim batch = x.extent(0), rows = x.extent(1);
  const Tensor values = mixed.slice(-1, 0, s_.inner).reshape({batch, rows, s_.heads, head()});
  const std::int64_t each = s_.heads / s_.groups;
  const auto of_heads = [&](std::int64_t begin) {  // a group's vector, for each of its heads
    const Tensor g = narrow(mixed, -1, begin, s_.groups * s_.state).reshape({batch, rows, s_.groups, 1, s_.state});
    return broadcast_to(g, {batch, rows, s_.groups, each, s_.state}).reshape({batch, rows, s_.heads, s_.state});
  };
  const Tensor in = of_heads(s_.inner), out = of_heads(s_.inner + s_.groups * s_.state);
  const Tensor y = recurrence(values, step, in, out, states) + values * skip_.unsqueeze(-1);
  const Tensor result = output_(gated(y.reshape({batch, rows, s_.inner}), gate));
  return one_text ? result.squeeze(0) : result;
}

}  // namespace lc
