// A training step of ResNet-20 has PyTorch's gradients within 1e-6 of the largest in f64, and ten compiled SGD steps
// follow PyTorch's.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/ops/loss.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"
#include "on_device.h"
#include "resnet20.h"

using namespace lc;

namespace {

// Returns the largest error divided by the largest magnitude in the file.
double off(const std::vector<float>& got, const Weights& file, const std::string& name) {
  const std::vector<float> want = Weights::read(file.at(name));
  EXPECT_EQ(got.size(), want.size()) << name;
  double largest = 1e-30, worst = 0;
  for (const float w : want) largest = std::max(largest, static_cast<double>(std::abs(w)));
  for (std::size_t k = 0; k < want.size(); ++k) {
    const double error = std::abs(static_cast<double>(got[k]) - want[k]);
    if (!(error <= worst)) worst = std::isnan(error) ? kInf : error;  // a NaN counts as an infinite error
  }
  return worst / largest;
}

using Net = nn::Model<test::ResNet20>;

struct Step {
  Graph g;
  Net net{g};
  std::string folder = data("training/resnet20_step");
  Array images = read_npy(folder + "/batch_x.npy"), labels = read_npy(folder + "/batch_y.npy");
  Weights begin = Weights::open(data("vision/cifar_resnet20/model.safetensors"));
  Weights gradients = Weights::open(folder + "/grads_step0.safetensors");
  nlohmann::json reference = nlohmann::json::parse(slurp(folder + "/training.json"));

  Step() {
    const Tensor x = g.input("x", Shape(images.shape.begin(), images.shape.end()));
    const Tensor y = g.input("y", Shape(labels.shape.begin(), labels.shape.end()), DType::I64);
    auto loss = trace(
        net, [](auto& net, const Tensor& x, const Tensor& y) { return cross_entropy(net(x), y); }, x, y);
    loss.loss().retrieve("loss");
    Gradients<test::ResNet20> d = backward(std::move(loss));
    for (const optim::Update& u : d.updates()) u.gradient.retrieve("grad." + u.parameter.node().name);
    update(net, optim::SGD{.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4}, std::move(d));
  }
  template <class F>
  void each_parameter(const F& f) const {
    for (const nn::Entry& e : net.entries())
      if (e.kind == nn::Entry::Kind::Parameter) f(e.name);
  }
};

TEST(ResNet20, GradientsInF64ArePyTorchs) {
  NEEDS_DATA("training/resnet20_step");
  const Step s;
  std::map<std::string, Value> in{{"x", read_value(s.images.bytes.data(), s.images.dtype, s.images.shape)},
                                  {"y", read_value(s.labels.bytes.data(), s.labels.dtype, s.labels.shape)}};
  for (NodeId id = 0; id < s.g.size(); ++id) {
    const Node& n = s.g[id];
    if (n.op != Op::Input || in.contains(n.name)) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& d : n.shape) shape.push_back(*d.constant());
    const StoredTensor* t = s.begin.find(n.name);
    in[n.name] = t ? read_value(t->bytes.data(), *t->dtype, shape) : make_value(n.dtype, shape);
  }
  const auto out = interpret(transform(s.g, generic()).graph, in).outputs;
  EXPECT_NEAR(out.at("loss").f[0], s.reference["loss0"].get<double>(), 1e-8);
  s.each_parameter([&](const std::string& name) {
    const std::vector<double>& d = out.at("grad." + name).f;
    EXPECT_LT(off({d.begin(), d.end()}, s.gradients, name), 1e-6) << name;  // the file is f32
  });
}

TEST(ResNet20, TrainsAsInPyTorch) {
  NEEDS_DATA("training/resnet20_step");
  Step s;
  Trainer trainer(s.net, generic() | test::device({.threads = 2}));
  for (const nn::Entry& e : s.net.entries()) {
    const StoredTensor* t = s.begin.find(e.name);
    EXPECT_TRUE(t || e.name.ends_with("num_batches_tracked")) << e.name;
    if (t) trainer.context().set_bytes(e.name, t->bytes.data(), t->bytes.size());
  }
  trainer.context().set_bytes("x", s.images.bytes.data(), s.images.bytes.size());
  trainer.context().set_bytes("y", s.labels.bytes.data(), s.labels.bytes.size());
  for (int step = 0; step < 10; ++step) {
    const double want = s.reference["sgd"]["loss"][static_cast<std::size_t>(step)];
    EXPECT_NEAR(trainer.step(), want, 2e-3 * want) << "step " << step;
    if (step > 0) continue;
    // in f32 a few of the million elements fall to the other side of relu's corner
    s.each_parameter([&](const std::string& name) {
      EXPECT_LT(off(trainer.context().get("grad." + name), s.gradients, name), 5e-3) << name;
    });
  }
  const Weights end = Weights::open(s.folder + "/state_after_10_sgd.safetensors");
  for (const nn::Entry& e : s.net.entries())
    if (!e.name.ends_with("num_batches_tracked")) {
      EXPECT_LT(off(trainer.context().get(e.name), end, e.name), 2e-3) << e.name;
    }
}

}  // namespace
