// Layers are torch.nn's (tests/support/layer_goldens.h).
#include <gtest/gtest.h>

#include "error_of.h"
#include "layer_goldens.h"
#include "lightcone/nn/layers.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

TEST(Layers, ArePyTorchs) {
  check_layer("Linear", nn::Linear<>(5, 3), one_input);
  check_layer("LayerNorm", nn::LayerNorm<>(6), one_input);
  check_layer("RMSNorm", nn::RMSNorm<>(6), one_input);
  check_layer("GroupNorm", nn::GroupNorm<2>(6), one_input);
  check_layer("Conv2d", nn::Conv2d<>(4, 6, 3, {.stride = {2}, .padding = {1}, .groups = 2}), one_input);
}

TEST(Layers, AttentionIsPyTorchs) {
  check_layer("MultiheadAttention", nn::MultiheadAttention(8, 2), with_mode);
  check_layer("MultiheadAttention causal", nn::MultiheadAttention(8, 2, {.bias = false, .causal = true}), with_mode);
  check_layer("MultiheadAttention cross", nn::MultiheadAttention(8, 4),
        [](const auto& layer, const std::vector<Tensor>& x, auto& mode) { return layer(x[0], x[1], x[2], mode); });
  const nn::EncoderLayerOptions o{.feedforward = 12, .dropout = 0};
  check_layer("TransformerEncoderLayer", nn::TransformerEncoderLayer(8, 2, o), with_mode);
  check_layer("TransformerEncoder", nn::TransformerEncoder(nn::TransformerEncoderLayer(8, 2, o), 2), with_mode);
  nn::EncoderLayerOptions first = o, causal = o;
  first.norm_first = true, first.activation = nn::Activation::GELU;
  causal.causal = true;
  check_layer("TransformerEncoderLayer norm first", nn::TransformerEncoderLayer(8, 2, first), with_mode);
  check_layer("TransformerEncoderLayer causal", nn::TransformerEncoderLayer(8, 2, causal), with_mode);
}

// With dropout the weights of attention are written out; with none of them dropped the result is the same.
TEST(Layers, AttentionDropsOutWhileItTrains) {
  Graph g;
  nn::Model<nn::MultiheadAttention> tiny(g, nn::MultiheadAttention(8, 2, {.dropout = 1e-9, .causal = true}));
  const auto x = typed::input<float, 2, 5, 8>(g, "x");
  nn::Inference inference;
  nn::Training training(tiny);
  const Tensor a = tiny.module()(x, inference), b = tiny.module()(x, training);
  amax(abs(a - b)).retrieve("off");
  EXPECT_EQ(a.shape(), x.shape());
  Program p = compile(g, generic() | cpu());
  tiny.initialise(p, 1);
  Context c(p);
  std::vector<float> values;
  for (int k = 0; k < 80; ++k) values.push_back(static_cast<float>((k * 37) % 19) / 9 - 1);
  EXPECT_LT(c.set("x", values).run().scalar("off"), 1e-5f);
  EXPECT_PRED2(contains, error_of([] { nn::MultiheadAttention(10, 3); }), "3 heads do not divide a width of 10");
}

}  // namespace
