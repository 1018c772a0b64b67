// VGG gives torchvision's logits, gradients and twenty training steps (tests/goldens/vision.txt).
#include "lightcone/models/vgg/vgg.h"

#include "error_of.h"
#include "on_device.h"
#include "vision.h"

using namespace lc;

namespace {

VGG small(int depth, bool batch_norm, double dropout = 0) {
  return VGG({.depth = depth, .batch_norm = batch_norm, .num_classes = 10, .dropout = dropout, .width_divisor = 8});
}

TEST(Vgg, LearnsAsInTorch) { test::expect_learns_as_torch("vgg11", small(11, false), 3e-5); }
TEST(Vgg, LearnsAsInTorchWithBatchNorm) { test::expect_learns_as_torch("vgg16_bn", small(16, true), 1e-5); }

TEST(Vgg, BeginsAsInTorchvision) {
  Graph g;
  test::expect_begins_as_torchvision("vgg11_bn", nn::Model<VGG>(g, VGG({.depth = 11, .batch_norm = true})));
}

TEST(Vgg, AnyBatch) { test::expect_any_batch(small(13, true)); }

TEST(Vgg, HalfPrecision) { test::expect_half_precision(small(11, true)); }

TEST(Vgg, DropsOutWhileItTrains) {
  const auto losses = [](double dropout) {
    test::TrainingStep<VGG> step(small(11, false, dropout), 2, 32, optim::SGD{.lr = 0});
    Trainer trainer(step.net, generic() | test::device());
    for (const auto& [path, array] : test::formula_weights(step.net)) trainer.context().set(path, array);
    trainer.context().set("x", test::pictures(2, 32)).set("y", test::labels(2, 10));
    const float first = trainer.step();
    return std::pair(first, trainer.step());
  };
  const auto [a, b] = losses(0.5);
  EXPECT_NE(a, b);  // other elements were dropped
  const auto [c, d] = losses(0);
  EXPECT_EQ(c, d);
}

TEST(Vgg, FullSize) { test::expect_full_size("vgg19", VGG({.depth = 19, .dropout = 0})); }

TEST(Vgg, Mistakes) {
  EXPECT_EQ(error_of([] { VGG({.depth = 12}); }), "VGG: there is none of 12 layers; they have 11, 13, 16 or 19");
  EXPECT_EQ(error_of([] { VGG({.depth = 11, .width_divisor = 3}); }),
            "VGG: a width_divisor of 3 leaves no whole number of 512 channels");
  EXPECT_EQ(error_of([] { VGG({.depth = 11, .width_divisor = 0}); }),
            "VGG: a width_divisor of 0 leaves no whole number of 512 channels");
  Graph g;
  nn::Model<VGG> net(g, small(11, false));
  for (const Shape& shape :
       std::vector<Shape>{{1, 1, 32, 32}, {1, 32, 32, 3}, {1, 3, 31, 32}, {1, 3, 32, 31}, {3, 32, 32}})
    EXPECT_EQ(error_of([&] { net(g.input(str(shape), shape)); }),
              "VGG: needs pictures [batch, 3, height, width] of 32 x 32 or more, not " + str(shape));
}

}  // namespace
