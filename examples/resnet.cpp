// Residual networks on CIFAR-10 (K. He et al., "Deep residual learning for image recognition", CVPR 2016):
//   resnet 20|18 [FOLDER [EPOCHS [STEPS]]]
// 20 is the paper's network for CIFAR (section 4.2: 270 thousand parameters, shortcuts without parameters), 18 the one
// for ImageNet with a first layer for small pictures (11 million). FOLDER holds CIFAR-10's binary batches
// (data_batch_1.bin, ..., test_batch.bin), or train.npz and test.npz with x u8 [n, 32, 32, 3] and y; without FOLDER it
// learns stripes that it makes itself.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "lightcone/io/data/loader.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/lightcone.h"
#include "lightcone/nn/layers.h"
#include "lightcone/optim/schedule.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"

using namespace lc;

constexpr int kBatch = 100;

struct Block {
  nn::Conv2d<> conv1, conv2;
  nn::BatchNorm2d<> bn1, bn2;
  bool projected;
  int stride, more;  // channels that are new
  nn::Sequential<nn::Conv2d<>, nn::BatchNorm2d<>> downsample;
  Block(int in, int out, int stride_, bool projected_)
      : conv1(in, out, 3, {.stride = {stride_}, .padding = {1}}, false),
        conv2(out, out, 3, {.padding = {1}}, false),
        bn1(out),
        bn2(out),
        projected(projected_ && stride_ != 1),
        stride(stride_),
        more(out - in),
        downsample(nn::Conv2d<>(in, out, 1, {.stride = {stride_}}, false), nn::BatchNorm2d<>(out)) {}
  void visit(nn::Visitor& v) {
    v("conv1", conv1)("bn1", bn1)("conv2", conv2)("bn2", bn2);
    if (projected) v("downsample", downsample);
  }
  Tensor shortcut(const Tensor& x, auto& mode) const {
    if (projected) return downsample(x, mode);
    if (stride == 1) return x;
    const Tensor every_other = slice(slice(x, 2, 0, 1 << 30, stride), 3, 0, 1 << 30, stride);
    return every_other.pad(1, more / 2, more / 2);
  }
  Tensor operator()(const Tensor& x, auto& mode) const {
    return relu(bn2(conv2(relu(bn1(conv1(x), mode))), mode) + shortcut(x, mode));
  }
};

struct Stage {
  std::vector<Block> blocks;
  void visit(nn::Visitor& v) {
    for (std::size_t k = 0; k < blocks.size(); ++k) v(std::to_string(k), blocks[k]);
  }
};

// From pictures [n, 3, 32, 32] to [n, 10]; each stage after the first halves them.
struct ResNet {
  nn::Conv2d<> conv1;
  nn::BatchNorm2d<> bn1;
  std::vector<Stage> stages;
  nn::Linear<> fc;
  ResNet(const std::vector<int>& widths, int blocks, bool projected)
      : conv1(3, widths[0], 3, {.padding = {1}}, false), bn1(widths[0]), fc(widths.back(), 10) {
    int before = widths[0];
    for (const int width : widths) {
      Stage s;
      for (int k = 0; k < blocks; ++k, before = width)
        s.blocks.emplace_back(before, width, k == 0 && !stages.empty() ? 2 : 1, projected);
      stages.push_back(std::move(s));
    }
  }
  void visit(nn::Visitor& v) {
    v("conv1", conv1)("bn1", bn1);
    for (std::size_t k = 0; k < stages.size(); ++k) v("layer" + std::to_string(k + 1), stages[k]);
    v("fc", fc);
  }
  Tensor operator()(const Tensor& images, auto& mode) const {
    Tensor x = relu(bn1(conv1(images), mode));
    for (const Stage& s : stages)
      for (const Block& b : s.blocks) x = b(x, mode);
    return fc(mean(x, {2, 3}));
  }
};

struct Data {
  std::shared_ptr<const Dataset> train, test;
  bool channels_last = false;
};

