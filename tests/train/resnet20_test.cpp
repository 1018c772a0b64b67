// A whole training step of ResNet-20 against PyTorch's, in f64 there: all gradients, ten steps of SGD, running statistics.
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/ops/loss.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"
#include "resnet20.h"

using namespace lc;

namespace {

// How far the values are from those of a file, as a part of its largest.
double off(const std::vector<float>& got, const Weights& file, const std::string& name) {
  const std::vector<float> want = Weights::read(file.at(name));
  EXPECT_EQ(got.size(), want.size()) << name;
  double largest = 1e-30, worst = 0;
  for (const float w : want) largest = std::max(largest, static_cast<double>(std::abs(w)));
  for (std::size_t k = 0; k < want.size(); ++k) worst = std::max(worst, std::abs(static_cast<double>(got[k]) - want[k]));
  return worst / largest;
}

TEST(ResNet20, TrainsAsInPyTorch) {
  NEEDS_DATA("training/resnet20_step");
  const std::string folder = data("training/resnet20_step");
  const auto reference = nlohmann::json::parse(slurp(folder + "/training.json"));
  const Array images = read_npy(folder + "/batch_x.npy"), labels = read_npy(folder + "/batch_y.npy");

  Graph g;
  nn::Model<test::ResNet20> net(g);
  const Tensor x = g.input("x", Shape(images.shape.begin(), images.shape.end()));
  const Tensor y = g.input("y", Shape(labels.shape.begin(), labels.shape.end()), DType::I64);
  auto loss = trace(net, [](auto& net, const Tensor& x, const Tensor& y) { return cross_entropy(net(x), y); }, x, y);
  loss.loss().retrieve("loss");
  Gradients<test::ResNet20> d = backward(std::move(loss));
  for (const optim::Update& u : d.updates()) u.gradient.retrieve("grad." + u.parameter.node().name);
  update(net, optim::SGD{.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4}, std::move(d));

  const Weights begin = Weights::open(data("vision/cifar_resnet20/model.safetensors"));
  Trainer trainer(net, generic() | cpu({.threads = 2}));
  for (const nn::Entry& e : net.entries())
    if (const StoredTensor* t = begin.find(e.name))
      trainer.context().set_bytes(e.name, t->bytes.data(), t->bytes.size());
    else EXPECT_TRUE(e.name.ends_with("num_batches_tracked")) << e.name;
  trainer.context().set_bytes("x", images.bytes.data(), images.bytes.size());
  trainer.context().set_bytes("y", labels.bytes.data(), labels.bytes.size());

  const Weights gradients = Weights::open(folder + "/grads_step0.safetensors");
  for (int step = 0; step < 10; ++step) {
    const double want = reference["sgd"]["loss"][static_cast<std::size_t>(step)];
    EXPECT_NEAR(trainer.step(), want, 2e-3 * want) << "step " << step;
    if (step == 0)
      for (const nn::Entry& e : net.entries())
        if (e.kind == nn::Entry::Kind::Parameter) {
          EXPECT_LT(off(trainer.context().get("grad." + e.name), gradients, e.name), 5e-3) << e.name;
        }
  }
  const Weights end = Weights::open(folder + "/state_after_10_sgd.safetensors");
  for (const nn::Entry& e : net.entries())
    if (!e.name.ends_with("num_batches_tracked")) {
      EXPECT_LT(off(trainer.context().get(e.name), end, e.name), 2e-3) << e.name;
    }
}

}  // namespace
