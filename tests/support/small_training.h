// A network of two layers with dropout, AdamW and clipping, and eight samples: a complete training setup that runs
// fast.
#pragma once

#include <optional>
#include <random>
#include <vector>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/nn/layers.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"

namespace lc::test {

using Mlp = nn::Sequential<nn::Linear<4, 16>, nn::Tanh, nn::Dropout, nn::Linear<16, 3>>;

struct SmallTraining {
  Graph g;
  nn::Model<Mlp> net{g};
  std::optional<Trainer> trainer;

  explicit SmallTraining(std::int64_t seed = 1, bool checked = false, const Compiler& device = cpu({.threads = 1})) {
    const auto x = typed::input<float, 8, 4>(g, "x");
    const auto y = typed::input<std::int64_t, 8>(g, "y");
    auto loss = trace(
        net, [](auto& net, auto x, auto y) { return cross_entropy(net(x), y); }, x, y);
    loss.loss().retrieve("loss");
    auto d = backward(std::move(loss));
    d.clip_norm(1);
    update(net, optim::AdamW{.lr = 0.02}, std::move(d));
    trainer.emplace(net, generic() | device, TrainerOptions{.seed = seed, .checked = checked});
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

}  // namespace lc::test
