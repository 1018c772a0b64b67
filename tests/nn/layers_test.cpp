// Layers are torch.nn's (tests/support/layer_goldens.h).
#include <gtest/gtest.h>

#include "layer_goldens.h"
#include "lightcone/nn/layers.h"

using namespace lc;

namespace {

TEST(Layers, ArePyTorchs) {
  check_layer("Linear", nn::Linear<>(5, 3), one_input);
  check_layer("LayerNorm", nn::LayerNorm<>(6), one_input);
  check_layer("RMSNorm", nn::RMSNorm<>(6), one_input);
  check_layer("GroupNorm", nn::GroupNorm<2>(6), one_input);
  check_layer("Conv2d", nn::Conv2d<>(4, 6, 3, {.stride = {2}, .padding = {1}, .groups = 2}), one_input);
}

}  // namespace
