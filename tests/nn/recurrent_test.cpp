// RNN, LSTM, GRU and their cells are torch.nn's, with padded sequences too.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

#include "error_of.h"
#include "layer_goldens.h"
#include "lightcone/nn/layers.h"
#include "lightcone/runtime/program.h"
#include "lightcone/train/trace.h"
#include "on_device.h"

using namespace lc;

namespace {

using Tensors = std::vector<Tensor>;

const auto two = [](const auto& layer, const Tensors& x, auto&) {
  const auto [output, h_n] = layer(x[0]);
  return joined({output, h_n});
};
const auto two_of_state = [](const auto& layer, const Tensors& x, auto&) {
  const auto [output, h_n] = layer(x[0], x[1]);
  return joined({output, h_n});
};
const auto three = [](const auto& layer, const Tensors& x, auto&) {
  const auto [output, h_n, c_n] = layer(x[0]);
  return joined({output, h_n, c_n});
};

TEST(Recurrent, LayersArePyTorchs) {
  LayerCases cases;
  cases.add("RNN", nn::RNN<>(3, 4), two);
  cases.add("RNN relu", nn::RNN<>(3, 4, {.num_layers = 2, .bias = false, .nonlinearity = nn::Nonlinearity::ReLU}), two);
  cases.add("LSTM", nn::LSTM<>(3, 4), three);
  cases.add("LSTM deep", nn::LSTM<>(3, 2, {.num_layers = 2, .batch_first = true, .bidirectional = true}), three);
  cases.add("LSTM projected", nn::LSTM<>(3, 4, {.num_layers = 2, .bidirectional = true, .proj_size = 2}), three);
  cases.add("LSTM states", nn::LSTM<>(3, 2, {.num_layers = 2}), [](const auto& layer, const Tensors& x, auto&) {
    const auto [output, h_n, c_n] = layer(x[0], {x[1], x[2]});
    return joined({output, h_n, c_n});
  });
  cases.add("GRU", nn::GRU<>(3, 4), two);
  cases.add("GRU deep", nn::GRU<>(3, 2, {.num_layers = 2, .bias = false, .bidirectional = true}), two_of_state);
  cases.add("LSTM padded", nn::LSTM<>(3, 2, {.num_layers = 2, .bidirectional = true}),
            [](const auto& layer, const Tensors& x, auto&) {
              const auto [output, h_n, c_n] = layer(x[0], {{}, {}, x[1]});
              return joined({output, h_n, c_n});
            });
  cases.add("GRU padded", nn::GRU<>(3, 2), [](const auto& layer, const Tensors& x, auto&) {
    const auto [output, h_n] = layer(x[0], {{}, {}, x[1]});
    return joined({output, h_n});
  });
  cases.add("GRU unbatched", nn::GRU<>(3, 4), two_of_state);
  cases.check();
}

TEST(Recurrent, CellsArePyTorchs) {
  LayerCases cases;
  const auto plain = [](const auto& cell, const Tensors& x, auto&) { return cell(x[0], x[1]); };
  cases.add("RNNCell", nn::RNNCell(3, 4, {.nonlinearity = nn::Nonlinearity::ReLU}), plain);
  cases.add("GRUCell", nn::GRUCell(3, 4), plain);
  cases.add("LSTMCell", nn::LSTMCell(3, 4), [](const auto& cell, const Tensors& x, auto&) {
    const auto [h, c] = cell(x[0], {x[1], x[2]});
    return joined({h, c});
  });
  cases.add("LSTMCell zeros", nn::LSTMCell(3, 4, {.bias = false}), [](const auto& cell, const Tensors& x, auto&) {
    const auto [h, c] = cell(x[0]);
    return joined({h, c});
  });
  cases.check();
}

// If sizes are template arguments, shapes are checked statically. They hold for any batch.
TEST(Recurrent, TypedShapes) {
  Graph g;
  nn::Model<nn::LSTM<3, 4, true>> lstm(g, nn::LSTM<3, 4, true>({.batch_first = true}), "lstm");
  nn::Model<nn::GRU<3, 4>> gru(g, {}, "gru");
  const auto x = typed::input<float, "batch", 5, 3>(g, "x");
  const auto [output, h_n, c_n] = lstm(x);
  static_assert(std::is_same_v<decltype(output), const typed::Tensor<float, "batch", 5, 8>>);
  static_assert(std::is_same_v<decltype(c_n), const typed::Tensor<float, typed::dyn, typed::dyn, 4>>);
  EXPECT_EQ(str(h_n.shape()), "[2, batch, 4]");
  const auto [y, h] = gru(typed::input<float, 5, 3>(g, "unbatched"));
  static_assert(std::is_same_v<decltype(y), const typed::Tensor<float, 5, 4>>);
  EXPECT_EQ(h.shape(), (Shape{1, 4}));
  output.retrieve("y");
  Program p = compile(g, generic() | test::device());
  lstm.initialise(p, 1);
  Context c(p);
  for (const std::int64_t batch : {1, 3}) {
    c.bind("batch", batch);
    c.set("x", std::vector<float>(static_cast<std::size_t>(batch * 15), 0.5f)).run();
    EXPECT_EQ(c.get("y").size(), static_cast<std::size_t>(batch * 40));
  }
}

TEST(Recurrent, DropsOutBetweenLayersWhileItTrains) {
  Graph g;
  nn::Model<nn::GRU<>> deep(g, nn::GRU<>(3, 4, {.num_layers = 2, .dropout = 1}));
  const Tensor x = g.input("x", {5, 2, 3}), other = g.input("other", {5, 2, 3});
  EXPECT_PRED2(contains, error_of([&] { deep.module()(x); }),
               "GRU: it drops out between its layers: say whether the model trains: layer(x, mode)");
  nn::Training training(deep);
  // in training the input does not reach the second layer; in inference it does
  amax(abs(deep.module()(x, training).output - deep.module()(other, training).output)).retrieve("training");
  amax(abs(deep(x).output - deep(other).output)).retrieve("inference");
  Program p = compile(g, generic() | test::device());
  deep.initialise(p, 1);
  Context c(p);
  c.set("x", std::vector<float>(30, 1)).set("other", std::vector<float>(30, -1)).run();
  EXPECT_EQ(c.scalar("training"), 0);
  EXPECT_GT(c.scalar("inference"), 0.01f);
}

// Elements after the end of a sequence are not read, not even NaN. A sequence may be empty.
TEST(Recurrent, PaddingIsNotLookedAt) {
  Graph g;
  nn::Model<nn::GRU<>> gru(g, nn::GRU<>(3, 4, {.batch_first = true, .bidirectional = true}));
  const Tensor x = g.input("x", {3, 5, 3}), n = g.input("n", {3}, DType::I64), h = g.input("h", {2, 3, 4});
  const auto [y, last] = gru.module()(x, {h, {}, n});
  y.retrieve("y"), last.retrieve("last");
  gru.module()(x.slice(0, 1, 2).slice(1, 0, 2), h.slice(1, 1, 2))
      .output.retrieve("alone");  // the second sequence without padding
  for (const bool compiled : {false, true}) {
    Program p = compile(g, compiled ? generic() | test::device({.threads = 1}) : Compiler());
    gru.initialise(p, 1);
    std::vector<float> points(45), begin(24, 0.25f);
    for (std::size_t k = 0; k < 45; ++k) points[k] = std::sin(static_cast<float>(k));
    std::fill(points.begin() + 15 + 6, points.begin() + 30, NAN);
    Context c(p);
    c.set("x", points).set("h", begin).set("n", std::vector<std::int64_t>{5, 2, 0}).run();
    const auto out = c.get("y"), alone = c.get("alone"), states = c.get("last");
    for (std::size_t k = 0; k < 16; ++k) EXPECT_NEAR(out[40 + k], alone[k], 1e-6) << k;
    for (std::size_t k = 56; k < 120; ++k) EXPECT_EQ(out[k], 0) << k;
    for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(states[8 + k], 0.25f);
  }
}

struct Remembers {
  nn::LSTM<1, 8> lstm;
  nn::Linear<8, 2> head;
  void visit(nn::Visitor& v) { v("lstm", lstm)("head", head); }
  auto operator()(const auto& x) const { return head(typed::slice<0, 7, 8>(lstm(x).output)); }
};

// The network must output the sign of the first number at the end.
TEST(Recurrent, LearnsToRemember) {
  Graph g;
  nn::Model<Remembers> net(g);
  const auto x = typed::input<float, 8, 16, 1>(g, "x");
  const auto y = typed::input<std::int64_t, 16>(g, "y");
  auto loss = trace(
      net, [](auto& net, auto x, auto y) { return cross_entropy(typed::squeeze<0>(net(x)), y); }, x, y);
  loss.loss().retrieve("loss");
  update(net, optim::Adam{.lr = 3e-2}, backward(std::move(loss)));
  Program p = compile(g, generic() | test::device());
  net.initialise(p, 1);
  Context c(p);
  std::vector<float> in;
  std::vector<std::int64_t> sign;
  for (int t = 0; t < 8; ++t)
    for (int n = 0; n < 16; ++n) in.push_back(static_cast<float>((n * 7 + t * 5) % 16) / 8 - 0.9f);
  for (int n = 0; n < 16; ++n) sign.push_back(in[static_cast<std::size_t>(n)] > 0);
  c.set("x", in).set("y", sign);
  const float first = c.run().scalar("loss");
  for (int k = 0; k < 150; ++k) c.run();
  EXPECT_GT(first, 0.5f);
  EXPECT_LT(c.scalar("loss"), 0.05f);
}

TEST(Recurrent, MistakesAreSentences) {
  Graph g;
  nn::Model<nn::LSTM<>> lstm(g, nn::LSTM<>(3, 4), "lstm");
  nn::Model<nn::RNN<>> rnn(g, nn::RNN<>(3, 4, {.batch_first = true}), "rnn");
  nn::Model<nn::GRUCell> cell(g, nn::GRUCell(3, 4), "cell");
  nn::Model<nn::LSTMCell> lstm_cell(g, nn::LSTMCell(3, 4), "lstm_cell");
  const Tensor x = g.input("x", {5, 2, 3}), h = g.input("h", {1, 2, 4}), row = g.input("row", {2, 3});
  const auto says = [](const std::string& sentence, const std::function<void()>& f) {
    expect_error(f, sentence, "recurrent_test.cpp");
  };
  const auto throws = [](const std::string& sentence, const std::function<void()>& f) {
    expect_error(f, sentence, "");
  };
  throws("LSTM: sizes 3 and 0 with 1 layers: all are at least 1", [] { nn::LSTM<>(3, 0); });
  throws("GRU: a dropout of 2 is no probability", [] { nn::GRU<>(3, 4, {.dropout = 2}); });
  throws("GRU: proj_size is 2: only an LSTM projects, to less than its hidden 4",
         [] { nn::GRU<>(3, 4, {.proj_size = 2}); });
  throws("LSTM: proj_size is 4: only an LSTM projects, to less than its hidden 4",
         [] { nn::LSTM<>(3, 4, {.proj_size = 4}); });
  throws(
      "recurrent layer: bidirectional is a template argument where the sizes are (LSTM<8, 16, true>), and with "
      "proj_size "
      "the sizes are arguments of the constructor (LSTM<>(8, 16, {...}))",
      [] { nn::LSTM<3, 4>({.bidirectional = true}); });
  throws("LSTM: its parameters were never visited: name the layer in visit(), and call it through its Model",
         [&] { nn::LSTM<>(3, 4)(x); });
  throws("GRUCell: its parameters were never visited: name the layer in visit(), and call it through its Model",
         [&] { nn::GRUCell(3, 4)(row); });
  says("LSTM: [2, 4] is neither [length, batch, 3] nor [length, 3]", [&] { lstm.module()(g.input("a", {2, 4})); });
  says("RNN: [2, 2, 4] is neither [batch, length, 3] nor [length, 3]", [&] { rnn.module()(g.input("b", {2, 2, 4})); });
  says("RNN: the initial h is [1, 2, 4] and not [1, 5, 4]", [&] { rnn.module()(x, h); });
  const Tensor lengths = g.input("lengths", {2}, DType::I32), reals = g.input("reals", {2});
  says("RNN: the lengths are i32 [2] and not integers of the batch, [5]", [&] { rnn.module()(x, {{}, {}, lengths}); });
  says("LSTM: the lengths are f32 [2] and not integers of the batch, [2]", [&] { lstm.module()(x, {{}, {}, reals}); });
  says("LSTM: lengths are those of a batch, and x has none", [&] { lstm.module()(row, {{}, {}, lengths}); });
  says("LSTM: the initial h is [2, 2, 4] and not [1, 2, 4]", [&] { lstm.module()(x, {g.input("c", {2, 2, 4}), h}); });
  says("LSTM: h and c are given together, or none of them", [&] { lstm.module()(x, h); });
  says("RNN: it has no state c", [&] { rnn.module()(x, {h, h}); });
  says(
      "LSTM: the length of [length, 2, 3] is not known when the graph is built: axis 0 is length, and has to be a "
      "number",
      [&] {
        lstm.module()(g.input("d", {Dim::symbol("length", 1, 9), 2, 3}));
      });
  says(
      "RNN: the length of [2, length, 3] is not known when the graph is built: axis 1 is length, and has to be a "
      "number",
      [&] {
        rnn.module()(g.input("batch first", {2, Dim::symbol("length", 1, 9), 3}));
      });
  says("GRUCell: [2, 5, 3] is neither [batch, 3] nor [3]", [&] { cell.module()(g.input("e", {2, 5, 3})); });
  says("GRUCell: a state is [1, 2, 4] and not [2, 4]", [&] { cell.module()(row, h); });
  says("LSTMCell: h and c are given together, or none of them", [&] {
    lstm_cell.module()(row, {g.input("f", {2, 4})});
  });
}

}  // namespace
