#include "lightcone/models/language/recurrent/time_mixing.h"

#include "lightcone/models/language/recurrent/row_blocks.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

constexpr double kNone = -1e30;  // the logarithm of no weight

// The row before each row, [..., rows, width]; the first row's is that of the state.
Tensor shifted(const Tensor& x, const Tensor& shown, const DecoderStates& states, const char* name,
               std::int64_t width) {
  const Tensor read = shown.defined() ? where(shown, x, 0.0) : x;
  if (!states.graph) return row_before(read, x.rank() - 2);
  const Dim rows = x.extent(0);
  const Tensor held = states.graph->input(states.name + name, {1, width});
  const Tensor all = cat({held, x}, 0);
  states.graph->assign(held, all.slice(0, rows, rows + 1));
  return all.slice(0, 0, rows);
}

Tensor mixed(const Tensor& x, const Tensor& before, const Tensor& mix, std::int64_t width) {
  const Tensor m = mix.reshape({width});
  return x * m + before * (1.0 - m);
}

// Weighted sums of values as exp(most) sum, and of the weights alone as exp(most) weight, so that no exponential is
// large. Each is [batch, rows, inner].
struct Sums {
  Tensor most, sum, weight;
};

Sums joined(const Sums& a, const Sums& b) {
  const Tensor most = maximum(a.most, b.most), of_a = exp(a.most - most), of_b = exp(b.most - most);
  return {most, of_a * a.sum + of_b * b.sum, of_a * a.weight + of_b * b.weight};
}

template <class F>
Sums each(const Sums& s, const F& f) {
  return {f(s.most), f(s.sum), f(s.weight)};
}

// The sums over all rows up to each row, whose weights decay by exp(rate) from row to row, at once.
// [..., rows, inner], rate [inner].
Sums sums_at_once(const Sums& x, const Tensor& rate) {
  const Dim rows = x.most.extent(-2);
  const Tensor t = rate.graph().index({rows, rows, 1}, Dim::index(0, rows));
  const Tensor s = rate.graph().index({rows, rows, 1}, Dim::index(1, rows));
  const Tensor weight = where(s <= t, x.most.unsqueeze(-3) + to(t - s, DType::F32) * rate, kNone);
  const Tensor most = amax(weight, {-2}), left = exp(weight - most.unsqueeze(-2));  // [..., rows t, rows s, inner]
  const auto summed = [&](const Tensor& v) { return sum(left * v.unsqueeze(-3), {-2}); };
  return {most, summed(x.sum), summed(x.weight)};
}

// The same in blocks.
Sums decaying_sums(const Sums& x, const Tensor& rate) {
  constexpr int kRows = 1;
  if (most_rows(x.most, kRows) <= kRowsAtOnce) return sums_at_once(x, rate);
  const RowBlocks blocks(x.most.extent(kRows), kRowsAtOnce);
  const Sums own = sums_at_once(each(x, [&](const Tensor& t) { return blocks.split(t, kRows); }), rate);
  const Sums last =
      each(own, [](const Tensor& t) { return narrow(t, kRows + 1, kRowsAtOnce - 1, 1).squeeze(kRows + 1); });
  Sums before = decaying_sums(last, rate * static_cast<double>(kRowsAtOnce));
  before = each(before, [](const Tensor& t) { return row_before(t, kRows).unsqueeze(kRows + 1); });
  Graph& g = rate.graph();
  const Tensor block = g.index({blocks.count, 1, 1}, Dim::index(0, blocks.count));
  const Tensor steps = g.index({kRowsAtOnce, 1}, Dim::index(0, kRowsAtOnce), DType::F32) + 1.0;
  before.most = where(block > 0, before.most + steps * rate, kNone);
  return each(joined(own, before), [&](const Tensor& t) { return blocks.merged(t, kRows); });
}

}  // namespace

TimeMixingLayer::TimeMixingLayer(std::int64_t width, const TimeMixing& m)
    : width_(width),
      inner_(m.inner),
      key_(width, m.inner),
      value_(width, m.inner),
      receptance_(width, m.inner),
      output_(m.inner, width) {}

