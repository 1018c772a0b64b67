// With adapters (LoRA) only the small matrices are trained, and the merged model computes the same.
#include <gtest/gtest.h>
#include <cmath>

#include "data.h"
#include "error_of.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/lightcone.h"
#include "lightcone/nn/layers.h"
#include "lightcone/optim/optim.h"
#include "lightcone/train/load.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"
#include "on_device.h"

using namespace lc;

namespace {

struct Net {
  nn::Linear<> up{4, 8}, gate{4, 8}, down{8, 3};
  void visit(nn::Visitor& v) { v("mlp.up", up)("mlp.gate", gate)("down", down); }
  Tensor operator()(const Tensor& x) const { return down(relu(up(x)) * sigmoid(gate(x))); }
};

const nn::LoraOptions kOptions{.rank = 2, .alpha = 6, .targets = {"mlp.up", "down"}};

std::vector<float> some(std::size_t n, float step) {
  std::vector<float> v;
  for (std::size_t k = 0; k < n; ++k) v.push_back(std::sin(step * static_cast<float>(k) + 1));
  return v;
}

struct Adapted {
  Graph g;
  nn::Model<nn::Lora<Net>> model{g, nn::Lora<Net>({}, kOptions)};
  std::optional<Trainer> trainer;
  explicit Adapted(double lr = 0.05) {
    const Tensor x = g.input("x", {6, 4}), y = g.input("y", {6, 3});
    auto loss = trace(
        model, [](auto& net, const Tensor& x, const Tensor& y) { return mse_loss(net(x), y); }, x, y);
    loss.loss().retrieve("loss");
    update(model, optim::AdamW{.lr = lr}, backward(std::move(loss)));
    trainer.emplace(model, generic() | test::device(), TrainerOptions{.seed = 3});
    trainer->context().set("x", some(24, 0.7f)).set("y", some(18, 1.3f));
  }
  std::vector<float> value(const std::string& name) const {
    const auto v = trainer->values(name);
    return {v.begin(), v.end()};
  }
};

TEST(Lora, TrainsTheAdaptersAlone) {
  Adapted r;
  EXPECT_EQ(r.model.count(), 2 * (4 + 8) + 2 * (8 + 3));
  std::vector<std::string> frozen = {"mlp.up.weight", "mlp.up.bias", "mlp.gate.weight",
                                     "mlp.gate.bias", "down.weight", "down.bias"};
  std::map<std::string, std::vector<float>> before;
  for (const std::string& name : frozen) before[name] = r.value(name);
  for (const float b : r.value("mlp.up.lora_B.weight")) EXPECT_EQ(b, 0);
  const float first = r.trainer->step();
  float last = 0;
  for (int k = 0; k < 60; ++k) last = r.trainer->step();
  EXPECT_LT(last, first / 2);
  for (const std::string& name : frozen) EXPECT_EQ(r.value(name), before[name]) << name;
  EXPECT_NE(r.value("down.lora_B.weight"), std::vector<float>(6, 0));
}

struct Sum {
  nn::Linear<> one{4, 3}, two{4, 3};
  void visit(nn::Visitor& v) { v("one", one)("two", two); }
  Tensor operator()(const Tensor& x, const Tensor& y) const { return one(x) + two(y); }
};
struct AroundSums {
  nn::Lora<Sum> adapted{{}, {.rank = 2, .targets = {"one"}}};
  nn::Frozen<Sum> still;
  void visit(nn::Visitor& v) { v("adapted", adapted)("still", still); }
  Tensor operator()(const Tensor& x, const Tensor& y, auto& mode) const {
    return adapted(x, y, mode) + still(x, y, mode);
  }
};

// A wrapper takes as many operands as the wrapped module, in training and in inference.
TEST(Lora, AndFrozenTakeSeveralOperands) {
  Graph g;
  nn::Model<AroundSums> net(g);
  const Tensor x = g.input("x", {5, 4}), y = g.input("y", {5, 4});
  EXPECT_EQ(net(x, y).shape(), (Shape{5, 3}));
  auto d = backward(trace(
      net, [](auto& n, const Tensor& x, const Tensor& y) { return mean(n(x, y)); }, x, y));
  EXPECT_EQ(d.updates().size(), 2u);  // lora_A and lora_B
}

// Frozen parameters are saved and evaluated with the trained ones, although the program may have kept them only in
// packed form.
TEST(Frozen, IsSavedAndCopied) {
  struct Half {
    nn::Frozen<nn::Linear<>> first{nn::Linear<>(4, 8)};
    nn::Linear<> second{8, 3};
    void visit(nn::Visitor& v) { v("first", first)("second", second); }
    Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }
  };
  const TempDir folder;
  Graph g;
  nn::Model<Half> model(g);
  const Tensor x = g.input("x", {6, 4}), y = g.input("y", {6, 3});
  auto loss = trace(
      model, [](auto& net, const Tensor& x, const Tensor& y) { return mse_loss(net(x), y); }, x, y);
  loss.loss().retrieve("loss");
  update(model, optim::SGD{.lr = 0.1}, backward(std::move(loss)));
  Trainer t(model, generic() | test::device());
  t.context().set("x", some(24, 0.7f)).set("y", some(18, 1.3f));
  t.step();
  t.save_parameters(folder / "model.safetensors");
  EXPECT_EQ(Weights::open(folder / "model.safetensors").tensors().size(), 4u);
  Graph other;
  nn::Model<Half> same(other);
  mse_loss(same(other.input("x", {6, 4})), other.input("y", {6, 3})).retrieve("loss");
  Program p = compile(other, generic() | test::device());
  t.copy_to(p);
  Context c(p);
  const float evaluated = c.set("x", some(24, 0.7f)).set("y", some(18, 1.3f)).run().scalar("loss");
  EXPECT_NEAR(t.step(), evaluated, 1e-6f);
  t.load_parameters(folder / "model.safetensors");
  EXPECT_NEAR(t.step(), evaluated, 1e-6f);
}

