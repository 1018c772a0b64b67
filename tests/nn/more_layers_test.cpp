// Convolutions, embeddings, norms, pools, activations and reshaping layers are torch.nn's (tests/goldens/layers.txt).
#include <gtest/gtest.h>

#include "error_of.h"
#include "layer_goldens.h"
#include "lightcone/nn/layers.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

using Tensors = std::vector<Tensor>;
using Train = nn::Training;

const auto both = [](const auto& layer, const Tensors& x, auto&) { return layer(x[0], x[1]); };

TEST(MoreLayers, ConvolutionsArePyTorchs) {
  LayerCases cases;
  cases.add("ConvTranspose1d",
            nn::ConvTranspose1d<>(4, 6, 3, {.stride = 2, .padding = 1, .groups = 2, .output_padding = 1}), one_input);
  cases.add("ConvTranspose1d", nn::ConvTranspose1d<4, 6, 3, 2, 1, 1, 2>(), one_input);
  cases.add("ConvTranspose2d", nn::ConvTranspose2d<>(3, 2, {3, 2}, {.stride = {2, 1}, .dilation = {1, 2}}, false),
            one_input);
  cases.add("ConvTranspose3d", nn::ConvTranspose3d<>(2, 2, 2, {.stride = {2}}), one_input);
  cases.add("Conv1d", nn::Conv1d<>(4, 3, 3, {.padding = 2, .dilation = 2}, true, PadMode::Circular), one_input);
  cases.add("Conv2d reflect", nn::Conv2d<>(2, 3, {3, 2}, {.padding = {1, 0}}, false, PadMode::Reflect), one_input);
  cases.add("Conv3d", nn::Conv3d<>(2, 3, 2, {.padding = {1}}, true, PadMode::Replicate), one_input);
  cases.check();
}

TEST(MoreLayers, ProductsAndEmbeddingsArePyTorchs) {
  LayerCases cases;
  cases.add("Bilinear", nn::Bilinear(3, 4, 2), both);
  // the padding row's gradient is defined as 0, which central differences do not show
  cases.add("Embedding", nn::Embedding<>(5, 3, {.padding_idx = 1}), one_input, 0);
  cases.add("Embedding", nn::Embedding<5, 3>({.padding_idx = 1}), one_input, 0);
  using enum nn::BagMode;
  for (const auto& [name, mode] : {std::pair{"sum", Sum}, {"mean", Mean}, {"max", Max}}) {
    cases.add(str_cat("EmbeddingBag ", name), nn::EmbeddingBag(5, 3, {.mode = mode}), one_input);
    cases.add(str_cat("EmbeddingBag ", name, " padded"), nn::EmbeddingBag(5, 3, {.mode = mode, .padding_idx = 1}),
              one_input);
    if (mode != Max)
      cases.add(str_cat("EmbeddingBag ", name, " offsets"), nn::EmbeddingBag(5, 3, {.mode = mode}), both);
  }
  cases.add("EmbeddingBag offsets padded", nn::EmbeddingBag(5, 3, {.padding_idx = 1}), both);
  cases.add("EmbeddingBag weighted", nn::EmbeddingBag(5, 3, {.mode = Sum}),
            [](const auto& layer, const Tensors& x, auto&) { return layer.weighted(x[0], x[1]); });
  cases.add("CosineSimilarity", nn::CosineSimilarity(), both);
  cases.add("PairwiseDistance", nn::PairwiseDistance{.p = 3, .keepdim = true}, both);
  cases.check();
}

TEST(MoreLayers, NormsArePyTorchs) {
  LayerCases cases;
  cases.add("LayerNorm axes", nn::LayerNorm<>({2, 3}, {.bias = false}), one_input);
  cases.add("LayerNorm axes", nn::LayerNorm<2, 3>({.bias = false}), one_input);
  cases.add("LayerNorm plain", nn::LayerNorm<>(3, {.eps = 1e-3, .affine = false}), one_input);
  cases.add("GroupNorm plain", nn::GroupNorm<3>(6, {.affine = false}), one_input);
  cases.add("BatchNorm", nn::BatchNorm2d<>(3), with_mode);
  cases.add<Train>("BatchNorm training", nn::BatchNorm2d<3>({.eps = 1e-3, .momentum = 0.3}), with_mode);
  cases.add<Train>("BatchNorm cumulative", nn::BatchNorm1d<>(3, {.momentum = {}, .affine = false}), with_mode);
  cases.add("BatchNorm untracked", nn::BatchNorm1d<>(3, {.track_running_stats = false}), with_mode);
  cases.add("InstanceNorm", nn::InstanceNorm1d<>(3), with_mode);
  cases.add<Train>("InstanceNorm affine", nn::InstanceNorm2d<3>({.affine = true}), with_mode);
  cases.add<Train>("InstanceNorm tracked", nn::InstanceNorm3d<>(2, {.affine = true, .track_running_stats = true}),
                   with_mode);
  cases.add("InstanceNorm inference", nn::InstanceNorm1d<>(3, {.track_running_stats = true}), with_mode);
  cases.add("LocalResponseNorm", nn::LocalResponseNorm{.size = 3, .alpha = 0.5, .k = 2}, one_input);
  cases.add("LocalResponseNorm even", nn::LocalResponseNorm{.size = 2}, one_input);
  cases.check();
}

