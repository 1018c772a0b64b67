// Trains a model of two layers to separate points inside a circle from those outside, in batches of a data set, and
// loads a checkpoint that was saved during training.
#include <cmath>
#include <cstdio>

#include <lightcone/io/data/loader.h>
#include <lightcone/io/images/images.h>
#include <lightcone/lightcone.h>
#include <lightcone/nn/layers.h>
#include <lightcone/optim/schedule.h>
#include <lightcone/train/trace.h>
#include <lightcone/train/trainer.h>

using namespace lc;
using Net = nn::Sequential<nn::Linear<2, 16>, nn::Tanh, nn::Linear<16, 2>>;

int main(int, char** argv) {
  std::vector<float> points;
  std::vector<std::int64_t> inside;
  for (int k = 0; k < 256; ++k) {
    points.push_back(static_cast<float>(std::sin(12.9898 * k))),
        points.push_back(static_cast<float>(std::cos(78.233 * k)));
    inside.push_back(std::hypot(points[points.size() - 2], points.back()) < 0.9f);
  }
  const auto data = std::make_shared<const Dataset>(
      Arrays{{"x", Array::of<float>({256, 2}, points)}, {"y", Array::of<std::int64_t>({256}, inside)}});
  DataLoader batches(data, {.batch_size = 32, .shuffle = true});

  Graph g;
  nn::Model<Net> net(g);
  const auto x = typed::input<float, 32, 2>(g, "x");
  const auto y = typed::input<std::int64_t, 32>(g, "y");
  auto loss = trace(
      net, [](auto& net, auto x, auto y) { return cross_entropy(net(x), y); }, x, y);
  loss.loss().retrieve("loss");
  const Tensor done = optim::counter(g);
  update(net, optim::AdamW{}, backward(std::move(loss)),
         {.lr = optim::cosine_annealing(0.02, 400)(done), .step = done});
  Trainer trainer(net, generic() | cpu());
  float first = 0, last = 0;
  for (int step = 0; step < 400; ++step) {
    const Batch b = batches.next();
    for (const auto& [name, array] : b.arrays)
      trainer.context().set_bytes(name, array.bytes.data(), array.bytes.size());
    last = trainer.step();
    if (step == 0) first = last;
  }
  const std::string path = std::string(argv[0]) + ".safetensors";
  trainer.save(path);
  const float next = trainer.step();
  trainer.load(path);
  std::printf("the loss fell from %g to %g; pictures %s be read\n", first, last, can_read_images() ? "can" : "cannot");
  return last < first / 2 && trainer.step() == next ? 0 : 1;
}
