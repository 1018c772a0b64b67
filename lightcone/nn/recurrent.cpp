#include "lightcone/nn/recurrent.h"

#include <cmath>

#include "lightcone/ops/loop.h"

namespace lc::nn {
namespace {

const char* name(RecurrentKind k) {
  return k == RecurrentKind::RNN ? "RNN" : k == RecurrentKind::LSTM ? "LSTM" : "GRU";
}
int gates(RecurrentKind k) { return k == RecurrentKind::RNN ? 1 : k == RecurrentKind::LSTM ? 4 : 3; }

// W_ih x + b_ih for all time steps. It also adds b_hh, except in a GRU, where a gate multiplies W_hh h + b_hh.
lc::Tensor of_inputs(RecurrentKind kind, const lc::Tensor& x, const RecurrentWeights& w) {
  if (!w.bias_ih.defined()) return linear(x, w.ih);
  return linear(x, w.ih, kind == RecurrentKind::GRU ? w.bias_ih : w.bias_ih + w.bias_hh);
}

RecurrentState gru(const lc::Tensor& x, const RecurrentState& s, const RecurrentWeights& w) {
  const lc::Tensor h = w.bias_hh.defined() ? linear(s.h, w.hh, w.bias_hh) : linear(s.h, w.hh);
  const std::vector<lc::Tensor> a = chunk(x, 3, -1), b = chunk(h, 3, -1);
  const lc::Tensor r = sigmoid(a[0] + b[0]), z = sigmoid(a[1] + b[1]), n = tanh(a[2] + r * b[2]);
  return {n + z * (s.h - n)};
}
RecurrentState lstm(const lc::Tensor& x, const RecurrentState& s, const RecurrentWeights& w) {
  const std::vector<lc::Tensor> a = chunk(x + linear(s.h, w.hh), 4, -1);
  const lc::Tensor c = sigmoid(a[1]) * s.c + sigmoid(a[0]) * tanh(a[2]), h = sigmoid(a[3]) * tanh(c);
  return {w.hr.defined() ? linear(h, w.hr) : h, c};
}
// The next states from the current ones and W_ih x of this step (of_inputs()).
RecurrentState stepped(RecurrentKind kind, Nonlinearity f, const lc::Tensor& x, const RecurrentState& s,
                       const RecurrentWeights& w) {
  if (kind == RecurrentKind::GRU) return gru(x, s, w);
  if (kind == RecurrentKind::LSTM) return lstm(x, s, w);
  const lc::Tensor h = x + linear(s.h, w.hh);
  return {f == Nonlinearity::Tanh ? tanh(h) : relu(h)};
}

// Output and last state of one layer in one direction.
struct Ran {
  lc::Tensor output;
  RecurrentState last;
};
// Runs one layer in one direction over x [length, batch, in]. `inside`, bool [length, batch, 1] or undefined, is false
// after the end of a sequence.
Ran ran(RecurrentKind kind, Nonlinearity f, const lc::Tensor& x, const RecurrentState& initial,
        const RecurrentWeights& w, const lc::Tensor& inside, bool reverse) {
  const bool has_c = kind == RecurrentKind::LSTM;
  std::vector<lc::Tensor> xs{of_inputs(kind, x, w)};
  if (inside.defined()) xs.push_back(inside);
  std::vector<lc::Tensor> state{initial.h};
  if (has_c) state.push_back(initial.c);
  const Scanned r = scan(
      [&](const std::vector<lc::Tensor>& s, const std::vector<lc::Tensor>& now) {
        const RecurrentState next = stepped(kind, f, now[0], has_c ? RecurrentState(s[0], s[1]) : s[0], w);
        std::vector<lc::Tensor> states{next.h};
        if (has_c) states.push_back(next.c);
        if (now.size() == 1) return Scanned{states, {next.h}};
        for (std::size_t k = 0; k < states.size(); ++k) states[k] = where(now[1], states[k], s[k]);
        return Scanned{states, {where(now[1], next.h, 0.0)}};
      },
      state, xs, {.reverse = reverse});
  return {r.ys[0], has_c ? RecurrentState(r.state[0], r.state[1]) : r.state[0]};
}

void visit_weights(Visitor& v, const std::string& suffix, RecurrentWeights& w, std::int64_t rows, std::int64_t in,
                   std::int64_t width, std::int64_t hidden, bool bias) {
  const Init init = uniform_init(1 / std::sqrt(static_cast<double>(hidden)));
  v.parameter("weight_ih" + suffix, w.ih, {rows, in}, init).parameter("weight_hh" + suffix, w.hh, {rows, width}, init);
  if (bias)
    v.parameter("bias_ih" + suffix, w.bias_ih, {rows}, init).parameter("bias_hh" + suffix, w.bias_hh, {rows}, init);
  if (width != hidden) v.parameter("weight_hr" + suffix, w.hr, {width, hidden}, init);
}

}  // namespace

Recurrent::Recurrent(RecurrentKind kind, std::int64_t in, std::int64_t hidden, const RecurrentOptions& o)
    : kind_(kind), in_(in), hidden_(hidden), o_(o) {
  const char* const layer = name(kind);
  if (in < 1 || hidden < 1 || o.num_layers < 1)
    throw Error(layer, str_cat("sizes ", in, " and ", hidden, " with ", o.num_layers, " layers: all are at least 1"));
  if (!(o.dropout >= 0 && o.dropout <= 1))
    throw Error(layer, str_cat("a dropout of ", o.dropout, " is no probability"));
  if (o.proj_size < 0 || o.proj_size >= hidden || (o.proj_size > 0 && kind != RecurrentKind::LSTM))
    throw Error(layer,
                str_cat("proj_size is ", o.proj_size, ": only an LSTM projects, to less than its hidden ", hidden));
  weights.resize(static_cast<std::size_t>(o.num_layers * directions()));
}

std::int64_t Recurrent::input_of(int layer) const { return layer == 0 ? in_ : width() * directions(); }

void Recurrent::visit(Visitor& v) {
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const int layer = static_cast<int>(k) / directions();
    const bool reverse = static_cast<int>(k) % directions() == 1;
    visit_weights(v, str_cat("_l", layer, reverse ? "_reverse" : ""), weights[k], gates(kind_) * hidden_,
                  input_of(layer), width(), hidden_, o_.bias);
  }
}

