// Recurrent layers: torch.nn.RNN, LSTM, GRU and their cells. Names, parameters (weight_ih_l0, bias_hh_l1_reverse, ...),
// defaults and initial values (uniform in +-1 / sqrt(hidden)) are those of torch.
//
//   nn::LSTM<> lstm(64, 128, {.num_layers = 2, .batch_first = true, .dropout = 0.1});
//   auto [output, h_n, c_n] = lstm(x, mode);             // x [batch, length, 64], states begin at 0
//   auto [y, h, c] = lstm(x, {h_0, c_0}, mode);
//   auto [z, last, cells] = lstm(x, {{}, {}, lengths}, mode);   // of padded sequences
//
// x is [length, batch, in], or [batch, length, in] with batch_first, or [length, in]; the length must be a number, not
// a symbol. `output` has the shape of x with `directions * hidden` in place of `in`: the states of the last layer at
// all time steps. h_n, c_n and the initial states are [num_layers * directions, batch, hidden], or
// [num_layers * directions, hidden] without a batch. The products of a layer's input weights with all time steps are
// hoisted out of the loop (lc::scan) into one product.
#pragma once

#include "lightcone/nn/module.h"

namespace lc::nn {

// Nonlinearity of RNN and RNNCell.
enum class Nonlinearity : std::uint8_t { Tanh, ReLU };
// The recurrence of a layer or cell.
enum class RecurrentKind : std::uint8_t { RNN, LSTM, GRU };

// Options of RNN, LSTM and GRU, as in torch.
struct RecurrentOptions {
  int num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;  // between layers, in training
  bool bidirectional = false;
  std::int64_t proj_size = 0;                      // LSTM: width to which h is projected; 0: no projection
  Nonlinearity nonlinearity = Nonlinearity::Tanh;  // RNN only
};
// The state of a cell: h and, for an LSTM, c.
struct RecurrentState {
  RecurrentState() = default;
  RecurrentState(const lc::Tensor& h_0, const lc::Tensor& c_0 = {}) : h(h_0), c(c_0) {}
  lc::Tensor h, c;
};
// The initial states, zeros if undefined, and optionally the lengths of padded sequences, integers [batch]. With
// lengths, each direction runs over the elements before the end of a sequence only. h_n and c_n hold the last of these
// states, and the output after the end is 0 (torch.nn.utils.rnn.pack_padded_sequence with enforce_sorted=False, then
// pad_packed_sequence). A length of 0 is allowed and leaves the initial state.
struct RecurrentStart {
  RecurrentStart() = default;
  RecurrentStart(const lc::Tensor& h_0, const lc::Tensor& c_0 = {}, const lc::Tensor& lengths = {})
      : h(h_0), c(c_0), lengths(lengths) {}
  lc::Tensor h, c, lengths;
};

// The parameters of one direction of one layer: ih [gates * hidden, in], hh [gates * hidden, width of h], biases
// [gates * hidden], hr [proj_size, hidden].
struct RecurrentWeights {
  lc::Tensor ih, hh, bias_ih, bias_hh, hr;
};

// The untyped implementation of the layers below.
class Recurrent {
 public:
  // Throws Error unless sizes and num_layers are positive, dropout is in [0, 1], and the options apply to the kind.
  Recurrent(RecurrentKind kind, std::int64_t in, std::int64_t hidden, const RecurrentOptions& o);
  void visit(Visitor& v);
  struct Result {
    lc::Tensor output, h_n, c_n;
  };
  // `random` draws the dropout masks; it is null in inference. `knows_mode` is false if the layer was called without a
  // mode, which is an Error if the layer has dropout.
  Result run(Operand x, const RecurrentStart& start, Random* random, bool knows_mode) const;

  std::vector<RecurrentWeights> weights;  // layer 0, layer 0 reversed, layer 1, ...