Data from_npz(const std::string& folder) {
  const auto read = [&](const char* part) {
    Arrays a = read_npz(folder + "/" + part + ".npz", {.memory = std::size_t{1} << 30});
    Array label = Array::zeros(DType::I64, a.at("y").shape);
    for (std::size_t k = 0; k < label.values<std::int64_t>().size(); ++k)
      label.values<std::int64_t>()[k] = a.at("y").values<std::uint8_t>()[k];
    return std::make_shared<const Dataset>(Arrays{{"image", std::move(a.at("x"))}, {"label", std::move(label)}});
  };
  return {read("train"), read("test"), true};
}
Data from_batches(const std::string& folder) {
  std::vector<std::string> files, test{folder + "/test_batch.bin"};
  for (int k = 1; k <= 5; ++k) files.push_back(folder + "/data_batch_" + std::to_string(k) + ".bin");
  return {std::make_shared<const Dataset>(read_cifar10(files)), std::make_shared<const Dataset>(read_cifar10(test))};
}
// Makes ten classes: stripes of ten directions, with noise.
Data stripes() {
  SeededRandom random({1});
  Array image = Array::zeros(DType::U8, {600, 3, 32, 32}), label = Array::zeros(DType::I64, {600});
  auto* pixel = image.values<std::uint8_t>().data();
  for (int k = 0; k < 600; ++k) {
    const double angle = 0.1 * 3.14159 * (k % 10), begin = 6 * random.uniform();
    label.values<std::int64_t>()[static_cast<std::size_t>(k)] = k % 10;
    for (int i = 0; i < 3 * 32 * 32; ++i)
      *pixel++ = static_cast<std::uint8_t>(
          100 + 60 * std::sin(begin + i / 32 % 32 * std::cos(angle) + i % 32 * std::sin(angle)) +
          90 * random.uniform());
  }
  const Dataset all(Arrays{{"image", std::move(image)}, {"label", std::move(label)}});
  return {std::make_shared<const Dataset>(all.part(0, 500)), std::make_shared<const Dataset>(all.part(500, 100))};
}

void show(Context& c, const Batch& b) {
  c.set_bytes("x", b.at("image").bytes.data(), b.at("image").bytes.size());
  c.set_bytes("y", b.at("label").bytes.data(), b.at("label").bytes.size());
}

int run(const ResNet& resnet, const Data& data, int epochs, std::int64_t steps) {
  // Pictures are shifted by up to four pixels and mirrored for training, but not for testing.
  std::vector<Transform> seen{ToFloat{}, Normalize{{0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}}};
  if (data.channels_last) seen.insert(seen.begin(), ChannelsFirst{});
  std::vector<Transform> learned = seen;
  learned.insert(learned.end() - 2, {RandomCrop{32, 32, 4}, RandomHorizontalFlip{}});
  DataLoader train(data.train, {.batch_size = kBatch, .shuffle = true, .seed = 1, .transforms = {{"image", learned}}});

  Graph g;
  nn::Model<ResNet> net(g, resnet);
  const Tensor x = g.input("x", {kBatch, 3, 32, 32}), y = g.input("y", {kBatch}, DType::I64);
  auto loss = trace(
      net, [](auto& net, auto& x, auto& y) { return cross_entropy(net(x), y); }, x, y);
  loss.loss().retrieve("loss");
  const Tensor done = optim::counter(g);
  update(net, optim::SGD{.momentum = 0.9, .weight_decay = 5e-4}, backward(std::move(loss)),
         {.lr = optim::cosine_annealing(0.1, train.batches() * epochs)(done), .step = done});
  Trainer trainer(net, generic() | cpu(), {.seed = 1});
  std::cout << net.count() << " parameters, " << train.batches() << " steps an epoch\n";

  Graph test;
  nn::Model<ResNet> tested(test, resnet);
  const Tensor tx = test.input("x", {kBatch, 3, 32, 32}), ty = test.input("y", {kBatch}, DType::I64);
  sum(to(eq(argmax(tested(tx), 1), ty), DType::I64)).retrieve("right");
  Program evaluate = compile(test, generic() | cpu());

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
    DataLoader batches(data.test, {.batch_size = kBatch, .transforms = {{"image", seen}}});
    std::int64_t right = 0;
    for (std::int64_t k = 0; k < batches.batches(); ++k) {
      show(evaluation, batches.next());
      right += evaluation.run().get_i64("right")[0];
    }
    std::cout << "epoch " << epoch + 1 << ": loss " << total / static_cast<double>(count) << ", accuracy "
              << 100.0 * static_cast<double>(right) / static_cast<double>(data.test->size()) << " %" << std::endl;
  }
  return last < first ? 0 : 1;
}

int main(int argc, char** argv) {
  const std::string depth = argc > 1 ? argv[1] : "";
  if (depth != "20" && depth != "18") {
    std::cout << "resnet 20|18 [FOLDER [EPOCHS [STEPS]]]: learns CIFAR-10, or without a folder stripes\n";
    return argc > 1;
  }
  const ResNet resnet = depth == "20" ? ResNet({16, 32, 64}, 3, false) : ResNet({64, 128, 256, 512}, 2, true);
  const std::string folder = argc > 2 ? argv[2] : "";
  const int epochs = argc > 3 ? std::atoi(argv[3]) : folder.empty() ? 2 : 20;
  const std::int64_t steps = argc > 4 ? std::atoll(argv[4]) : 1 << 30;
  try {
    const bool npz = std::filesystem::exists(folder + "/train.npz");
    return run(resnet, folder.empty() ? stripes() : npz ? from_npz(folder) : from_batches(folder), epochs, steps);
  } catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
