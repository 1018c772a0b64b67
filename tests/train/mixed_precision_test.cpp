// autocast() rounds the operands of the right products, training works with it, and the loss scale moves as PyTorch's
// does.
#include "lightcone/lowering/types/mixed_precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/lightcone.h"
#include "lightcone/nn/attention.h"
#include "lightcone/nn/layers.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"
#include "on_device.h"

using namespace lc;

namespace {

constexpr int kBatch = 32, kWidth = 48, kClasses = 10;

using Net = nn::Sequential<nn::Linear<kWidth, 64>, nn::ReLU, nn::LayerNorm<64>, nn::Linear<64, kClasses>>;

const Compiler kBoth[] = {autocast(DType::BF16), autocast(DType::F16)};

struct Task {
  Graph g;
  nn::Model<Net> net{g};
  Tensor factor = g.input("factor", {});  // multiplies the loss, to make gradients large or small

  Task() {
    const auto x = typed::input<float, kBatch, kWidth>(g, "x");
    const auto y = typed::input<std::int64_t, kBatch>(g, "y");
    auto loss = trace(
        net, [&](auto& net, auto x, auto y) { return Tensor(cross_entropy(net(x), y)) * factor; }, x, y);
    loss.loss().retrieve("loss");
    update(net, optim::AdamW{.lr = 1e-2}, backward(std::move(loss)));
  }
};

void feed(Context& c, float factor = 1) {
  std::mt19937 r(3);
  std::normal_distribution<float> n;
  std::vector<float> x(kBatch * kWidth);
  std::vector<std::int64_t> y(kBatch);
  for (float& v : x) v = n(r);
  for (std::int64_t& v : y) v = static_cast<std::int64_t>(r() % kClasses);
  c.set("x", x).set("y", y).set("factor", std::vector<float>{factor});
}

std::vector<float> losses(const Compiler& c, int steps) {
  Task task;
  Trainer t(task.net, c, {.seed = 1});
  feed(t.context());
  std::vector<float> all;
  for (int k = 0; k < steps; ++k) all.push_back(t.step());
  return all;
}

float scale_of(Trainer& t) { return t.context().scalar("loss_scale"); }

}  // namespace

TEST(MixedPrecision, TrainsAsF32Does) {
  const std::vector<float> f32 = losses(generic() | test::device(), 30);
  for (const Compiler& c : kBoth) {
    const std::vector<float> half = losses(c | generic() | test::device(), 30);
    EXPECT_NE(half, f32);
    for (std::size_t k = 0; k < f32.size(); ++k) EXPECT_NEAR(half[k], f32[k], 0.02 * f32[0]) << k;
    EXPECT_LT(half.back(), 0.1 * half.front());
  }
}

// Two linear layers have two forward products and three gradient products, without that of the first layer's input.
TEST(MixedPrecision, ProductsAreRoundedAndNothingElse) {
  Task task;
  const Compiled c = transform(task.g, autocast(DType::BF16) | generic());
  EXPECT_EQ(fired(c.log, "product in bf16"), 5);
  for (const Assignment& a : c.graph.assignments()) EXPECT_NE(c.graph[a.state].dtype, DType::BF16);
  EXPECT_EQ(fired(transform(task.g, generic()).log, "product in bf16"), 0);
}

TEST(MixedPrecision, TheCompiledStepIsTheReferences) {
  for (const Compiler& c : kBoth) {
    Task task;
    const VerifyReport r = verify(task.g, c | generic() | test::device());
    EXPECT_TRUE(r.ok()) << r.str();
    EXPECT_GT(r.decided(), 0.5) << r.str();
  }
}

TEST(MixedPrecision, NoRoundedCopyLiesInMemoryWhereProductsRound) {
  LIGHTCONE_CPU_ALONE();
  Task task;
  const Program plain = compile(task.g, generic() | test::device()),
                half = compile(task.g, autocast(DType::BF16) | generic() | test::device());
  if (!backends::cpu::bf16_is_fast(backends::cpu::detect_isa()))
    GTEST_SKIP() << "this processor rounds in loops of their own";
  EXPECT_EQ(half.kernels(), plain.kernels());
}

TEST(MixedPrecision, TheLossScaleIsSeenByNothingButRounding) {
  const std::vector<float> one = losses(autocast(DType::F16, {.exponent = 0}) | generic() | test::device(), 5),
                           many = losses(autocast(DType::F16, {.exponent = 10}) | generic() | test::device(), 5);
  for (std::size_t k = 0; k < one.size(); ++k) EXPECT_NEAR(many[k], one[k], 2e-3 * one[0]);
}

// A gradient of 1e-9 underflows f16: without loss scaling, nothing is learnt.
TEST(MixedPrecision, SmallGradientsSurviveByTheScale) {
  const auto moved = [](int exponent) {
    Task task;
    Trainer t(task.net, autocast(DType::F16, {.exponent = exponent}) | generic() | test::device(), {.seed = 1});
    feed(t.context(), 1e-7f);
    const std::vector<float> before = t.context().get("0.weight");
    t.step();
    double change = 0;
    for (std::size_t k = 0; k < before.size(); ++k)
      change += std::abs(static_cast<double>(t.context().get("0.weight")[k]) - before[k] * (1 - 1e-2 * 1e-2));
    return change / static_cast<double>(before.size());
  };
  EXPECT_GT(moved(20), 1e-3);
  EXPECT_LT(moved(0), 3e-4);
}

TEST(MixedPrecision, AStepThatOverflowsIsLeftOutAndTheScaleHalved) {
  Task task;
  Trainer t(task.net, autocast(DType::F16, {.exponent = 15, .growth_interval = 3}) | generic() | test::device(),
            {.seed = 1});
  feed(t.context(), 1e4f);
  const std::vector<float> before = t.context().get("0.weight");
  t.step();
  EXPECT_EQ(scale_of(t), 0x1p15f);
  EXPECT_EQ(t.context().get("0.weight"), before);
  feed(t.context());
  t.step();
  EXPECT_EQ(scale_of(t), 0x1p14f);
  EXPECT_NE(t.context().get("0.weight"), before);
  t.step(), t.step(), t.step();
  EXPECT_EQ(scale_of(t), 0x1p15f);  // three good steps
  EXPECT_EQ(t.context().scalar("loss_scale.good"), 1);
}

TEST(MixedPrecision, TheScaleIsPartOfACheckpoint) {
  const std::string path = testing::TempDir() + "scaled.safetensors";
  Task task, other;
  const Compiler c = autocast(DType::F16, {.growth_interval = 2}) | generic() | test::device();
  Trainer t(task.net, c, {.seed = 1}), resumed(other.net, c, {.seed = 2});
  feed(t.context()), feed(resumed.context());
  for (int k = 0; k < 5; ++k) t.step();
  t.save(path), resumed.load(path);
  for (int k = 0; k < 3; ++k) EXPECT_EQ(resumed.step(), t.step());
  EXPECT_EQ(scale_of(resumed), scale_of(t));
  EXPECT_EQ(scale_of(t), 0x1p19f);
}

TEST(MixedPrecision, WithinBf16AttentionIsStillFound) {
  Graph g;
  const Shape s{2, 4, 64, 32};
  scaled_dot_product_attention(g.input("q", s), g.input("k", s), g.input("v", s), {.is_causal = true}).retrieve("y");
  EXPECT_EQ(fired(compile(g, generic() | test::device()).log(), "attention"), 1);
  EXPECT_EQ(fired(compile(g, autocast(DType::BF16) | generic() | test::device()).log(), "attention"), 1);
}
