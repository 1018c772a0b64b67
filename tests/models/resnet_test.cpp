// ResNet, ResNeXt and Wide ResNet give torchvision's logits, gradients and twenty training steps
// (tests/goldens/vision.txt).
#include "lightcone/models/resnet/resnet.h"

#include "error_of.h"
#include "vision.h"

using namespace lc;

namespace {

ResNet small(int depth, int groups = 1, std::int64_t width_per_group = 64) {
  return ResNet(
      {.depth = depth, .num_classes = 10, .groups = groups, .width_per_group = width_per_group, .width_divisor = 8});
}

TEST(ResNet, LearnsAsInTorch) { test::expect_learns_as_torch("resnet18", small(18), 0.003); }
TEST(ResNet, LearnsAsInTorchWithBottlenecks) { test::expect_learns_as_torch("resnet50", small(50), 3e-5); }
TEST(ResNet, LearnsAsInTorchInGroups) { test::expect_learns_as_torch("resnext50", small(50, 2, 32), 3e-5); }

TEST(ResNet, BeginsAsInTorchvision) {
  Graph g;
  test::expect_begins_as_torchvision("resnet18",
                                     nn::Model<ResNet>(g, ResNet({.depth = 18, .zero_init_residual = true})));
  Graph h;
  test::expect_begins_as_torchvision("resnet50", nn::Model<ResNet>(h, ResNet({.depth = 50})));
}

TEST(ResNet, AnyBatch) { test::expect_any_batch(small(18)); }

TEST(ResNet, HalfPrecision) { test::expect_half_precision(small(18)); }

TEST(ResNet, FullSize) { test::expect_full_size("resnet50", ResNet({.depth = 50})); }

TEST(ResNet, Mistakes) {
  EXPECT_EQ(error_of([] { ResNet({.depth = 20}); }),
            "ResNet: there is none of 20 layers; they have 18, 34, 50, 101 or 152");
  EXPECT_EQ(error_of([] { ResNet({.depth = 18, .groups = 2}); }),
            "ResNet: a network of 18 layers has no bottlenecks, which alone have groups");
  EXPECT_EQ(error_of([] { ResNet({.depth = 50, .width_per_group = 0}); }),
            "ResNet: 1 groups of 0 channels leave nothing of a bottleneck");
  EXPECT_EQ(error_of([] { ResNet({.depth = 50, .groups = 0}); }),
            "ResNet: 0 groups of 64 channels leave nothing of a bottleneck");
  EXPECT_EQ(error_of([] { ResNet({.depth = 50, .width_divisor = 7}); }),
            "ResNet: a width_divisor of 7 leaves no whole number of 64 channels");
  Graph g;
  nn::Model<ResNet> net(g, small(18));
  for (const Shape& shape : std::vector<Shape>{{1, 1, 32, 32}, {1, 32, 32, 3}, {3, 32, 32}})
    EXPECT_EQ(error_of([&] { net(g.input(str(shape), shape)); }),
              "ResNet: needs pictures [batch, 3, height, width], not " + str(shape));
}

}  // namespace
