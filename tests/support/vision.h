// Compares VGG and ResNet with torchvision's (tests/goldens/vision.txt; tools/make_vision_goldens.py documents its
// format).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data.h"
#include "lightcone/lowering/types/mixed_precision.h"
#include "lightcone/nn/module.h"
#include "lightcone/ops/loss.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/load.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"
#include "on_device.h"
#include "paths.h"
#include "statistics.h"

namespace lc::test {

struct GradientGolden {
  double largest, norm, dot;
  std::vector<double> samples;
};
struct TensorGolden {
  std::string name, shape, first;
};
struct VisionGoldens {
  struct Names {
    std::size_t count;
    std::string hash;
  };
  struct Net {
    std::map<std::string, std::vector<double>> values;  // keys: eval, train, loss, after
    std::map<std::string, GradientGolden> gradients;
  };
  std::map<std::string, Names> names;
  std::map<std::string, std::vector<TensorGolden>> tensors;
  std::map<std::string, Net> nets;
  std::vector<double> picture;
};

inline const VisionGoldens& vision_goldens() {
  static const VisionGoldens goldens = [] {
    VisionGoldens g;
    std::ifstream file(std::string(paths::kSource) + "/tests/goldens/vision.txt");
    std::string of;
    for (std::string line; std::getline(file, line);) {
      std::istringstream s(line);
      std::string kind, name;
      s >> kind;
      const auto rest = [&] {
        std::vector<double> v;
        for (double d; s >> d;) v.push_back(d);
        return v;
      };
      if (kind == "names") s >> name, s >> g.names[name].count >> g.names[name].hash;
      else if (kind == "model" || kind == "net") s >> of;
      else if (kind == "picture") g.picture = rest();
      else if (kind == "tensor") {
        const std::size_t open = line.find('['), close = line.find(']');
        g.tensors[of].push_back(
            {line.substr(7, open - 8), line.substr(open, close + 1 - open), line.substr(close + 2)});
      } else if (kind == "grad") {
        s >> name;
        GradientGolden& d = g.nets[of].gradients[name];
        s >> d.largest >> d.norm >> d.dot;
        d.samples = rest();
      } else {
        g.nets[of].values[kind] = rest();
      }
    }
    return g;
  }();
  return goldens;
}

// n numbers in [0, 1), multiples of 2^-24: number() of the script.
inline std::vector<double> numbers(std::uint64_t seed, std::size_t n) {
  std::vector<double> u(n);
  for (std::size_t k = 0; k < n; ++k) {
    std::uint64_t h = (k + seed * 1000003 + 1) * 2654435761u & 0xFFFFFFFFu;
    h ^= h >> 15;
    h = h * 2246822519u & 0xFFFFFFFFu;
    h ^= h >> 13;
    u[k] = static_cast<double>(h >> 8) / 0x1p24;
  }
  return u;
}
inline std::vector<float> pictures(std::int64_t n, std::int64_t size) {
  std::vector<float> x;
  for (const double u : numbers(1000, static_cast<std::size_t>(n * 3 * size * size)))
    x.push_back(static_cast<float>((2 * u - 1) * 1.75));
  return x;
}
inline std::vector<std::int64_t> labels(std::int64_t n, std::int64_t classes) {
  std::vector<std::int64_t> y;
  for (std::int64_t k = 0; k < n; ++k) y.push_back((k * 7 + 3) % classes);
  return y;
}
// The weights of a model by the formula of the script. Counters (num_batches_tracked) are 0.
inline Arrays formula_weights(const nn::ModelBase& net) {
  Arrays all;
  for (std::size_t k = 0; k < net.entries().size(); ++k) {
    const nn::Entry& e = net.entries()[k];
    std::vector<std::int64_t> shape;
    std::int64_t n = 1, fan = 1;
    for (const Dim& d : e.tensor.shape()) shape.push_back(*d.constant()), n *= shape.back();
    if (shape.empty()) {
      all.emplace(e.name, Array::zeros(DType::I64, {}));
      continue;
    }
    for (std::size_t i = 1; i < shape.size(); ++i) fan *= shape[i];
    const double bound = std::sqrt(6.0 / static_cast<double>(fan));
    const auto value = [&](double u) {
      if (shape.size() > 1) return (2 * u - 1) * bound;
      if (e.name.ends_with("bn3.weight")) return (u + 0.5) / 4;
      return e.name.ends_with("running_var") || e.name.ends_with("weight") ? u + 0.5 : (2 * u - 1) * 0.125;
    };
    std::vector<float> values;
    for (const double u : numbers(k, static_cast<std::size_t>(n))) values.push_back(static_cast<float>(value(u)));
    all.emplace(e.name, Array::of<float>(shape, values));
  }
  return all;
}

// Returns the largest error divided by the largest expected magnitude.
inline double off(std::span<const float> got, std::span<const double> want) {
  EXPECT_EQ(got.size(), want.size());
  double largest = 1e-30, worst = 0;
  for (std::size_t k = 0; k < std::min(got.size(), want.size()); ++k) {
    largest = std::max(largest, std::abs(want[k]));
    const double error = std::abs(got[k] - want[k]);
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;  // a NaN counts as an infinite error
  }
  return worst / largest;
}
// Compares a gradient's norm, its product with c and its samples. Errors are relative to the expected norm and largest
// element, or to `scale` if that is larger.
inline double off(std::span<const float> got, const GradientGolden& want, double scale = 0) {
  double norm = 0, dot = 0, worst = 0;
  for (std::size_t k = 0; k < got.size(); ++k) {
    norm += static_cast<double>(got[k]) * got[k];
    dot += got[k] * (static_cast<double>((k * 7 + 3) % 11) - 5) / 4;
  }
  norm = std::sqrt(norm);
  const auto far = [&](double a, double b, double scale) {
    const double error = std::abs(a - b) / scale;
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
  };
  const double long_side = std::max(scale, want.norm), largest = std::max(scale, want.largest);
  far(norm, want.norm, long_side), far(dot, want.dot, long_side);
  EXPECT_EQ(want.samples.size(), 16u);
  for (std::size_t k = 0; k < want.samples.size(); ++k)
    far(got[2654435761u * k % got.size()], want.samples[k], largest);
  return worst;
}

// The graph of a whole training step on a batch of images, with its gradients as outputs.
template <class M>
struct TrainingStep {
  Graph g;
  nn::Model<M> net;
  TrainingStep(const M& module, std::int64_t batch, std::int64_t size, const optim::Optimizer& optimizer)
      : net(g, module) {
    const Tensor x = g.input("x", {batch, 3, size, size}), y = g.input("y", {batch}, DType::I64);
    Tensor logits;
    auto loss = trace(
        net, [&](auto& net, auto& x, auto& y) { return cross_entropy(logits = net(x), y); }, x, y);
    loss.loss().retrieve("loss");
    logits.retrieve("logits");
    Gradients<M> d = backward(std::move(loss));
    for (const optim::Update& u : d.updates()) u.gradient.retrieve("grad." + u.parameter.node().name);
    update(net, optimizer, std::move(d));
  }
};
// The graph of inference alone.
template <class M>
struct Evaluation {
  Graph g;
  nn::Model<M> net;
  Evaluation(const M& module, Dim batch, std::int64_t size) : net(g, module) {
    net(g.input("x", {std::move(batch), 3, size, size})).retrieve("logits");
  }
};

// Compares inference, all gradients and 20 steps of SGD of a small network with torch.
template <class M>
void expect_learns_as_torch(const std::string& name, const M& module, double lr) {
  constexpr std::int64_t kBatch = 6, kSize = 64;
  const VisionGoldens::Net& want = vision_goldens().nets.at(name);
  Evaluation<M> evaluation(module, kBatch, kSize);
  Program evaluate = compile(evaluation.g, generic() | test::device({.threads = 2}));
  const auto logits = [&] {
    Context run(evaluate);
    return run.set("x", pictures(kBatch, kSize)).run().get("logits");
  };
  load(evaluate, formula_weights(evaluation.net));
  EXPECT_LT(off(logits(), want.values.at("eval")), 1e-4);

  TrainingStep<M> step(module, kBatch, kSize, optim::SGD{.lr = lr, .momentum = 0.9, .weight_decay = 5e-4});
  Trainer trainer(step.net, generic() | test::device({.threads = 2}));
  for (const auto& [path, array] : formula_weights(step.net)) trainer.context().set(path, array);
  trainer.context().set("x", pictures(kBatch, kSize)).set("y", labels(kBatch, 10));
  const std::vector<double>& losses = want.values.at("loss");
  ASSERT_EQ(losses.size(), 20u);
  for (std::size_t k = 0; k < losses.size(); ++k) {
    EXPECT_NEAR(trainer.step(), losses[k], 1e-3 * std::max(1.0, losses[k])) << "step " << k;
    if (k > 0) continue;
    EXPECT_LT(off(trainer.context().get("logits"), want.values.at("train")), 1e-4);
    std::size_t gradients = 0;
    for (const Tensor& p : step.net.parameters()) {
      const std::string path = p.node().name;
      ASSERT_TRUE(want.gradients.contains(path)) << path;
      const GradientGolden& d = want.gradients.at(path);
      // a convolution's bias before batch norm has a gradient of rounding errors only, so its weight's sets the scale
      const bool zero = d.largest < 1e-9 && path.ends_with("bias");
      const double scale = zero ? want.gradients.at(path.substr(0, path.size() - 4) + "weight").largest : 0;
      EXPECT_LT(off(trainer.context().get("grad." + path), d, scale), 1e-4) << path;
      ++gradients;
    }
    EXPECT_EQ(gradients, want.gradients.size());
  }
  trainer.copy_to(evaluate);
  EXPECT_LT(off(logits(), want.values.at("after")), 1e-2);
}

// A batch whose size is bound at run time gives each image the result it has alone.
template <class M>
void expect_any_batch(const M& module) {
  constexpr std::int64_t kSize = 32;
  Evaluation<M> one(module, 1, kSize), any(module, Dim::symbol("batch", 1, 4), kSize);
  Program alone = compile(one.g, generic() | test::device()), together = compile(any.g, generic() | lc::test::device());
  load(alone, formula_weights(one.net)), load(together, formula_weights(any.net));
  const std::vector<float> x = pictures(3, kSize);
  Context run(together);
  const std::vector<float> y = run.bind("batch", 3).set("x", x).run().get("logits");
  ASSERT_EQ(y.size(), 30u);
  for (std::size_t k = 0; k < 3; ++k) {
    Context single(alone);
    const auto picture = std::span(x).subspan(k * 3 * kSize * kSize, 3 * kSize * kSize);
    const std::vector<float> own = single.set("x", picture).run().get("logits");
    EXPECT_LT(off(std::span(y).subspan(k * 10, 10), std::vector<double>(own.begin(), own.end())), 1e-5) << k;
  }
}

// Inference with bf16 products agrees with f32 except for the rounding.
template <class M>
void expect_half_precision(const M& module) {
  Evaluation<M> e(module, 2, 32);
  const auto logits = [&](const Compiler& c) {
    Program p = compile(e.g, c);
    load(p, formula_weights(e.net));
    Context run(p);
    return run.set("x", pictures(2, 32)).run().get("logits");
  };
  const std::vector<float> f32 = logits(generic() | test::device());
  const std::vector<double> want(f32.begin(), f32.end());
  const double half = off(logits(autocast(DType::BF16) | generic() | test::device()), want);
  EXPECT_LT(half, 0.05);
  EXPECT_GT(half, 0);  // proves that values were rounded
  EXPECT_LT(off(logits(generic() | test::device({.precision = Precision::Medium})), want), 0.05);
}

// The initial values of a model's tensors follow torchvision's distributions.
inline void expect_begins_as_torchvision(const std::string& name, const nn::ModelBase& net) {
  const std::vector<TensorGolden>& want = vision_goldens().tensors.at(name);
  ASSERT_EQ(net.entries().size(), want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    const nn::Entry& e = net.entries()[k];
    SCOPED_TRACE(e.name);
    ASSERT_EQ(e.name, want[k].name);
    nn::init::Extents shape;
    for (const Dim& d : e.tensor.shape()) shape.push_back(*d.constant());
    // some rows of the hundred million weights suffice
    if (shape.size() == 2) shape[0] = std::min<std::int64_t>(shape[0], 40);
    const nn::init::Values v = e.init(shape, {.seed = 1, .parameter = e.name});
    std::istringstream s(want[k].first);
    std::string kind;
    double a = 0, b = 0;
    s >> kind >> a >> b;
    if (kind == "fill") {
      for (const float x : v) ASSERT_EQ(x, a);
      continue;
    }
    const double mean = kind == "normal" ? a : (a + b) / 2, std = kind == "normal" ? b : (b - a) / std::sqrt(12);
    const Moments m = moments(v);
    const double root = std::sqrt(static_cast<double>(v.size()));
    EXPECT_LT(std::abs(m.mean - mean), 4.5 * std / root);
    EXPECT_LT(std::abs(m.std - std), 4 * std / root);
    EXPECT_NEAR(m.kurtosis, kind == "normal" ? 3 : 1.8, 30 / root);
  }
}

// Runs the full-size network on two images of 224 x 224 and compares logits, the loss and all gradients with the f64
// results of the script's --full. In f32 some of the millions of elements fall on the other side of relu's corner, in
// torch too, so the errors of torch's own f32 gradients set the tolerance. Prints our errors.
template <class M>
void expect_full_size(const std::string& name, const M& module) {
  const char* const folder = std::getenv("LIGHTCONE_VISION");
  if (!folder) GTEST_SKIP() << "LIGHTCONE_VISION names no folder of tools/make_vision_goldens.py --full";
  const std::string weights = std::string(folder) + "/" + name + ".safetensors";
  const Weights results = Weights::open(std::string(folder) + "/" + name + ".results.safetensors");
  const auto far = [&](const std::vector<float>& got, const std::string& of) {  // relative to the norm
    const std::vector<float> want = Weights::read(results.at(of));
    EXPECT_EQ(got.size(), want.size()) << of;
    double distance = 0, norm = 0;
    for (std::size_t k = 0; k < want.size(); ++k) {
      distance += std::pow(static_cast<double>(got.at(k)) - want[k], 2);
      norm += std::pow(want[k], 2);
    }
    return std::sqrt(distance / norm);
  };
  {
    Evaluation<M> e(module, 2, 224);
    Program p = compile(e.g, generic() | test::device());
    load(p, Weights::open(weights));
    Context run(p);
    const double logits = far(run.set("x", pictures(2, 224)).run().get("logits"), "eval");
    std::cout << "logits are off by " << logits << '\n';
    EXPECT_LT(logits, 1e-4);
  }
  TrainingStep<M> step(module, 2, 224, optim::SGD{.lr = 0});
  Trainer trainer(step.net, generic() | test::device());
  trainer.load_parameters(weights);
  trainer.context().set("x", pictures(2, 224)).set("y", labels(2, 1000));
  EXPECT_NEAR(trainer.step(), Weights::read(results.at("loss"))[0], 1e-3);
  const double torchs = Weights::read(results.at("off"))[0];
  double worst = 0;
  std::string where;
  for (const Tensor& p : step.net.parameters()) {
    const std::string path = "grad." + p.node().name;
    const double d = far(trainer.context().get(path), path);
    EXPECT_LT(d, 2 * torchs) << path;
    if (d > worst) worst = d, where = path;
  }
  std::cout << step.net.parameters().size() << " gradients are off by at most " << worst << " of their norm (" << where
            << "), torch's in f32 by " << torchs << '\n';
}

}  // namespace lc::test