// The initial states, [layers, batch, width], for x [length, batch, in].
lc::Tensor Recurrent::initial(const lc::Tensor& given, const char* state, const lc::Tensor& x, bool batched,
                              std::int64_t width) const {
  const auto layers = static_cast<std::int64_t>(weights.size());
  if (!given.defined()) return full(x.graph(), {layers, x.extent(1), width}, 0, weights[0].ih.dtype());
  const Shape wanted = batched ? Shape{layers, x.extent(1), width} : Shape{layers, width};
  if (given.shape() != wanted)
    throw Error(name(kind_), str_cat("the initial ", state, " is ", str(given.shape()), " and not ", str(wanted)));
  return batched ? given : given.unsqueeze(1);
}

// Mask of the elements of x [length, batch, in] before the end of their sequence: bool [length, batch, 1], undefined
// without lengths.
lc::Tensor Recurrent::inside(const lc::Tensor& lengths, const lc::Tensor& x) const {
  if (!lengths.defined()) return {};
  if (is_float(lengths.dtype()) || lengths.dtype() == DType::Bool || lengths.shape() != Shape{x.extent(1)})
    throw Error(name(kind_), str_cat("the lengths are ", lc::name(lengths.dtype()), " ", str(lengths.shape()),
                                     " and not integers of the batch, ", str(Shape{x.extent(1)})));
  return lt(arange(x.graph(), x.extent(0)).unsqueeze(1), lengths).unsqueeze(-1);
}

