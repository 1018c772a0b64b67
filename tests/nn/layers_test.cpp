// Layers have torch.nn's names, results and gradients (tests/goldens/layers.txt), in the reference and compiled.
#include <gtest/gtest.h>

#include "layer_goldens.h"
#include "lightcone/nn/layers.h"

using namespace lc;

namespace {

TEST(Layers, ArePyTorchs) {
  LayerCases cases;
  cases.add("Linear", nn::Linear<>(5, 3), one_input);
  cases.add("LayerNorm", nn::LayerNorm<>(6), one_input);
  cases.add("RMSNorm", nn::RMSNorm<>(6), one_input);
  cases.add("GroupNorm", nn::GroupNorm<2>(6), one_input);
  cases.add("Conv2d", nn::Conv2d<>(4, 6, 3, {.stride = {2}, .padding = {1}, .groups = 2}), one_input);
  cases.check();
}

}  // namespace
