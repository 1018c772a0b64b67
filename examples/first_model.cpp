// A first model: three layers whose shapes the compiler checks, trained on points around two circles.
#include <cmath>
#include <iostream>
#include <vector>

#include "lightcone/lightcone.h"
#include "lightcone/nn/layers.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"

using namespace lc;

using Mlp = nn::Sequential<nn::Linear<2, 32>, nn::ReLU,   //
                           nn::Linear<32, 32>, nn::ReLU,  //
                           nn::Linear<32, 2>>;

int main() {
  Graph g;
  nn::Model<Mlp> mlp(g);
  const auto x = typed::input<float, 64, 2>(g, "x");
  const auto y = typed::input<std::int64_t, 64>(g, "y");
  auto loss = trace(
      mlp, [](auto& mlp, auto x, auto y) { return cross_entropy(mlp(x), y); }, x, y);
  loss.loss().retrieve("loss");
  update(mlp, optim::AdamW{.lr = 1e-2}, backward(std::move(loss)));  // forward, backward and update: one program

  Trainer trainer(mlp, generic() | cpu(), {.seed = 1});
  std::vector<float> points;
  std::vector<std::int64_t> circle;
  for (int k = 0; k < 64; ++k) {
    const double angle = 0.7 * k, radius = k % 2 ? 1 : 2;
    points.push_back(static_cast<float>(radius * std::cos(angle)));
    points.push_back(static_cast<float>(radius * std::sin(angle)));
    circle.push_back(k % 2);
  }
  trainer.context().set("x", points).set("y", circle);
  float last = 0;
  for (int step = 0; step <= 200; ++step) {
    last = trainer.step();
    if (step % 50 == 0) std::cout << "step " << step << ": loss " << last << '\n';
  }
  std::cout << mlp.summary();
  return last < 0.01f ? 0 : 1;
}