 private:
  std::int64_t input_of(int layer) const;
  std::int64_t width() const { return o_.proj_size > 0 ? o_.proj_size : hidden_; }  // width of h
  int directions() const { return o_.bidirectional ? 2 : 1; }
  lc::Tensor initial(const lc::Tensor& given, const char* name, const lc::Tensor& x, bool batched,
                     std::int64_t width) const;
  lc::Tensor inside(const lc::Tensor& lengths, const lc::Tensor& x) const;

  RecurrentKind kind_;
  std::int64_t in_, hidden_;
  RecurrentOptions o_;
};

// Result of RNN and GRU.
template <class Y, class H>
struct RecurrentOutput {
  Y output;
  H h_n;
};
// Result of LSTM.
template <class Y, class H>
struct LstmOutput {
  Y output;
  H h_n, c_n;
};

// The static type of the output of a layer, or the error in its operand.
constexpr typed::Inferred infer_recurrent(const typed::Shape& x, const typed::Dim& in, const typed::Dim& out) {
  typed::Inferred r{x, {}};
  if (x.rank != 2 && x.rank != 3)
    r.error.add("recurrent layer: ")
        .add(x)
        .add(" is neither [length, batch, ")
        .add(in)
        .add("] nor [length, ")
        .add(in)
        .add("]");
  else if (typed::differ(x.d[x.rank - 1], in))
    r.error.add("recurrent layer: the last axis of ").add(x).add(" must be ").add(in);
  else r.out.d[x.rank - 1] = out;
  return r;
}

// Recurrent layer with typed operands. The sizes and the number of directions are template arguments, or arguments of
// the constructor if In and Hidden are dyn.
template <RecurrentKind Kind, typed::Dim In, typed::Dim Hidden, bool Bidirectional>
class RecurrentLayer {
 public:
  RecurrentLayer(const RecurrentOptions& o = {})
    requires(In.number() && Hidden.number())
      : layer_(Kind, In.n, Hidden.n, completed(o)) {}
  RecurrentLayer(std::int64_t in, std::int64_t hidden, const RecurrentOptions& o = {})
      : layer_(Kind, extent_of<In>(in), extent_of<Hidden>(hidden), completed(o)) {}
  void visit(Visitor& v) { layer_.visit(v); }