Recurrent::Result Recurrent::run(Operand operand, const RecurrentStart& given, Random* random, bool knows_mode) const {
  const OpScope scope(name(kind_), operand.at);
  require_visited(name(kind_), weights[0].ih);
  if (o_.dropout > 0 && o_.num_layers > 1 && !knows_mode)
    throw Error(name(kind_), "it drops out between its layers: say whether the model trains: layer(x, mode)");
  lc::Tensor x = operand;
  const bool batched = x.rank() == 3;
  if ((!batched && x.rank() != 2) || !(x.extent(-1) == Dim(in_)))
    throw Error(name(kind_),
                str_cat(str(x.shape()), " is neither ", o_.batch_first ? "[batch, length, " : "[length, batch, ", in_,
                        "] nor [length, ", in_, "]"));
  if (const int steps = batched && o_.batch_first ? 1 : 0; !x.extent(steps).constant())
    throw Error(name(kind_), str_cat("the length of ", str(x.shape()), " is not known when the graph is built: axis ",
                                     steps, " is ", x.extent(steps), ", and has to be a number"));
  const bool lstm = kind_ == RecurrentKind::LSTM;
  if (!lstm && given.c.defined()) throw Error(name(kind_), "it has no state c");
  if (lstm && given.h.defined() != given.c.defined())
    throw Error(name(kind_), "h and c are given together, or none of them");
  if (!batched) x = x.unsqueeze(1);
  else if (o_.batch_first) x = x.transpose(0, 1);
  const lc::Tensor h_0 = initial(given.h, "h", x, batched, width()),
                   c_0 = lstm ? initial(given.c, "c", x, batched, hidden_) : lc::Tensor();
  if (!batched && given.lengths.defined()) throw Error(name(kind_), "lengths are those of a batch, and x has none");
  const lc::Tensor before_end = inside(given.lengths, x);
  std::vector<lc::Tensor> h_n, c_n;
  for (int layer = 0; layer < o_.num_layers; ++layer) {
    if (layer > 0 && random) x = random->dropout(x, o_.dropout);
    std::vector<lc::Tensor> sides;
    for (int d = 0; d < directions(); ++d) {
      const int k = layer * directions() + d;
      const auto of_layer = [k](const lc::Tensor& t) { return t.slice(0, k, k + 1).squeeze(0); };
      const RecurrentState begin = lstm ? RecurrentState(of_layer(h_0), of_layer(c_0)) : of_layer(h_0);
      const Ran r = ran(kind_, o_.nonlinearity, x, begin, weights[k], before_end, d == 1);
      sides.push_back(r.output);
      h_n.push_back(r.last.h);
      if (lstm) c_n.push_back(r.last.c);
    }
    x = sides.size() == 1 ? sides[0] : concat(sides, -1);
  }
  Result r{x, stack(h_n, 0), lstm ? stack(c_n, 0) : lc::Tensor()};
  if (batched && o_.batch_first) r.output = r.output.transpose(0, 1);
  if (!batched)
    for (lc::Tensor* t : {&r.output, &r.h_n, &r.c_n})
      if (t->defined()) *t = t->squeeze(1);
  return r;
}

RecurrentCell::RecurrentCell(RecurrentKind kind, std::int64_t in, std::int64_t hidden, const CellOptions& o)
    : kind_(kind), in_(in), hidden_(hidden), o_(o) {
  if (in < 1 || hidden < 1)
    throw Error(str_cat(name(kind), "Cell"), str_cat("sizes ", in, " and ", hidden, ": both are at least 1"));
}
void RecurrentCell::visit(Visitor& v) {
  visit_weights(v, "", weights, gates(kind_) * hidden_, in_, hidden_, hidden_, o_.bias);
}
RecurrentState RecurrentCell::step(Operand x, const RecurrentState& given) const {
  const std::string layer = str_cat(name(kind_), "Cell");
  const OpScope scope(name(kind_), x.at);
  require_visited(layer, weights.ih);
  if ((x->rank() != 1 && x->rank() != 2) || !(x->extent(-1) == Dim(in_)))
    throw Error(layer, str_cat(str(x->shape()), " is neither [batch, ", in_, "] nor [", in_, "]"));
  const bool lstm = kind_ == RecurrentKind::LSTM;
  if (lstm && given.h.defined() != given.c.defined()) throw Error(layer, "h and c are given together, or none of them");
  Shape wanted = x->shape();
  wanted.back() = hidden_;
  const auto state = [&](const lc::Tensor& t) {
    if (!t.defined()) return full(x->graph(), wanted, 0, weights.ih.dtype());
    if (t.shape() != wanted) throw Error(layer, str_cat("a state is ", str(t.shape()), " and not ", str(wanted)));
    return t;
  };
  const RecurrentState begin = lstm ? RecurrentState(state(given.h), state(given.c)) : state(given.h);
  return stepped(kind_, o_.nonlinearity, of_inputs(kind_, x, weights), begin, weights);
}

}  // namespace lc::nn
