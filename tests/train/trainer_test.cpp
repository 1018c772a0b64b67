// Training repeats its bits and resumes them, averages parameters, and reports a NaN loss.
//
// resume_test.cpp has what can happen to a checkpoint.
#include "lightcone/train/trainer.h"

#include <gtest/gtest.h>

#include "data.h"
#include "error_of.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/checkpoints/weights.h"
#include "on_device.h"
#include "small_training.h"

using namespace lc;

namespace {

using test::Mlp;
using Training = test::SmallTraining;

TEST(Trainer, LearnsAndRepeats) {
  Training a, b;
  const std::vector<float> losses = a.run(200);
  EXPECT_LT(losses.back(), losses.front() / 3);
  EXPECT_EQ(losses, b.run(200));
  EXPECT_EQ(a.weights(), b.weights());
  EXPECT_EQ(a.trainer->steps(), 200);
}

TEST(Trainer, ResumesBitForBit) {
  const TempDir folder;
  Training a;
  a.run(7);
  a.trainer->save(folder / "run.safetensors", {{"epoch", "3"}});
  const std::vector<float> rest = a.run(9);
  Training b(99);  // other initial values, which the file replaces
  b.run(2);
  EXPECT_EQ(b.trainer->load(folder / "run.safetensors").at("epoch"), "3");
  EXPECT_EQ(b.trainer->steps(), 7);
  EXPECT_EQ(b.run(9), rest);
  EXPECT_EQ(a.weights(), b.weights());
}

TEST(Trainer, ParametersMoveToAnotherProgram) {
  const TempDir folder;
  Training a;
  a.run(5);
  a.trainer->save_parameters(folder / "model.safetensors", {{"classes", "cat, dog"}});
  EXPECT_EQ(Weights::open(folder / "model.safetensors").metadata().at("classes"), "cat, dog");
  Graph g;
  nn::Model<Mlp> net(g);
  net(typed::input<float, 1, 4>(g, "x")).retrieve("y");
  Program p = compile(g, generic() | test::device());
  a.trainer->copy_to(p);
  Context c(p);
  const std::vector<float> y = c.set("x", std::vector<float>{1, 2, 3, 4}).run().get("y");
  Training b(42);
  b.trainer->load_parameters(folder / "model.safetensors");
  EXPECT_EQ(a.weights(), b.weights());
  EXPECT_EQ(y.size(), 3u);
  EXPECT_PRED2(contains, error_of([&] { b.trainer->load(folder / "model.safetensors"); }), "has no '0.bias.exp_avg'");
}

TEST(Trainer, AveragesCanBeEvaluated) {
  Graph g;
  nn::Model<nn::Linear<2, 1>> net(g);
  const Tensor x = g.input("x", {3, 2});
  auto loss = trace(
      net, [](auto& net, const Tensor& x) { return sum(square(net(x))); }, x);
  loss.loss().retrieve("loss");
  optim::ema(update(net, optim::SGD{.lr = 0.01}, backward(std::move(loss))), 0.5);
  Trainer t(net, generic() | test::device());
  t.context().set("x", std::vector<float>{1, 2, 3, 4, 5, 6});
  for (int k = 0; k < 3; ++k) t.step();
  Graph other;
  nn::Model<nn::Linear<2, 1>> evaluated(other);
  evaluated(other.input("x", {1, 2})).retrieve("y");
  Program p = compile(other, generic() | test::device());
  t.copy_to(p, ".ema");
  Context c(p);
  const std::vector<float> w = t.context().get("weight.ema"), b = t.context().get("bias.ema");
  EXPECT_NE(w, t.context().get("weight"));
  EXPECT_NEAR(c.set("x", std::vector<float>{1, 10}).run().get("y")[0], w[0] + 10 * w[1] + b[0], 1e-6);
  EXPECT_PRED2(contains, error_of([&] { t.copy_to(p, ".swa"); }), "no parameter has a state '<parameter>.swa'");
}

// Calls that would silently train nothing, or something else, are refused.
TEST(Trainer, WhatCannotBeMeantIsRefused) {
  Graph g;
  nn::Model<nn::Linear<2, 1>> net(g);
  const Tensor x = g.input("x", {3, 2});
  EXPECT_PRED2(contains, error_of([&] {
                 (void)trace(
                     net, [&](auto&, const Tensor& x) { return sum(net(x)); }, x);
               }),
               "trace: the function calls the model itself, which is inference: call its first argument");
  EXPECT_EQ(net(x).shape().size(), 2u);  // the model is unchanged after the error
  auto loss = trace(
      net, [](auto& net, const Tensor& x) { return sum(square(net(x))); }, x);
  loss.loss().retrieve("loss");
  EXPECT_PRED2(contains, error_of([&] { Trainer(net, generic() | test::device()); }),
               "no step would change a parameter: update(");
  update(net, optim::SGD{.lr = 0.01}, backward(std::move(loss)));
  EXPECT_NO_THROW(Trainer(net, generic() | test::device()));
  Context bare(compile(g, generic() | test::device()));
  bare.set("x", std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_PRED2(contains, error_of([&] { bare.run(); }), "run: the parameter 'weight' has no value: a Trainer gives it");
}

// Files of another model or optimizer are refused. The error names what the model lacks, and how to leave it out.
TEST(Trainer, FilesOfOthersAreRefused) {
  const TempDir folder;
  const auto linear = [](const optim::Optimizer& o) {
    auto g = std::make_unique<Graph>();
    auto net = std::make_unique<nn::Model<nn::Linear<2, 1>>>(*g);
    auto loss = trace(
        *net, [](auto& net, const Tensor& x) { return sum(square(net(x))); }, g->input("x", {3, 2}));
    loss.loss().retrieve("loss");
    update(*net, o, backward(std::move(loss)));
    Trainer t(*net, generic() | test::device());
    return std::tuple(std::move(g), std::move(net), std::move(t));
  };
  auto adam = linear(optim::AdamW{}), sgd = linear(optim::SGD{.lr = 0.1});
  std::get<2>(adam).save(folder / "adam.safetensors");
  EXPECT_PRED2(contains, error_of([&] { std::get<2>(sgd).load(folder / "adam.safetensors"); }),
               "which this run has not: it is of another model or optimizer");
  const std::vector<float> values{1, 2};
  const auto of = [&](const char* name, std::vector<std::int64_t> shape) {
    return TensorToSave{name, DType::F32, shape, std::as_bytes(std::span(values).first(shape.size()))};
  };
  std::vector<TensorToSave> file{of("weight", {1, 2}), of("bias", {1}), of("head.weight", {1, 2})};
  save_safetensors(folder / "more.safetensors", file);
  EXPECT_PRED2(contains, error_of([&] { std::get<2>(sgd).load_parameters(folder / "more.safetensors"); }),
               "holds 'head.weight', which the model has not: name it in `except`");
  std::get<2>(sgd).load_parameters(folder / "more.safetensors", {"head"});
  EXPECT_EQ(std::get<2>(sgd).values("weight")[1], 2);
}

TEST(Trainer, ALossThatIsNoNumberIsAnError) {
  Training a;
  std::vector<float> x(32, 0);
  x[5] = std::numeric_limits<float>::quiet_NaN();
  a.trainer->context().set("x", x);
  EXPECT_PRED2(contains, error_of([&] { a.trainer->step(); }),
               "the loss of step 0 is nan; with TrainerOptions::checked");
  Training checked(1, true);
  checked.trainer->context().set("x", x);
  EXPECT_PRED2(contains, error_of([&] { checked.trainer->step(); }), "NaN");
}

}  // namespace
