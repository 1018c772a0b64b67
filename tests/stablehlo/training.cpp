// Exports VGG19's training step (a narrow one on small images: forward, backward, momentum) as one StableHLO program,
// runs it by the CPU back end and by a plugin, and writes the results for training_check.py, which runs it in XLA:
//
//   stablehlo_training FOLDER [PLUGIN]
//
// FOLDER gets step.mlir, step.npz (arg0, arg1, ...: initial values and data; feed: for each result the argument that it
// becomes, or -1) and expected.npz (losses of 20 steps, gradient0, ... of the first one).
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "lightcone/backends/pjrt/pjrt.h"
#include "lightcone/lightcone.h"
#include "lightcone/models/vision/vision.h"
#include "lightcone/stablehlo/write.h"
#include "lightcone/train/trace.h"
#include "npz.h"

using namespace lc;
using test::Npz;
using test::numbers;

namespace {

constexpr int kSteps = 20;

struct Step {
  Graph graph;
  std::vector<std::string> gradients;
  nn::Model<VisionModel> net{graph, vision_model("vgg19", {.num_classes = 10, .width_divisor = 8})};

  Step() {
    const Tensor pictures = graph.input("pictures", {4, 3, 32, 32}), labels = graph.input("labels", {4}, DType::I64);
    auto loss = trace(
        net, [](auto& n, const Tensor& x, const Tensor& y) { return cross_entropy(n(x), y); }, pictures, labels);
    loss.loss().retrieve("loss");
    auto d = backward(std::move(loss));
    for (const optim::Update& u : d.updates()) {
      gradients.push_back("gradient of " + u.parameter.node().name);
      u.gradient.retrieve(gradients.back());
    }
    update(net, optim::SGD{.lr = 0.01, .momentum = 0.9}, std::move(d));
  }
};

struct Data {
  std::vector<float> pictures;
  std::vector<std::int64_t> labels = {3, 1, 4, 1};
  Data() : pictures(4 * 3 * 32 * 32) {
    std::mt19937 random(5);
    for (float& x : pictures) x = static_cast<float>(random() % 2001) / 1000.0f - 1;
  }
};

struct Trained {
  std::vector<float> losses;
  std::vector<Value> gradients;  // gradients of the first step
};

Program compiled(const Step& s, const Compiler& c) {
  Program p = compile(s.graph, c);
  s.net.initialise(p, 7);
  return p;
}

Trained train(const Step& s, const Program& p) {
  const Data data;
  Context c(p);
  c.set("pictures", data.pictures).set("labels", data.labels);
  Trained t;
  for (int k = 0; k < kSteps; ++k) {
    c.run();
    t.losses.push_back(c.scalar("loss"));
    if (k == 0)
      for (const std::string& name : s.gradients) t.gradients.push_back(c.value(name));
  }
  return t;
}

// Returns the largest difference relative to the largest element.
double off(const Value& a, const Value& b) {
  double most = 0, scale = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    most = std::max(most, std::abs(a.at(k) - b.at(k))), scale = std::max(scale, std::abs(a.at(k)));
  return most / std::max(scale, 1e-30);
}

int compare(const Trained& a, const Trained& b, const char* who) {
  double gradients = 0, losses = 0;
  for (std::size_t k = 0; k < a.gradients.size(); ++k)
    gradients = std::max(gradients, off(a.gradients[k], b.gradients[k]));
  for (std::size_t k = 0; k < a.losses.size(); ++k)
    losses = std::max(losses, static_cast<double>(std::abs(a.losses[k] - b.losses[k])));
  if (losses > 1e-3)
    for (std::size_t k = 0; k < a.losses.size(); ++k)
      std::printf("  step %zu: %.7f and %.7f\n", k, static_cast<double>(a.losses[k]), static_cast<double>(b.losses[k]));
  std::printf("%s: %zu gradients within %.2g of their largest element, losses of %d steps within %.2g\n", who,
              a.gradients.size(), gradients, kSteps, losses);
  return !(gradients <= 1e-4 && losses <= 1e-3);
}

void write(const std::filesystem::path& folder, const Step& s, const Program& p, const Trained& t) {
  const StableHloExport e = export_stablehlo(s.graph);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "step.mlir") << e.text();
  const Data data;
  Context first(p);
  Npz given, expected;
  Value feed = make_value(DType::I64, {static_cast<std::int64_t>(e.results.size())});
  std::fill(feed.i.begin(), feed.i.end(), -1);
  for (std::size_t k = 0; k < e.arguments.size(); ++k) {
    const auto& a = e.arguments[k];
    if (a.name == "pictures") first.set(a.name, data.pictures);
    if (a.name == "labels") first.set(a.name, data.labels);
    given.add("arg" + std::to_string(k), first.value(a.name));
    if (a.result >= 0) feed.i[static_cast<std::size_t>(a.result)] = static_cast<std::int64_t>(k);
  }
  given.add("feed", feed);
  given.save(folder / "step.npz");
  expected.add("losses", numbers(t.losses));
  for (std::size_t k = 0; k < t.gradients.size(); ++k) expected.add("gradient" + std::to_string(k), t.gradients[k]);
  expected.save(folder / "expected.npz");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) return std::fprintf(stderr, "stablehlo_training FOLDER [PLUGIN]\n"), 2;
  const Step step;
  const Program p = compiled(step, generic() | cpu());
  const Trained t = train(step, p);
  std::printf("loss %.4f, after %d steps %.4f\n", t.losses.front(), kSteps, t.losses.back());
  write(argv[1], step, p, t);
  int wrong = t.losses.back() < 0.9f * t.losses.front() ? 0 : 1;
  if (argc > 2) wrong += compare(t, train(step, compiled(step, generic() | pjrt({.plugin = argv[2]}))), "the plugin");
  return wrong;
} catch (const std::exception& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
