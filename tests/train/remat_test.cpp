// remat() keeps a training step within its memory budget and gives the same numbers.
#include "lightcone/runtime/remat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "error_of.h"
#include "lightcone/lightcone.h"
#include "lightcone/nn/attention.h"
#include "lightcone/nn/conv.h"
#include "lightcone/nn/layers.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"
#include "on_device.h"

using namespace lc;

namespace {

// Convolutions, a dropout and batch norms with running statistics as states.
struct Cnn {
  nn::Conv2d<3, 16, 3, 1, 1> c1;
  nn::Conv2d<16, 16, 3, 1, 1> c2, c3, c4;
  nn::BatchNorm2d<16> n1, n2, n3, n4;
  nn::Dropout drop{0.2};
  nn::Linear<16, 10> head;
  void visit(nn::Visitor& v) {
    v("c1", c1)("c2", c2)("c3", c3)("c4", c4)("n1", n1)("n2", n2)("n3", n3)("n4", n4)("head", head);
  }
  Tensor operator()(const Tensor& x, auto& mode) const {
    Tensor h = relu(n1(c1(x), mode));
    h = h + relu(n2(c2(h), mode));
    h = h + relu(n3(c3(h), mode));
    h = h + relu(n4(c4(h), mode));
    return head(drop(mean(h, {2, 3}), mode));
  }
};

struct Encoder {
  nn::TransformerEncoder layers{nn::TransformerEncoderLayer(64, 4, {.dim_feedforward = 256}), 8};
  nn::Linear<> head{64, 10};
  void visit(nn::Visitor& v) { v("layers", layers)("head", head); }
  Tensor operator()(const Tensor& x, auto& mode) const { return head(mean(layers(x, mode), {1})); }
};

template <class M>
struct Task {
  Graph g;
  nn::Model<M> net{g};
  explicit Task(const Shape& x) {
    const Tensor in = g.input("x", x), y = g.input("y", {x[0]}, DType::I64);
    auto loss = trace(
        net, [](auto& net, auto& x, auto& y) { return cross_entropy(net(x), y); }, in, y);
    loss.loss().retrieve("loss");
    update(net, optim::SGD{.lr = 0.05, .momentum = 0.9}, backward(std::move(loss)));
  }
};

void feed(Context& c, std::int64_t batch, std::int64_t elements) {
  std::mt19937 r(3);
  std::normal_distribution<float> n;
  std::vector<float> x(static_cast<std::size_t>(batch * elements));
  std::vector<std::int64_t> y(static_cast<std::size_t>(batch));
  for (float& v : x) v = n(r);
  for (std::int64_t& v : y) v = static_cast<std::int64_t>(r() % 10);
  c.set("x", x).set("y", y);
}

// Checks that losses are the same step by step, with the given part (a half or less) of the memory for values.
template <class M>
void fits_and_agrees(const Shape& x, double part) {
  Task<M> task(x);
  const Compiler plain = generic() | test::device();
  Trainer a(task.net, plain, {.seed = 1});
  const auto all = a.program().plan().total_bytes(), values = a.program().plan().arena_bytes;
  const auto budget = all - static_cast<std::size_t>((1 - part) * static_cast<double>(values));
  Trainer b(task.net, remat({.bytes = budget}, plain), {.seed = 1});
  EXPECT_LE(b.program().plan().total_bytes(), budget);
  EXPECT_GT(fired(b.program().log(), "value computed again"), 0);
  const std::int64_t batch = *x[0].constant(), elements = *product(x).constant() / batch;
  feed(a.context(), batch, elements), feed(b.context(), batch, elements);
  for (int k = 0; k < 5; ++k) {
    const float want = a.step();
    EXPECT_NEAR(b.step(), want, 1e-4 * std::abs(want)) << k;
  }
}

}  // namespace

TEST(Remat, CheapValuesAreComputedAgain) {
  fits_and_agrees<Cnn>({16, 3, 24, 24}, 0.85);
  fits_and_agrees<Encoder>({8, 64, 64}, 0.75);
}

TEST(Remat, SegmentsAreComputedAgain) { fits_and_agrees<Encoder>({8, 64, 64}, 0.3); }

TEST(Remat, WhatFitsIsLeftAsItIs) {
  Task<Cnn> task({4, 3, 8, 8});
  const Program p = compile(task.g, remat({.bytes = std::size_t{1} << 30}, generic() | test::device()));
  EXPECT_EQ(fired(p.log(), "value computed again"), 0);
  EXPECT_EQ(p.kernels(), compile(task.g, generic() | test::device()).kernels());
}

TEST(Remat, SaysHowLittleIsEnough) {
  Task<Cnn> task({4, 3, 8, 8});
  const std::string what = error_of([&] { compile(task.g, remat({.bytes = 1000}, generic() | test::device())); });
  EXPECT_PRED2(contains, what, "remat: the step needs ");
  EXPECT_PRED2(contains, what, "the budget is 1000");
}

TEST(Remat, TheStepIsTheReferences) {
  LIGHTCONE_CPU_ALONE();  // the peak of so small a step is elsewhere on a GPU, where nothing is gained
  Task<Encoder> task({2, 16, 64});
  const auto plan = compile(task.g, generic() | test::device()).plan();
  const Compiled again =
      transform(task.g, remat({.bytes = plan.total_bytes() - plan.arena_bytes / 16}, generic() | test::device()),
                {.observe = [](const Pass& p, const Graph&, const Graph& after) {
                  if (p.name != "remat") return;
                  const VerifyReport r = verify(after, generic() | test::device(), {.trials = 2});
                  EXPECT_TRUE(r.ok()) << r.str();
                }});
  EXPECT_GT(fired(again.log, "value computed again"), 0);
}

// Eight layers: the operands of their gradients are freed layer by layer, without more copies of states.
TEST(UpdatesEarly, GradientsAreNotKeptUntilTheEnd) {
  using Wide = nn::Sequential<nn::Linear<256, 256>, nn::Tanh, nn::Linear<256, 256>, nn::Tanh, nn::Linear<256, 256>,
                              nn::Tanh, nn::Linear<256, 256>, nn::Tanh, nn::Linear<256, 10>>;
  Task<Wide> task({512, 256});
  const auto step = [&](std::vector<std::string> skipped) {
    Trainer t(task.net, generic() | test::device(), {.seed = 1, .compile = {.skip = std::move(skipped)}});
    feed(t.context(), 512, 256);
    t.step(), t.step();
    return std::tuple(t.program().plan().arena_bytes, t.program().plan().copies.size(), t.step());
  };
  const auto [early, copies, loss] = step({});
  const auto [late, copies_late, loss_late] = step({"schedule-state-updates"});
  EXPECT_LT(early, late * 9 / 10);
  EXPECT_EQ(copies, copies_late);
  EXPECT_EQ(loss, loss_late);
}
