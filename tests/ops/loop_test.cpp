// scan() computes and differentiates as jax.lax.scan does.
#include <gtest/gtest.h>
#include <cmath>

#include "differences.h"
#include "error_of.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/ops/loop.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"
#include "on_device.h"

using namespace lc;

namespace {

using Tensors = std::vector<Tensor>;

Value numbers(std::vector<std::int64_t> shape, std::vector<double> v, DType type = DType::F32) {
  Value x = make_value(type, std::move(shape));
  x.f = std::move(v);
  return x;
}

// s = a s + b and y = s + a, with two slices a and b per step.
Scanned linear_recurrence(const Tensors& s, const Tensors& x) {
  const Tensor next = x[0] * s[0] + x[1];
  return {.state = {next}, .ys = {next + x[0], s[0]}};
}

TEST(Scan, GoesFromStepToStep) {
  Graph g;
  const Tensor a = g.input("a", {3, 2}), b = g.input("b", {3, 2}), s = g.input("s", {2});
  const Scanned forward = scan(linear_recurrence, {s}, {a, b}),
                backward = scan(linear_recurrence, {s}, {a, b}, {.reverse = true});
  forward.state[0].retrieve("s forward"), backward.state[0].retrieve("s backward");
  for (int k = 0; k < 2; ++k) forward.ys[static_cast<std::size_t>(k)].retrieve(str_cat("forward ", k));
  for (int k = 0; k < 2; ++k) backward.ys[static_cast<std::size_t>(k)].retrieve(str_cat("backward ", k));
  const Inputs in = {{"a", numbers({3, 2}, {1, 2, 3, 4, 5, 6})},
                     {"b", numbers({3, 2}, {1, 0, 0, 1, 2, 2})},
                     {"s", numbers({2}, {1, -1})}};
  const auto expect = [](const std::map<std::string, Value>& r) {
    // states forward: (2, -2), (6, -7), (32, -40); backward: (7, -4), (21, -15), (22, -30)
    using V = std::vector<double>;
    EXPECT_EQ(r.at("s forward").f, (V{32, -40}));
    EXPECT_EQ(r.at("forward 0").f, (V{3, 0, 9, -3, 37, -34}));
    EXPECT_EQ(r.at("forward 1").f, (V{1, -1, 2, -2, 6, -7}));
    EXPECT_EQ(r.at("s backward").f, (V{22, -30}));
    EXPECT_EQ(r.at("backward 0").f, (V{23, -28, 24, -11, 12, 2}));
    EXPECT_EQ(r.at("backward 1").f, (V{21, -15, 7, -4, 1, -1}));
  };
  expect(interpret(g, in).outputs);
  expect(run_values(transform(g, generic() | test::device()).graph, in, {}).outputs);
}

TEST(Scan, StatesMayDifferInShapeAndType) {
  Graph g;
  const Tensor x = g.input("x", {4, 3});
  const Scanned r = scan(
      [](const Tensors& s, const Tensors& x) {
        return Scanned{{s[0] + 1, maximum(s[1], x[0])}, {sum(x[0])}};
      },
      {full(g, {}, 0, DType::I64), full(g, {3}, -kInf)}, {x});
  EXPECT_EQ(r.state[0].dtype(), DType::I64);
  EXPECT_EQ(r.ys[0].shape(), Shape{4});
  r.state[0].retrieve("count"), r.state[1].retrieve("largest"), r.ys[0].retrieve("sums");
  const auto out = interpret(g, {{"x", numbers({4, 3}, {1, 2, 3, 0, 5, 0, -1, -1, -1, 2, 2, 2})}}).outputs;
  EXPECT_EQ(out.at("count").i, std::vector<std::int64_t>{4});
  EXPECT_EQ(out.at("largest").f, (std::vector<double>{2, 5, 3}));
  EXPECT_EQ(out.at("sums").f, (std::vector<double>{6, 5, -3, 6}));
}

TEST(Scan, WithoutXsOrWithoutSteps) {
  Graph g;
  const Tensor s = g.input("s", {2});
  const auto twice = [](const Tensors& s, const Tensors&) { return Scanned{{s[0] * 2.0}, {s[0]}}; };
  const Scanned r = scan(twice, {s}, {}, {.length = 5});
  r.state[0].retrieve("power");
  EXPECT_EQ(r.ys[0].shape(), (Shape{5, 2}));
  const Scanned none = scan(twice, {s}, {}, {.length = 0});
  EXPECT_EQ(none.ys[0].shape(), (Shape{0, 2}));
  none.state[0].retrieve("same"), none.ys[0].retrieve("nothing");
  const Scanned empty = scan(linear_recurrence, {s}, {g.input("a", {0, 2}), g.input("b", {0, 2})});
  EXPECT_EQ(empty.ys[1].shape(), (Shape{0, 2}));
  const auto out = interpret(g, {{"s", numbers({2}, {3, -1})}}).outputs;
  EXPECT_EQ(out.at("power").f, (std::vector<double>{96, -32}));
  EXPECT_EQ(out.at("same").f, (std::vector<double>{3, -1}));
  EXPECT_EQ(out.at("nothing").size(), 0u);
}

TEST(Scan, DerivativesGoThroughIt) {
  for (const bool reverse : {false, true}) {
    Graph g;
    const Tensor a = g.input("a", {3, 2}, DType::F64), b = g.input("b", {3, 2}, DType::F64),
                 s = g.input("s", {2}, DType::F64), outside = g.input("outside", {2}, DType::F64);
    const Scanned r = scan(
        [&](const Tensors& s, const Tensors& x) {
          const Tensor next = tanh(x[0] * s[0] + x[1] * outside);
          return Scanned{{next}, {next * x[0]}};
        },
        {s}, {a, b}, {.reverse = reverse});
    check_gradients(g, concat({flatten(r.ys[0]), r.state[0]}, 0),
                    {{"a", numbers({3, 2}, {.3, -.2, .5, 1, -.7, .4}, DType::F64)},
                     {"b", numbers({3, 2}, {.1, .9, -.4, .2, .6, -1}, DType::F64)},
                     {"s", numbers({2}, {.8, -.3}, DType::F64)},
                     {"outside", numbers({2}, {1.2, -.6}, DType::F64)}},
                    reverse ? "reverse" : "forward", 2);
  }
}

// An LSTM written by hand. Its weights are captured from outside the step.
Scanned lstm(Graph& g, std::int64_t steps, std::int64_t batch, std::int64_t width) {
  const Tensor x = g.input("x", {steps, batch, 4 * width}), w = g.parameter("w", {4 * width, width}, DType::F32);
  const Tensor h = g.input("h", {batch, width}), c = g.input("c", {batch, width});
  return scan(
      [&](const Tensors& s, const Tensors& x) {
        const std::vector<Tensor> a = chunk(x[0] + linear(s[0], w), 4, -1);
        const Tensor next = sigmoid(a[1]) * s[1] + sigmoid(a[0]) * tanh(a[2]), out = sigmoid(a[3]) * tanh(next);
        return Scanned{{out, next}, {out}};
      },
      {h, c}, {x});
}

TEST(Scan, IsOneKernelAndTheReferences) {
  for (const bool backward : {false, true}) {
    Graph g;
    const Scanned r = lstm(g, 7, 3, 24);
    r.state[1].retrieve("c_n"), r.ys[0].retrieve("y");
    if (backward) {
      const Tensor loss = sum(square(r.ys[0])) + sum(r.state[1]);
      std::vector<Tensor> wrt;
      for (NodeId id = 0; id < g.size(); ++id)
        if (g[id].op == Op::Input) wrt.emplace_back(g, Edge{id, View(g[id].shape)});
      for (const Tensor& d : gradients(loss, wrt)) d.retrieve();
    }
    const Program p = compile(g, generic() | test::device({.threads = 2}));
    EXPECT_EQ(fired(p.log(), "loop compiled"), backward ? 2 : 1);
    EXPECT_EQ(p.interpreted(), 0u);
    EXPECT_TRUE(backward || p.kernels() == 1) << p.kernels();
    const VerifyReport v = verify(g, generic() | test::device({.threads = 2}));
    EXPECT_TRUE(v.ok()) << v.str();
    EXPECT_GT(v.decided(), 0.9) << v.str();
  }
}

TEST(Scan, ThreadsChangeNoBit) {
  Graph g;
  const Scanned r = lstm(g, 9, 5, 64);
  r.ys[0].retrieve("y");
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    const Inputs in = random_inputs(g, {}, 3, false);
    const auto y =
        run_values(transform(g, generic() | test::device({.threads = threads})).graph, in, {}).outputs.at("y");
    const std::vector<float> now(y.f.begin(), y.f.end());
    if (first.empty()) first = now;
    EXPECT_EQ(now, first) << threads;
  }
}

