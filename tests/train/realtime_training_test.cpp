// A training step on one thread allocates nothing, takes no lock and makes no system call, reading the loss included.
//
// tests/runtime/realtime_test.cpp has the same for inference.
#include <gtest/gtest.h>

#include "counted_calls.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/nn/layers.h"
#include "lightcone/optim/schedule.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"
#include "syscalls.h"

using namespace lc;
using test::allocations, test::locks;

namespace {

using Mlp = nn::Sequential<nn::Linear<>, nn::GELU, nn::Dropout, nn::Linear<>>;
using ConvNet = nn::Sequential<nn::Conv2d<>, nn::BatchNorm2d<>, nn::ReLU, nn::MaxPool2d<2>, nn::Conv2d<>, nn::ReLU,
                               nn::Flatten, nn::Linear<>>;

// Maps tokens [n, 12] to logits of the 20 possible next tokens.
struct Transformer {
  nn::Embedding<> tokens{20, 16};
  nn::TransformerEncoder encoder{nn::TransformerEncoderLayer(16, 2, {.dim_feedforward = 32, .causal = true}), 2};
  nn::Linear<> out{16, 20};
  void visit(nn::Visitor& v) { v("tokens", tokens)("encoder", encoder)("out", out); }
  Tensor operator()(const Tensor& x, auto& mode) const {
    return out(encoder(tokens(x), mode)).reshape({x.extent(0) * 12, 20});
  }
};

// A trainer with a fixed batch that it repeats.
struct Trained {
  virtual ~Trained() = default;
  std::optional<Trainer> trainer;
  std::vector<float> x;
  std::vector<std::int64_t> tokens, y;

  void run(int times) {
    for (int k = 0; k < times; ++k) {
      Context& c = trainer->context();
      if (tokens.empty()) c.set("x", x);
      else c.set("x", tokens);
      c.set("y", y);
      trainer->step();
    }
  }
};

template <class Net>
struct Of : Trained {
  Graph g;
  nn::Model<Net> net;
  Of(Net n, const Shape& in, DType dtype, std::int64_t classes, const optim::Optimizer& optimizer, int threads)
      : net(g, std::move(n)) {
    const Tensor input = g.input("x", in, dtype), target = g.input("y", {classes}, DType::I64);
    auto loss = trace(
        net, [](auto& net, const Tensor& x, const Tensor& y) { return cross_entropy(net(x), y); }, input, target);
    loss.loss().retrieve("loss");
    auto d = backward(std::move(loss));
    d.clip_norm(1);
    const Tensor done = optim::counter(g);
    const auto rate = optim::warm_up(optim::cosine_annealing(1e-3, 100), 10);
    optim::ema(update(net, optimizer, std::move(d), {.lr = rate(done), .step = done}), 0.99);
    trainer.emplace(net, generic() | cpu({.threads = threads}));
    std::int64_t elements = 1;
    for (const Dim& d : in) elements *= *d.constant();
    for (std::int64_t k = 0; k < elements; ++k)
      if (dtype == DType::I64) tokens.push_back(7 * k % 20);
      else x.push_back(static_cast<float>(7 * k % 31) / 16 - 1);
    for (std::int64_t k = 0; k < classes; ++k) y.push_back(k % 3);
  }
};

std::unique_ptr<Trained> mlp(int threads) {
  return std::make_unique<Of<Mlp>>(Mlp(nn::Linear<>(20, 64), {}, {}, nn::Linear<>(64, 3)), Shape{32, 20}, DType::F32,
                                   32, optim::AdamW{}, threads);
}
std::unique_ptr<Trained> conv_net(int threads) {
  ConvNet net(nn::Conv2d<>(3, 8, 3, {.padding = {1}}), nn::BatchNorm2d<>(8), {}, {},
              nn::Conv2d<>(8, 16, 3, {.stride = {2}}), {}, {}, nn::Linear<>(16 * 3 * 3, 3));
  return std::make_unique<Of<ConvNet>>(std::move(net), Shape{8, 3, 16, 16}, DType::F32, 8,
                                       optim::SGD{.momentum = 0.9, .weight_decay = 1e-4, .nesterov = true}, threads);
}
std::unique_ptr<Trained> transformer(int threads) {
  return std::make_unique<Of<Transformer>>(Transformer(), Shape{4, 12}, DType::I64, 48, optim::AdamW{}, threads);
}

struct Case {
  const char* name;
  std::unique_ptr<Trained> (*make)(int threads);
  friend void PrintTo(const Case& c, std::ostream* to) { *to << c.name; }
};
class RealTimeTraining : public ::testing::TestWithParam<Case> {};

}  // namespace

TEST_P(RealTimeTraining, OneThreadAllocatesNothingAndLocksNothing) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer has malloc already";
  const auto trained = GetParam().make(1);
  trained->run(1);
  const long allocated = allocations(), locked = locks();
  trained->run(20);
  EXPECT_EQ(allocations() - allocated, 0);
  EXPECT_EQ(locks() - locked, 0);
  EXPECT_EQ(trained->trainer->program().interpreted(), 0u);
}

TEST_P(RealTimeTraining, TwoThreadsAllocateNothing) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer has malloc already";
  const auto trained = GetParam().make(2);
  trained->run(1);
  const long before = allocations();
  trained->run(20);
  EXPECT_EQ(allocations() - before, 0);
}

TEST_P(RealTimeTraining, OneThreadCallsTheSystemForNothing) {
  const auto ready = [] {
    auto trained = GetParam().make(1);
    trained->run(1);
    return trained;
  };
  const SystemCalls found = count_system_calls(ready, [](Trained& t) { t.run(20); });
  if (!found.possible) GTEST_SKIP() << found.text;
  EXPECT_TRUE(found.caller.empty()) << found.text;
  EXPECT_TRUE(found.others.empty()) << found.text;
}

INSTANTIATE_TEST_SUITE_P(Of, RealTimeTraining,
                         ::testing::Values(Case{"Mlp", mlp}, Case{"ConvNet", conv_net},
                                           Case{"Transformer", transformer}),
                         [](const auto& info) { return info.param.name; });
