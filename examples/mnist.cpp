// A multilayer perceptron or a convolutional network on MNIST: mnist mlp|cnn FOLDER [EPOCHS [STEPS]]
// FOLDER holds the four IDX files, plain or compressed.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "lightcone/io/data/loader.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/lightcone.h"
#include "lightcone/nn/layers.h"
#include "lightcone/optim/schedule.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"

using namespace lc;

constexpr int kBatch = 100;
using Mlp = nn::Sequential<nn::Flatten, nn::Linear<784, 512>, nn::ReLU, nn::Dropout,  //
                           nn::Linear<512, 512>, nn::ReLU, nn::Dropout,               //
                           nn::Linear<512, 10>>;

// From [n, 28, 28] to [n, 10].
struct Cnn {
  nn::Conv2d<1, 32, 3> conv1;
  nn::Conv2d<32, 64, 3> conv2;
  nn::MaxPool2d<2> pool;
  nn::Dropout drop1{0.25}, drop2{0.5};
  nn::Linear<9216, 128> fc1;
  nn::Linear<128, 10> fc2;

  void visit(nn::Visitor& v) { v("conv1", conv1)("conv2", conv2)("fc1", fc1)("fc2", fc2); }
  auto operator()(const auto& images, auto& mode) const {
    const auto x = relu(conv2(relu(conv1(typed::unsqueeze<1>(images)))));
    const auto h = relu(fc1(typed::flatten<1>(drop1(pool(x), mode))));
    return fc2(drop2(h, mode));
  }
};

std::shared_ptr<const Dataset> mnist(const std::string& folder, const std::string& part) {
  const auto file = [&](const std::string& name) {
    const std::string path = folder + "/" + part + name;
    return std::filesystem::exists(path) ? path : path + ".gz";
  };
  return std::make_shared<const Dataset>(
      read_mnist(file("-images-idx3-ubyte"), file("-labels-idx1-ubyte"), 10, {.memory = std::size_t{1} << 30}));
}

void show(Context& c, const Batch& b) {
  c.set_bytes("x", b.at("image").bytes.data(), b.at("image").bytes.size());
  c.set_bytes("y", b.at("label").bytes.data(), b.at("label").bytes.size());
}

template <class Net>
int run(const std::string& folder, int epochs, std::int64_t steps) {
  Graph g;
  nn::Model<Net> net(g);
  const auto x = typed::input<float, kBatch, 28, 28>(g, "x");
  const auto y = typed::input<std::int64_t, kBatch>(g, "y");
  auto loss = trace(
      net, [](auto& net, auto x, auto y) { return cross_entropy(net(x), y); }, x, y);
  loss.loss().retrieve("loss");
  const Tensor done = optim::counter(g);
  update(net, optim::AdamW{}, backward(std::move(loss)),
         {.lr = optim::cosine_annealing(1e-3, 600 * epochs)(done), .step = done});
  Trainer trainer(net, generic() | cpu(), {.seed = 1});

  Graph test;
  nn::Model<Net> tested(test);
  const auto tx = typed::input<float, kBatch, 28, 28>(test, "x");
  const auto ty = typed::input<std::int64_t, kBatch>(test, "y");
  sum(to(eq(argmax(tested(tx), 1), ty), DType::I64)).retrieve("right");
  Program evaluate = compile(test, generic() | cpu());

  const std::map<std::string, std::vector<Transform>> transforms{{"image", {ToFloat{}}}};
  DataLoader train(mnist(folder, "train"),
                   {.batch_size = kBatch, .shuffle = true, .seed = 1, .transforms = transforms});
  const auto tests = mnist(folder, "t10k");
  float first = 0, last = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    double total = 0;
    const std::int64_t count = std::min(steps, train.batches());
    for (std::int64_t k = 0; k < count; ++k) {
      show(trainer.context(), train.next());
      last = trainer.step();
      if (trainer.steps() == 1) first = last;
      total += last;
    }
    trainer.copy_to(evaluate);
    Context evaluation(evaluate);
    DataLoader batches(tests, {.batch_size = kBatch, .transforms = transforms});
    std::int64_t right = 0;
    for (std::int64_t k = 0; k < batches.batches(); ++k) {
      show(evaluation, batches.next());
      right += evaluation.run().get_i64("right")[0];
    }
    std::cout << "epoch " << epoch + 1 << ": loss " << total / static_cast<double>(count) << ", accuracy "
              << 100.0 * static_cast<double>(right) / static_cast<double>(tests->size()) << " %" << std::endl;
  }
  return last < first ? 0 : 1;
}

int main(int argc, char** argv) {
  const std::string model = argc > 1 ? argv[1] : "";
  if (argc < 3 || (model != "mlp" && model != "cnn")) {
    std::cout << "mnist mlp|cnn FOLDER [EPOCHS [STEPS]]: trains on MNIST's IDX files\n";
    return argc > 1;
  }
  const int epochs = argc > 3 ? std::atoi(argv[3]) : 10;
  const std::int64_t steps = argc > 4 ? std::atoll(argv[4]) : 1 << 30;
  try {
    return model == "mlp" ? run<Mlp>(argv[2], epochs, steps) : run<Cnn>(argv[2], epochs, steps);
  } catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