void TimeMixingLayer::visit(nn::Visitor& v) {
  const nn::Init half = nn::constant_init(0.5f), zero = nn::constant_init(0);
  v.parameter("mix_key", mix_key_, {1, 1, width_}, half).parameter("mix_value", mix_value_, {1, 1, width_}, half);
  v.parameter("mix_receptance", mix_receptance_, {1, 1, width_}, half);
  v.parameter("decay", decay_, {inner_}, zero).parameter("bonus", bonus_, {inner_}, zero);
  v("key", key_)("value", value_)("receptance", receptance_)("output", output_);
}

// Row t gives the mean of the values of all rows s up to it, by weights exp(key_s - exp(decay) (t - 1 - s)), and its
// own by exp(key_t + bonus). [batch, rows, inner].
Tensor TimeMixingLayer::average(const Tensor& key, const Tensor& value, const DecoderStates& states) const {
  constexpr int kRows = 1;
  const Tensor rate = -exp(decay_), one = full_like(key, 1, DType::F32);
  Sums up_to = decaying_sums({key, value, one}, rate);
  Graph& g = key.graph();
  const Dim rows = key.extent(kRows);
  const Tensor row = g.index({rows, 1}, Dim::index(0, rows));
  Sums before = each(up_to, [](const Tensor& t) { return row_before(t, kRows); });
  before.most = where(row > 0, before.most, kNone);
  if (states.graph) {
    const auto input = [&](const char* name) { return states.graph->input(states.name + name, {1, inner_}); };
    const Sums held{input(".most"), input(".sum"), input(".weight")};
    // before the first token there is no weight
    const Tensor most = where(g.index({1, 1}, states.past) > 0, held.most, kNone);
    const auto decayed = [&](double first) {
      return Sums{most + (to(row, DType::F32) + first) * rate, held.sum, held.weight};
    };
    before = joined(before, decayed(0)), up_to = joined(up_to, decayed(1));
    const auto last = [&](const Tensor& t) { return t.squeeze(0).slice(0, rows - 1, rows); };
    g.assign(held.most, last(up_to.most));
    g.assign(held.sum, last(up_to.sum));
    g.assign(held.weight, last(up_to.weight));
  }
  const Sums all = joined(before, {key + bonus_, value, one});
  return all.sum / all.weight;
}

Tensor TimeMixingLayer::operator()(const Tensor& x, const Tensor& shown, const DecoderStates& states) const {
  const Tensor before = shifted(x, shown, states, ".attended", width_);
  Tensor key = key_(mixed(x, before, mix_key_, width_)), value = value_(mixed(x, before, mix_value_, width_));
  const Tensor receptance = sigmoid(receptance_(mixed(x, before, mix_receptance_, width_)));
  if (shown.defined()) key = where(shown, key, kNone / 2);
  const bool one_text = x.rank() == 2;
  const auto batched = [&](const Tensor& t) { return one_text ? t.unsqueeze(0) : t; };
  const Tensor y = average(batched(key), batched(value), states);
  return output_(receptance * (one_text ? y.squeeze(0) : y));
}

ChannelMixingLayer::ChannelMixingLayer(std::int64_t width, const TimeMixing& m)
    : width_(width), key_(width, m.network), receptance_(width, width), value_(m.network, width) {}

void ChannelMixingLayer::visit(nn::Visitor& v) {
  const nn::Init half = nn::constant_init(0.5f);
  v.parameter("mix_key", mix_key_, {1, 1, width_}, half)
      .parameter("mix_receptance", mix_receptance_, {1, 1, width_}, half);
  v("key", key_)("receptance", receptance_)("value", value_);
}

Tensor ChannelMixingLayer::operator()(const Tensor& x, const Tensor& shown, const DecoderStates& states) const {
  const Tensor before = shifted(x, shown, states, ".network", width_);
  const Tensor up = relu(key_(mixed(x, before, mix_key_, width_)));
  return sigmoid(receptance_(mixed(x, before, mix_receptance_, width_))) * value_(up * up);
}

}  // namespace lc
