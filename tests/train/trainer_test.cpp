// Training steps, what is saved of them, and what a file or a kill can do to them.
#include "lightcone/train/trainer.h"

#include <csignal>
#include <random>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data.h"
#include "error_of.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/nn/layers.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"

using namespace lc;

namespace {

using Mlp = nn::Sequential<nn::Linear<4, 16>, nn::Tanh, nn::Dropout, nn::Linear<16, 3>>;

struct Training {
  Graph g;
  nn::Model<Mlp> net{g};
  std::optional<Trainer> trainer;

  explicit Training(std::int64_t seed = 1, bool checked = false) {
    const auto x = typed::input<float, 8, 4>(g, "x");
    const auto y = typed::input<std::int64_t, 8>(g, "y");
    auto loss = trace(net, [](auto& net, auto x, auto y) { return cross_entropy(net(x), y); }, x, y);
    loss.loss().retrieve("loss");
    auto d = backward(std::move(loss));
    d.clip_norm(1);
    update(net, optim::AdamW{.lr = 0.02}, std::move(d));
    trainer.emplace(net, generic() | cpu({.threads = 1}), TrainerOptions{.seed = seed, .checked = checked});
    std::vector<float> points;
    std::vector<std::int64_t> classes;
    std::mt19937 random(5);
    for (int k = 0; k < 32; ++k) points.push_back(static_cast<float>(random() % 1000) / 500 - 1);
    for (int k = 0; k < 8; ++k) classes.push_back(points[static_cast<std::size_t>(4 * k)] > 0 ? k % 2 : 2);
    trainer->context().set("x", points).set("y", classes);
  }
  std::vector<float> run(int steps) {
    std::vector<float> losses;
    for (int k = 0; k < steps; ++k) losses.push_back(trainer->step());
    return losses;
  }
  std::vector<float> weights() { return trainer->context().get("3.weight"); }
};

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
  Training b(99);  // other first values, which the file replaces
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
  a.trainer->save_parameters(folder / "model.safetensors");
  Graph g;
  nn::Model<Mlp> net(g);
  net(typed::input<float, 1, 4>(g, "x")).retrieve("y");
  Program p = compile(g, generic() | cpu());
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
  auto loss = trace(net, [](auto& net, const Tensor& x) { return sum(square(net(x))); }, x);
  loss.loss().retrieve("loss");
  optim::ema(update(net, optim::SGD{.lr = 0.01}, backward(std::move(loss))), 0.5);
  Trainer t(net, generic() | cpu());
  t.context().set("x", std::vector<float>{1, 2, 3, 4, 5, 6});
  for (int k = 0; k < 3; ++k) t.step();
  Graph other;
  nn::Model<nn::Linear<2, 1>> evaluated(other);
  evaluated(other.input("x", {1, 2})).retrieve("y");
  Program p = compile(other, generic() | cpu());
  t.copy_to(p, ".ema");
  Context c(p);
  const std::vector<float> w = t.context().get("weight.ema"), b = t.context().get("bias.ema");
  EXPECT_NE(w, t.context().get("weight"));
  EXPECT_NEAR(c.set("x", std::vector<float>{1, 10}).run().get("y")[0], w[0] + 10 * w[1] + b[0], 1e-6);
  EXPECT_PRED2(contains, error_of([&] { t.copy_to(p, ".swa"); }), "no parameter has a state '<parameter>.swa'");
}

TEST(Trainer, AWrongFileChangesNothing) {
  const TempDir folder;
  Training a;
  a.run(3);
  const std::string good = folder / "good.safetensors";
  a.trainer->save(good);
  const std::vector<float> before = a.weights();
  const std::string bytes = slurp(good);
  spit(folder / "short.safetensors", bytes.substr(0, bytes.size() - 5));
  EXPECT_NE(error_of([&] { a.trainer->load(folder / "short.safetensors"); }), "no error");
  Graph g;
  nn::Model<nn::Sequential<nn::Linear<4, 5>, nn::Linear<5, 3>>> small(g);
  const Tensor x = g.input("x", {1, 4});
  auto loss = trace(small, [](auto& net, const Tensor& x) { return sum(net(x)); }, x);
  loss.loss().retrieve("loss");
  update(small, optim::AdamW{}, backward(std::move(loss)));
  Trainer other(small, generic() | cpu());
  other.save(folder / "other.safetensors");
  EXPECT_PRED2(contains, error_of([&] { a.trainer->load(folder / "other.safetensors"); }),
               "'0.bias' is F32 [5] in");
  EXPECT_NE(error_of([&] { a.trainer->save(folder / "no such folder/run.safetensors"); }), "no error");
  EXPECT_EQ(a.weights(), before);
}

TEST(Trainer, ALossThatIsNoNumberIsAnError) {
  Training a;
  std::vector<float> x(32, 0);
  x[5] = std::numeric_limits<float>::quiet_NaN();
  a.trainer->context().set("x", x);
  EXPECT_PRED2(contains, error_of([&] { a.trainer->step(); }), "the loss of step 0 is nan; with TrainerOptions::checked");
  Training checked(1, true);
  checked.trainer->context().set("x", x);
  EXPECT_PRED2(contains, error_of([&] { checked.trainer->step(); }), "NaN");
}

// A process that saves again and again is killed at any time: there is always a whole checkpoint, and it resumes.
TEST(Trainer, SurvivesKills) {
  const TempDir folder;
  const std::string path = folder / "run.safetensors";
  Training expected;
  std::vector<std::vector<float>> weights_after{expected.weights()};
  for (int k = 0; k < 400; ++k) expected.run(1), weights_after.push_back(expected.weights());
  std::mt19937 random(3);
  std::int64_t reached = 0;
  for (int round = 0; round < 40; ++round) {
    Training t;
    if (std::filesystem::exists(path)) t.trainer->load(path);
    ASSERT_GE(t.trainer->steps(), reached);
    reached = t.trainer->steps();
    ASSERT_LE(reached, 400);
    ASSERT_EQ(t.weights(), weights_after[static_cast<std::size_t>(reached)]) << "after " << reached << " steps";
    if (reached > 350) break;
    const pid_t child = fork();
    if (child == 0) {
      for (int k = 0; k < 20; ++k) t.trainer->step(), t.trainer->save(path);
      _exit(0);
    }
    usleep(static_cast<useconds_t>(random() % 20000));
    kill(child, SIGKILL);
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  EXPECT_GT(reached, 5);
}

}  // namespace