  template <class X>
  auto operator()(const X& x, const RecurrentStart& start = {}, const At& at = At::current()) const {
    return results(x, layer_.run(Operand(x, at), start, nullptr, false));
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  auto operator()(const X& x, Mode& mode, const At& at = At::current()) const {
    return (*this)(x, RecurrentStart(), mode, at);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  auto operator()(const X& x, const RecurrentStart& start, Mode& mode, const At& at = At::current()) const {
    return results(x, layer_.run(Operand(x, at), start, dropout_rng(mode, drops_), true));
  }
  const std::vector<RecurrentWeights>& weights() const { return layer_.weights; }  // in the order of Recurrent::weights

 private:
  static constexpr typed::Dim kOut =
      Hidden.number() ? typed::Dim(static_cast<long>(Hidden.n * (Bidirectional ? 2 : 1))) : dyn;
  RecurrentOptions completed(RecurrentOptions o) {
    if (Hidden.number() && ((o.bidirectional && !Bidirectional) || o.proj_size > 0))
      throw Error("recurrent layer",
                  "bidirectional is a template argument where the sizes are (LSTM<8, 16, true>), and "
                  "with proj_size the sizes are arguments of the constructor (LSTM<>(8, 16, {...}))");
    o.bidirectional = o.bidirectional || Bidirectional;
    drops_ = o.num_layers > 1 ? o.dropout : 0;
    return o;
  }
  template <class E, typed::Dim... A>
  static auto results(const typed::Tensor<E, A...>&, const Recurrent::Result& r) {
    constexpr typed::Inferred y = infer_recurrent(typed::Tensor<E, A...>::static_shape, In, kOut);
    typed::require<y.error>();
    using Y = typed::TensorOf<E, y.out>;
    if constexpr (sizeof...(A) == 2) return together<Y, typed::Tensor<E, dyn, Hidden>>(r);
    else return together<Y, typed::Tensor<E, dyn, dyn, Hidden>>(r);
  }
  static auto results(const lc::Tensor&, const Recurrent::Result& r) { return together<lc::Tensor, lc::Tensor>(r); }
  template <class Y, class H>
  static auto together(const Recurrent::Result& r) {
    if constexpr (Kind == RecurrentKind::LSTM) return LstmOutput<Y, H>{as<Y>(r.output), as<H>(r.h_n), as<H>(r.c_n)};
    else return RecurrentOutput<Y, H>{as<Y>(r.output), as<H>(r.h_n)};
  }
  template <class T>
  static T as(const lc::Tensor& t) {
    if constexpr (std::is_same_v<T, lc::Tensor>) return t;
    else return T::from(t);
  }

  double drops_ = 0;
  Recurrent layer_;
};

// torch.nn.RNN: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu instead of tanh.
template <typed::Dim In = dyn, typed::Dim Hidden = dyn, bool Bidirectional = false>
using RNN = RecurrentLayer<RecurrentKind::RNN, In, Hidden, Bidirectional>;
// torch.nn.LSTM with the gates i, f, g, o in torch's order: c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c'). S.
// Hochreiter and J. Schmidhuber, "Long short-term memory", 1997. With proj_size, h' is multiplied by weight_hr (H. Sak
// et al., 2014).
template <typed::Dim In = dyn, typed::Dim Hidden = dyn, bool Bidirectional = false>
using LSTM = RecurrentLayer<RecurrentKind::LSTM, In, Hidden, Bidirectional>;
// torch.nn.GRU with the gates r, z, n: n = tanh(W_in x + b_in + s(r) (W_hn h + b_hn)), h' = (1 - s(z)) n + s(z) h. K.
// Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014, in torch's variant.
template <typed::Dim In = dyn, typed::Dim Hidden = dyn, bool Bidirectional = false>
using GRU = RecurrentLayer<RecurrentKind::GRU, In, Hidden, Bidirectional>;

// Options of the cells.
struct CellOptions {
  bool bias = true;
  Nonlinearity nonlinearity = Nonlinearity::Tanh;  // RNNCell only
};
// A single time step: x [batch, in] or [in] and states [batch, hidden] or [hidden] -> the next states
// (torch.nn.RNNCell, LSTMCell, GRUCell). Undefined states are zeros. The parameters are weight_ih, weight_hh, bias_ih
// and bias_hh.
class RecurrentCell {
 public:
  // Throws Error unless the sizes are positive.
  RecurrentCell(RecurrentKind kind, std::int64_t in, std::int64_t hidden, const CellOptions& o);
  void visit(Visitor& v);
  RecurrentWeights weights;

 protected:
  RecurrentState step(Operand x, const RecurrentState& state) const;

 private:
  RecurrentKind kind_;
  std::int64_t in_, hidden_;
  CellOptions o_;
};
// torch.nn.RNNCell and GRUCell, whose only state is h.
template <RecurrentKind Kind>
class PlainCell : public RecurrentCell {
 public:
  PlainCell(std::int64_t in, std::int64_t hidden, const CellOptions& o = {}) : RecurrentCell(Kind, in, hidden, o) {}
  // Returns the next h.
  lc::Tensor operator()(const lc::Tensor& x, const lc::Tensor& h = {}, const At& at = At::current()) const {
    return step(Operand(x, at), h).h;
  }
};
using RNNCell = PlainCell<RecurrentKind::RNN>;
using GRUCell = PlainCell<RecurrentKind::GRU>;
// torch.nn.LSTMCell. A call returns the next h and c.
class LSTMCell : public RecurrentCell {
 public:
  LSTMCell(std::int64_t in, std::int64_t hidden, const CellOptions& o = {})
      : RecurrentCell(RecurrentKind::LSTM, in, hidden, o) {}
  RecurrentState operator()(const lc::Tensor& x, const RecurrentState& state = {}, const At& at = At::current()) const {
    return step(Operand(x, at), state);
  }
};

}  // namespace lc::nn