TEST(MoreLayers, PoolsArePyTorchs) {
  LayerCases cases;
  cases.add("MaxPool1d", nn::MaxPool1d<>({3}, {.stride = {2}, .padding = {1}, .dilation = {2}}), one_input);
  cases.add("MaxPool2d", nn::MaxPool2d<>({3, 2}, {.stride = {2, 1}, .ceil_mode = true}), one_input);
  cases.add("MaxPool3d", nn::MaxPool3d<2>(), one_input);
  cases.add("AvgPool1d", nn::AvgPool1d<3, 2, 1>(), one_input);
  cases.add("AvgPool2d", nn::AvgPool2d<>({2, 3}, {.padding = {1, 1}, .count_include_pad = false}), one_input);
  cases.add("AvgPool3d", nn::AvgPool3d<>({2}, {.stride = {1}, .ceil_mode = true}), one_input);
  cases.add("LPPool2d", nn::LPPool2d(2, {2}, {1}), one_input);
  cases.add("AdaptiveAvgPool1d", nn::AdaptiveAvgPool1d<3>(), one_input);
  cases.add("AdaptiveAvgPool2d", nn::AdaptiveAvgPool2d<>({2, 3}), one_input);
  cases.add("AdaptiveAvgPool3d", nn::AdaptiveAvgPool3d<>({2}), one_input);
  cases.add("AdaptiveMaxPool2d", nn::AdaptiveMaxPool2d<>({2, 3}), one_input);
  cases.add("MaxPoolGlobal", nn::MaxPoolGlobal(), one_input);
  cases.add("AvgPoolGlobal", nn::AvgPoolGlobal(), one_input);
  cases.check();
}

TEST(MoreLayers, WhatReshapesIsPyTorchs) {
  LayerCases cases;
  cases.add("Upsample", nn::Upsample<2>(), one_input);
  cases.add("Upsample bilinear", nn::Upsample<>({.size = {5, 3}, .mode = Interpolation::Bilinear}), one_input);
  cases.add("Upsample linear corners",
            nn::Upsample<>({.scale_factor = 3, .mode = Interpolation::Bilinear, .align_corners = true}), one_input);
  cases.add("Upsample trilinear", nn::Upsample<2>({.mode = Interpolation::Bilinear}), one_input);
  cases.add("PixelShuffle", nn::PixelShuffle{2}, one_input);
  cases.add("PixelUnshuffle", nn::PixelUnshuffle{2}, one_input);
  cases.add("ChannelShuffle", nn::ChannelShuffle{2}, one_input);
  cases.add("Unflatten", nn::Unflatten<1, 2, typed::dyn>(), one_input);
  cases.add("ConstantPad1d", nn::ConstantPad1d({2, -1}, 3.5), one_input);
  cases.add("ZeroPad2d", nn::ZeroPad2d({1, 2, 0, 3}), one_input);
  cases.add("ReflectionPad2d", nn::ReflectionPad2d({1, 2, 0, 1}), one_input);
  cases.add("ReplicationPad3d", nn::ReplicationPad3d({1}), one_input);
  cases.add("CircularPad1d", nn::CircularPad1d({1, 2}), one_input);
  cases.check();
}

TEST(MoreLayers, ActivationsArePyTorchs) {
  LayerCases cases;
  cases.add("PReLU", nn::PReLU(), one_input);
  cases.add("PReLU channels", nn::PReLU(3), one_input);
#define LC_SAME(Name, ...) cases.add(#Name, nn::Name __VA_ARGS__, one_input)
  LC_SAME(Tanh, {}), LC_SAME(Sigmoid, {}), LC_SAME(LogSigmoid, {}), LC_SAME(SiLU, {}), LC_SAME(Mish, {}),
      LC_SAME(SELU, {});
  LC_SAME(Softsign, {}), LC_SAME(Tanhshrink, {}), LC_SAME(Hardswish, {}), LC_SAME(Hardsigmoid, {}), LC_SAME(ReLU, {});
  LC_SAME(ReLU6, {}), LC_SAME(GELU, {}), LC_SAME(LeakyReLU, {0.2}), LC_SAME(ELU, {1.5}), LC_SAME(CELU, {0.5});
  LC_SAME(Softplus, {2, 1.5}), LC_SAME(Hardtanh, {-0.5, 2}), LC_SAME(Hardshrink, {0.3}), LC_SAME(Softshrink, {0.3});
  LC_SAME(Threshold, {0.1, 20}), LC_SAME(Softmax, {1}), LC_SAME(Softmin, {1}), LC_SAME(LogSoftmax, {}),
      LC_SAME(Softmax2d, {});
#undef LC_SAME
  cases.add("GELU tanh", nn::GELU{nn::Approximate::Tanh}, one_input);
  cases.add("GLU", nn::GLU<1>(), one_input);
  cases.add("RReLU", nn::RReLU(), with_mode);
  cases.check();
}

}  // namespace