// States that exchange values, a y that is a state, a state that no step changes, a loop within a loop.
TEST(Scan, OddBodiesAreCompiledToo) {
  Graph g;
  const Tensor a = g.input("a", {3}), b = g.input("b", {3}), x = g.input("x", {4, 3}), w = g.input("w", {5, 3});
  const Scanned r = scan(
      [&](const Tensors& s, const Tensors& x) {
        const Scanned inner = scan(
            [&](const Tensors& t, const Tensors& row) {
              return Scanned{{t[0] * 0.5 + row[0] * x[0]}, {}};
            },
            {s[0]}, {w});
        return Scanned{{s[1], inner.state[0], s[2]}, {s[0], x[0].flip(0), s[2] + 1.0}};
      },
      {a, b, a * 2.0}, {x}, {.reverse = true});
  for (std::size_t k = 0; k < 3; ++k) r.state[k].retrieve(str_cat("s", k)), r.ys[k].retrieve(str_cat("y", k));
  const VerifyReport v = verify(g, generic() | test::device());
  EXPECT_TRUE(v.ok()) << v.str();
  EXPECT_EQ(compile(g, generic() | test::device()).interpreted(), 0u);
}

TEST(Scan, UnknownSizesAreUnrolled) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 8);
  const Tensor x = g.input("x", {3, n}), s = g.input("s", {n});
  scan([](const Tensors& s, const Tensors& x) { return Scanned{{s[0] * x[0]}, {}}; }, {s}, {x}).state[0].retrieve("y");
  const VerifyReport v = verify(g, generic() | test::device());
  EXPECT_TRUE(v.ok()) << v.str();
}