// Adapters add nothing initially. Later, a model without adapters computes the same from the merged weights.
TEST(Lora, TheSumsAreAModelWithoutAdapters) {
  Adapted r;
  const auto plain = [&] {
    Graph g;
    nn::Model<Net> net(g);
    const Tensor x = g.input("x", {6, 4}), y = g.input("y", {6, 3});
    mse_loss(net(x), y).retrieve("loss");
    Program p = compile(g, generic() | test::device());
    std::map<std::string, std::vector<float>> kept;
    for (const nn::Entry& e : net.entries()) {
      auto& v = kept[e.name] = r.trainer->merged(e.name);
      p.load(e.name, v.data(), v.size() * sizeof(float));
    }
    Context c(p);
    return c.set("x", some(24, 0.7f)).set("y", some(18, 1.3f)).run().scalar("loss");
  };
  EXPECT_EQ(r.trainer->merged("mlp.up.weight"), r.value("mlp.up.weight"));
  const float before = plain();
  EXPECT_NEAR(r.trainer->step(), before, 1e-6f);
  for (int k = 0; k < 20; ++k) r.trainer->step();
  EXPECT_NE(r.trainer->merged("mlp.up.weight"), r.value("mlp.up.weight"));
  EXPECT_EQ(r.trainer->merged("mlp.gate.weight"), r.value("mlp.gate.weight"));
  const float now = plain();
  EXPECT_NEAR(r.trainer->step(), now, 1e-6f);
  EXPECT_PRED2(contains, error_of([&] { r.trainer->merged("up"); }), "no parameter is called 'up'");
}

// The scale is alpha / rank, and the merged weight is weight + scale B A.
TEST(Lora, TheProductIsScaled) {
  Adapted r;
  for (int k = 0; k < 5; ++k) r.trainer->step();
  const std::vector<float> w = r.value("down.weight"), a = r.value("down.lora_A.weight"),
                           b = r.value("down.lora_B.weight"), sum = r.trainer->merged("down.weight");
  for (std::size_t o = 0; o < 3; ++o)
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_NEAR(sum[o * 8 + i], w[o * 8 + i] + 3 * (b[o * 2] * a[i] + b[o * 2 + 1] * a[8 + i]), 1e-6f);
}

TEST(Lora, FilesHaveTheNamesOfPeft) {
  const TempDir folder;
  Adapted r;
  for (int k = 0; k < 3; ++k) r.trainer->step();
  r.trainer->save_adapters(folder / "adapter_model.safetensors");
  const Weights w = Weights::open(folder / "adapter_model.safetensors");
  EXPECT_EQ(w.tensors().size(), 4u);
  const StoredTensor& b = w.at("base_model.model.mlp.up.lora_B.weight");
  EXPECT_EQ(b.shape, (std::vector<std::int64_t>{8, 2}));
  EXPECT_EQ(Weights::read(b), r.value("mlp.up.lora_B.weight"));
  EXPECT_EQ(w.at("base_model.model.down.lora_A.weight").shape, (std::vector<std::int64_t>{2, 8}));
}

// A checkpoint without adapters leaves them unchanged; saved adapters are loaded again.
TEST(Lora, BeginsFromTheModelsOwnCheckpoint) {
  const TempDir folder;
  Graph g;
  nn::Model<Net> plain(g);
  auto loss = trace(
      plain, [](auto& net, const Tensor& x) { return sum(net(x)); }, g.input("x", {6, 4}));
  loss.loss().retrieve("loss");
  update(plain, optim::SGD{.lr = 0.1}, backward(std::move(loss)));
  const Trainer base(plain, generic() | test::device(), TrainerOptions{.seed = 77});
  base.save_parameters(folder / "base.safetensors");
  Adapted a, b;
  a.trainer->load_parameters(folder / "base.safetensors");
  const std::span<const float> saved = base.values("mlp.up.weight");
  EXPECT_EQ(a.value("mlp.up.weight"), std::vector<float>(saved.begin(), saved.end()));
  for (int k = 0; k < 3; ++k) a.trainer->step();
  a.trainer->save_adapters(folder / "adapter_model.safetensors");
  b.trainer->load_parameters(folder / "base.safetensors");
  b.trainer->load_adapters(folder / "adapter_model.safetensors");
  EXPECT_EQ(a.trainer->merged("down.weight"), b.trainer->merged("down.weight"));
}

TEST(Lora, ResumesBitForBit) {
  const TempDir folder;
  Adapted a, b;
  for (int k = 0; k < 4; ++k) a.trainer->step();
  a.trainer->save(folder / "run.safetensors");
  b.trainer->load(folder / "run.safetensors");
  for (int k = 0; k < 4; ++k) EXPECT_EQ(a.trainer->step(), b.trainer->step());
}

TEST(Lora, TargetsAreLayers) {
  const auto problem = [](nn::LoraOptions o) {
    return error_of([&] {
      Graph g;
      nn::Model<nn::Lora<Net>> model(g, nn::Lora<Net>({}, std::move(o)));
    });
  };
  EXPECT_PRED2(contains, problem({.targets = {"up", "q_proj"}}), "no layer is called 'q_proj'");
  EXPECT_PRED2(contains, problem({.targets = {"p"}}), "no layer is called 'p'");
  EXPECT_PRED2(contains, problem({.rank = 0}), "nothing to train");
  EXPECT_EQ(problem({.targets = {"up"}}), "no error");
}

}  // namespace
