// checkpoint() gives the same gradients, from values that are recomputed instead of kept.
#include "lightcone/autograd/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lightcone/autograd/autograd.h"
#include "lightcone/lightcone.h"
#include "lightcone/ops/random.h"
#include "on_device.h"

using namespace lc;

namespace {

constexpr int kLayers = 6, kWidth = 32;

// Residual blocks with dropout, and the gradients of all weights and of x.
struct Net {
  Graph g;
  std::vector<Tensor> weights;
  Tensor x;
  std::vector<Tensor> d;

  explicit Net(bool checkpointed, int rows = 16) {
    x = g.input("x", {rows, kWidth});
    Random random(g, 7);
    Tensor h = x;
    for (int l = 0; l < kLayers; ++l) {
      weights.push_back(g.parameter(str_cat("w", l), {4 * kWidth, kWidth}, DType::F32));
      weights.push_back(g.parameter(str_cat("v", l), {kWidth, 4 * kWidth}, DType::F32));
      const Tensor w = weights[weights.size() - 2], v = weights.back();
      const auto block = [&](const Tensor& in) {
        const Tensor wide = gelu(linear(layer_norm(in, {in.extent(-1)}), w));
        return in + random.dropout(linear(wide, v), 0.1);
      };
      h = checkpointed ? checkpoint(block, h) : block(h);
    }
    const Tensor loss = mean(square(h));
    loss.retrieve("loss");
    std::vector<Tensor> wrt = weights;
    wrt.push_back(x);
    d = gradients(loss, wrt);
    for (std::size_t k = 0; k < d.size(); ++k) d[k].retrieve(str_cat("d", k));
  }
};

std::map<std::string, std::vector<float>> results(const Net& net, const Compiler& c) {
  Program p = compile(net.g, c);
  std::mt19937 r(5);
  std::normal_distribution<float> n(0, 0.05f);
  std::vector<std::vector<float>> kept;
  for (const Tensor& w : net.weights) {
    kept.emplace_back(4 * kWidth * kWidth);
    for (float& f : kept.back()) f = n(r);
    p.load(w.node().name, kept.back().data(), kept.back().size() * 4);
  }
  std::vector<float> x(static_cast<std::size_t>(*product(net.x.shape()).constant()));
  for (float& f : x) f = 20 * n(r);
  Context ctx(p);
  ctx.set("x", x).run();
  std::map<std::string, std::vector<float>> all;
  for (const Root& root : net.g.roots()) all[root.name] = ctx.get(root.name);
  return all;
}

}  // namespace

TEST(Checkpoint, GradientsAreTheSame) {
  for (const Compiler& c : {Compiler(), generic() | test::device()}) {
    const auto plain = results(Net(false), c), again = results(Net(true), c);
    ASSERT_EQ(again.size(), plain.size());
    for (const auto& [name, want] : plain) {
      double most = 0;
      for (const float f : want) most = std::max(most, std::abs(static_cast<double>(f)));
      EXPECT_GT(most, 0);
      for (std::size_t k = 0; k < want.size(); ++k) ASSERT_NEAR(again.at(name)[k], want[k], 1e-5 * most) << name << k;
    }
  }
}

// Only the residual stream of each block is kept; the hidden layer, four times as wide, exists once.
TEST(Checkpoint, TheStepNeedsLessMemory) {
  const Program plain = compile(Net(false, 2048).g, generic() | test::device()),
                again = compile(Net(true, 2048).g, generic() | test::device());
  const auto working = [](const Program& p) { return static_cast<double>(p.plan().arena_bytes); };
  EXPECT_LT(working(again), 0.4 * working(plain));
  for (const Program* p : {&plain, &again})
    EXPECT_LE(working(*p), 1.05 * static_cast<double>(p->plan().alive_bytes)) << "lost between values";
  EXPECT_GT(again.kernels(), plain.kernels());
}

TEST(Checkpoint, TheCompiledStepIsTheReferences) {
  const VerifyReport r = verify(Net(true).g, generic() | test::device(), {.trials = 2});
  EXPECT_TRUE(r.ok()) << r.str();
}

TEST(Checkpoint, SecondDerivativesPassThrough) {
  Graph g;
  const Tensor x = g.input("x", {4});
  const auto f = [](const Tensor& x) { return sin(x) * exp(x); };
  const auto second = [&](const Tensor& y) { return gradient(sum(square(gradient(sum(y), x))), x); };
  second(f(x)).retrieve("plain");
  second(checkpoint(f, x * 1.0)).retrieve("again");
  Program p = compile(g, generic() | test::device());
  Context c(p);
  c.set("x", std::vector<float>{-1, 0, 0.5f, 2}).run();
  for (int k = 0; k < 4; ++k)
    EXPECT_NEAR(c.get("again")[static_cast<std::size_t>(k)], c.get("plain")[static_cast<std::size_t>(k)], 1e-4);
}

TEST(Checkpoint, AFunctionThatHasADerivativeOfItsOwnKeepsIt) {
  Graph g;
  const Tensor x = g.input("x", {3});
  const auto twice = [](const Tensor& in) {
    return custom_gradient(in * 1.0, {in}, [](const VjpCall& c) { return std::vector{c.g() * 2.0}; });
  };
  gradient(sum(checkpoint(twice, x)), x).retrieve("d");
  const auto rule = [](const Tensor& in) {
    return with_vjp(square(in), {in}, [](const VjpCall& c) { return std::vector{c.g() * 7.0}; });
  };
  gradient(sum(checkpoint(rule, x)), x).retrieve("e");
  Program p = compile(g, generic() | test::device());
  Context c(p);
  c.set("x", std::vector<float>{1, 2, 3}).run();
  EXPECT_EQ(c.get("d"), (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(c.get("e"), (std::vector<float>{7, 7, 7}));
}

TEST(Checkpoint, WhatIsNoOperationIsLeftAsItIs) {
  Graph g;
  const Tensor x = g.input("x", {3});
  const Tensor y = checkpoint([](const Tensor& in) { return in; }, x);
  EXPECT_EQ(y.edge(), x.edge());
}

// The recomputation reads a value that was written over the state.
TEST(Checkpoint, OfAStatesNextValue) {
  Graph g;
  const Tensor x = g.input("x", {512}), state = g.input("state", {512});
  const Tensor next = prim::contiguous(state * 0.5 + x);
  g.assign(state, next);
  const Tensor y = checkpoint([](const Tensor& in) { return sin(in) * exp(in); }, next);
  gradient(sum(square(y)), x).retrieve("d");
  const VerifyReport r = verify(g, generic() | test::device());
  EXPECT_TRUE(r.ok()) << r.str();
}