// Compiling four hundred steps takes no longer than four.
TEST(Scan, CompilingDoesNotGrowWithTheSteps) {
  Graph g;
  const Scanned r = lstm(g, 400, 4, 32);
  const Tensor loss = sum(r.ys[0]);
  loss.retrieve("loss");
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && g[id].name == "w") gradient(loss, Tensor(g, {id, View(g[id].shape)})).retrieve("dw");
  EXPECT_LT(g.size(), 500u);
  EXPECT_LT(compile(g, generic() | test::device()).kernels(), 12u);
}

TEST(Scan, MistakesAreSentences) {
  Graph g;
  const Tensor x = g.input("x", {3, 2}), longer = g.input("longer", {4, 2}), s = g.input("s", {2});
  const auto n = g.input("n", {Dim::symbol("n", 1, 8), 2});
  const auto says = [&](const std::function<void()>& f, const std::string& sentence) {
    expect_error(f, "scan: " + sentence, "loop_test.cpp");
  };
  const auto body = [](const Tensors& s, const Tensors& x) { return Scanned{{s[0] + x[0]}, {}}; };
  says([&] { scan(body, {s}, {x, longer}); }, "xs differ in their length: [3, 2] and [4, 2]");
  says([&] { scan(body, {s}, {x}, {.length = 4}); }, "the length is 4, and axis 0 of [3, 2] is 3");
  says([&] { scan(body, {s}, {n}); },
       "the length of [n, 2] is not known when the graph is built: axis 0 is n, and has to be a number");
  says([&] { scan(body, {s}, {}); }, "without xs it needs a length: ScanOptions{.length = n}");
  says([&] { scan(body, {s}, {}, {.length = -1}); }, "a length of -1");
  says([&] { scan(body, {s}, {full(g, {}, 1)}); }, "xs have an axis of steps, axis 0: a scalar has none");
  says(
      [&] {
        scan([](const Tensors& s, const Tensors& x) { return Scanned{{sum(s[0] + x[0])}, {}}; }, {s}, {x});
      },
      "state 0 is f32 [2], and the function makes it f32 []: a state keeps its shape and its dtype");
  says(
      [&] {
        scan([](const Tensors& s, const Tensors&) { return Scanned{{to(s[0], DType::F16)}, {}}; }, {s}, {x});
      },
      "state 0 is f32 [2], and the function makes it f16 [2]: a state keeps its shape and its dtype");
  says([&] { scan([](const Tensors&, const Tensors&) { return Scanned{}; }, {s}, {x}); },
       "there are 1 states, and the function gives 0");
  says(
      [&] {
        scan([](const Tensors&, const Tensors&) { return Scanned{{Tensor()}, {}}; }, {s}, {x});
      },
      "the function gives no state 0");
  says(
      [&] {
        scan([](const Tensors& s, const Tensors&) { return Scanned{s, {Tensor()}}; }, {s}, {x});
      },
      "the function gives no y 0");
}

// Newton's method for the square root, with a data-dependent number of steps. Its derivative is that of the result.
Tensor root(const Tensor& a, std::int64_t max_steps) {
  return while_loop([&](const Tensors& s) { return lc::max(abs(s[0] * s[0] - a)) > 1e-4; },
                    [&](const Tensors& s) {
                      return Tensors{0.5 * (s[0] + a / s[0]), s[1] + 1};
                    },
                    {a, full(a, {}, 0, DType::I64)}, max_steps)[0];
}

TEST(WhileLoop, StopsWhenItsConditionFails) {
  Graph g;
  const Tensor a = g.input("a", {3});
  const auto both = while_loop([&](const Tensors& s) { return lc::max(abs(s[0] * s[0] - a)) > 1e-4; },
                               [&](const Tensors& s) {
                                 return Tensors{0.5 * (s[0] + a / s[0]), s[1] + 1};
                               },
                               {a, full(a, {}, 0, DType::I64)}, 1000);
  both[0].retrieve("root"), both[1].retrieve("steps");
  const auto same = while_loop([](const Tensors& s) { return s[0] < 10; },
                               [](const Tensors& s) { return Tensors{s[0] + 3}; }, {full(a, {}, 11, DType::I32)}, 5);
  same[0].retrieve("never");
  const auto cut = while_loop([](const Tensors& s) { return s[0] < 10; },
                              [](const Tensors& s) { return Tensors{s[0] + 3}; }, {full(a, {}, 0, DType::I32)}, 2);
  cut[0].retrieve("cut");
  const Inputs in = {{"a", numbers({3}, {4, 2, 9})}};
  for (const auto& r :
       {interpret(g, in).outputs, run_values(transform(g, generic() | test::device()).graph, in, {}).outputs}) {
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(r.at("root").f[k], std::sqrt(in.at("a").f[k]), 1e-4);
    EXPECT_EQ(r.at("steps").i[0], 5);
    EXPECT_EQ(r.at("never").i[0], 11);
    EXPECT_EQ(r.at("cut").i[0], 6);
  }
}

TEST(WhileLoop, HasADerivative) {
  Graph g;
  const Tensor a = g.input("a", {3});
  gradients(sum(root(a, 12)), {a})[0].retrieve("d");
  const Inputs in = {{"a", numbers({3}, {4, 2, 9})}};
  for (const auto& r :
       {interpret(g, in).outputs, run_values(transform(g, generic() | test::device()).graph, in, {}).outputs})
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(r.at("d").f[k], 0.5 / std::sqrt(in.at("a").f[k]), 1e-3);
}

// The loop ends after the first step that changes nothing. The ys and stored states still have all steps.
TEST(Scan, WithoutSlicesEndsWhereItSettles) {
  for (const bool reverse : {false, true}) {
    Graph g;
    const Tensor a = g.input("a", {2});
    const Scanned r = scan(
        [](const Tensors& s, const Tensors&) {
          const Tensor next = minimum(s[0] + 1, full_like(s[0], 3));
          return Scanned{.state = {next}, .ys = {next * 2}};
        },
        {a}, {}, {.reverse = reverse, .length = 50});
    r.ys[0].retrieve("ys"), r.state[0].retrieve("last");
    gradients(sum(r.ys[0]), {a})[0].retrieve("d");
    const Inputs in = {{"a", numbers({2}, {0.5, -3})}};
    const auto want = interpret(g, in).outputs,
               got = run_values(transform(g, generic() | test::device()).graph, in, {}).outputs;
    for (const char* name : {"ys", "last", "d"}) EXPECT_EQ(want.at(name).f, got.at(name).f) << name;
  }
}

// A billion steps are allowed and five needed: without the early end this would take minutes.
TEST(WhileLoop, RunsNoMoreStepsThanItNeeds) {
  Graph g;
  root(g.input("a", {3}), 1'000'000'000).retrieve("root");
  Context run(compile(g, generic() | test::device({.threads = 1})));
  run.set("a", std::vector<float>{4, 2, 9}).run();
  EXPECT_NEAR(run.get("root")[2], 3, 1e-4);
}

TEST(WhileLoop, SaysWhatIsWrong) {
  Graph g;
  const Tensor a = g.input("a", {2});
  const auto says = [&](const std::function<void()>& f, const std::string& what) {
    EXPECT_PRED2(contains, error_of(f), what);
  };
  const auto same = [](const Tensors& s) { return s; };
  says([&] { while_loop([&](const Tensors& s) { return s[0] > 1; }, same, {a}, 3); },
       "while_loop: the condition is bool [2], not a bool []");
  says([&] { while_loop([&](const Tensors& s) { return sum(s[0]); }, same, {a}, 3); }, "the condition is f32 []");
  says([&] { while_loop([&](const Tensors& s) { return sum(s[0]) > 0; }, same, {}, 3); },
       "while_loop: there is no state");
  says([&] { while_loop([&](const Tensors& s) { return sum(s[0]) > 0; }, same, {a}, -1); }, "at most -1 steps");
}

}  // namespace
