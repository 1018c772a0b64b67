// Layers behave in training as in torch.nn, nested layers pass their mode on, and wrong uses are reported.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

#include "error_of.h"
#include "lightcone/nn/layers.h"
#include "lightcone/passes/passes.h"
#include "lightcone/reference/interpreter.h"
#include "lightcone/runtime/program.h"
#include "lightcone/train/trace.h"
#include "on_device.h"

using namespace lc;
using typed::dyn;

namespace {

// Returns the result of a layer without parameters for `x` in training.
template <class M>
std::vector<float> trained(const M& layer, const Shape& shape, const std::vector<float>& values) {
  Graph g;
  nn::Model<M> model(g, layer);
  nn::Training mode(model);
  layer(g.input("x", shape), mode).retrieve("y");
  return Context(compile(g, generic() | test::device())).set("x", values).run().get("y");
}

TEST(Modes, WholeChannelsAreDropped) {
  const std::vector<float> y = trained(nn::Dropout2d(0.25), {40, 10, 2, 2}, std::vector<float>(1600, 1));
  int dropped = 0;
  for (std::size_t c = 0; c < 400; ++c) {
    for (std::size_t k = 1; k < 4; ++k) EXPECT_EQ(y[4 * c + k], y[4 * c]);
    EXPECT_TRUE(y[4 * c] == 0 || std::abs(y[4 * c] - 4.0f / 3) < 1e-6f);
    dropped += y[4 * c] == 0;
  }
  EXPECT_NEAR(dropped, 100, 40);
  EXPECT_PRED2(contains, error_of([] {
                 trained(nn::Dropout1d(), {3}, {1, 1, 1});
               }),
               "Dropout: whole channels are those of [batch, channels, ...], not of [3]");
}

// As in torch: mean 0 and variance 1 are kept, and all dropped elements have the same value.
TEST(Modes, AlphaDropoutKeepsMeanAndVariance) {
  std::vector<float> x;
  for (int k = 0; k < 20000; ++k) x.push_back(static_cast<float>(std::sqrt(3) * ((2 * k + 1) / 20000.0 - 1)));
  const std::vector<float> y = trained(nn::AlphaDropout(0.3), {20000}, x);
  double sum = 0, squares = 0;
  std::map<float, int> count;
  for (const float v : y) sum += v, squares += static_cast<double>(v) * v, ++count[v];
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
  int most = 0;
  for (const auto& [v, n] : count) most = std::max(most, n);
  EXPECT_NEAR(most, 6000, 400);
  EXPECT_EQ(trained(nn::AlphaDropout(1), {2}, {3, -3}), (std::vector<float>{0, -0.0f}));
  EXPECT_EQ(trained(nn::AlphaDropout(0), {2}, {3, -3}), (std::vector<float>{3, -3}));
}

TEST(Modes, RReluDrawsItsSlopes) {
  const std::vector<float> y = trained(nn::RReLU(0.2, 0.4), {1000}, std::vector<float>(1000, -1));
  const auto [low, high] = std::minmax_element(y.begin(), y.end());
  EXPECT_GE(*low, -0.4f);
  EXPECT_LE(*high, -0.2f);
  EXPECT_LT(*low, -0.39f);
  EXPECT_GT(*high, -0.21f);
  EXPECT_EQ(trained(nn::RReLU(), {2}, {1, 2}), (std::vector<float>{1, 2}));
}

// Layers that torch.nn lacks.
TEST(Layers, OfOthers) {
  Graph g;
  const Tensor x = g.input("x", {1, 2, 4});
  nn::Model<nn::Bias1d> last(g, nn::Bias1d(4), "last");
  nn::Model<nn::Bias2d> channels(g, nn::Bias2d(2), "channels");
  last(x).retrieve("last"), channels(x).retrieve("channels");
  nn::MinPool1d<2>()(x).retrieve("min"), nn::MinPoolGlobal()(x).retrieve("least");
  nn::Sequential<nn::Square, nn::Sqrt, nn::Abs>()(x).retrieve("abs");
  nn::Sequential<nn::Exp, nn::Log>()(x).retrieve("same");
  (square(nn::Sin()(x)) + square(nn::Cos()(x))).retrieve("one");
  std::map<std::string, Value> in;
  const auto set = [&](const std::string& name, std::vector<std::int64_t> shape, std::vector<double> v) {
    in[name] = make_value(DType::F32, std::move(shape)), in[name].f = std::move(v);
  };
  using V = std::vector<double>;
  set("x", {1, 2, 4}, {1, -2, 3, 4, 5, 6, -7, 0});
  set("last.bias", {4}, {10, 20, 30, 40}), set("channels.bias", {2}, {100, 200});
  const auto out = interpret(g, in).outputs;
  EXPECT_EQ(out.at("last").f, (V{11, 18, 33, 44, 15, 26, 23, 40}));
  EXPECT_EQ(out.at("channels").f, (V{101, 98, 103, 104, 205, 206, 193, 200}));
  EXPECT_EQ(out.at("min").f, (V{-2, 3, 5, -7}));
  EXPECT_EQ(out.at("least").f, (V{-2, -7}));
  EXPECT_EQ(out.at("abs").f, (V{1, 2, 3, 4, 5, 6, 7, 0}));
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_NEAR(out.at("same").f[k], in.at("x").f[k], 1e-6);
    EXPECT_NEAR(out.at("one").f[k], 1, 1e-6);
  }
}

TEST(Containers, SplitAndAdd) {
  Graph g;
  using Both = nn::SplitInto<nn::Linear<3, 2>, nn::Sequential<nn::Dropout, nn::Linear<3, 2>>>;
  nn::Model<Both> split(g, {}, "split");
  const auto x = typed::input<float, 4, 3>(g, "x");
  const auto [a, b] = split(x);
  static_assert(std::is_same_v<decltype(a), const typed::Tensor<float, 4, 2>>);
  nn::Model<nn::AddInto<nn::Linear<2, 5>, nn::Identity>> add(g, {}, "add");
  const auto y = typed::input<float, 4, 5>(g, "y");
  static_assert(std::is_same_v<decltype(add(a, y)), typed::Tensor<float, 4, 5>>);
  (add(b, y) - add(std::tuple{b, y})).retrieve("zero");
  std::vector<std::string> names;
  for (const nn::Entry& e : split.entries()) names.push_back(e.name);
  EXPECT_EQ(names, (std::vector<std::string>{"split.0.weight", "split.0.bias", "split.1.1.weight", "split.1.1.bias"}));
  EXPECT_EQ(add.entries()[0].name, "add.0.weight");
  Program p = compile(g, generic() | test::device());
  split.initialise(p, 1), add.initialise(p, 1);
  Context c(p);
  c.set("x", std::vector<float>(12, 1)).set("y", std::vector<float>(20, 2)).run();
  EXPECT_EQ(c.get("zero"), std::vector<float>(20, 0));
}

TEST(Containers, BesideEachOther) {
  Graph g;
  const auto x = typed::input<float, 2, 3>(g, "x");
  nn::Model<nn::GeneralizedAdd<nn::Square, nn::Identity>> add(g);
  nn::Model<nn::GeneralizedMul<nn::Square, nn::Identity>> mul(g);
  nn::Model<nn::Residual<nn::Square>> residual(g);
  nn::Model<nn::ResidualMul<nn::Square>> residual_mul(g);
  add(x).retrieve("add"), mul(x).retrieve("mul"), residual(x).retrieve("residual"),
      residual_mul(x).retrieve("residual mul");
  Context c(compile(g, generic() | test::device()));
  c.set("x", std::vector<float>{1, 2, 3, -1, -2, 0}).run();
  const std::vector<float> sum{2, 6, 12, 0, 2, 0}, product{1, 8, 27, -1, -8, 0};
  EXPECT_EQ(c.get("add"), sum);
  EXPECT_EQ(c.get("residual"), sum);
  EXPECT_EQ(c.get("mul"), product);
  EXPECT_EQ(c.get("residual mul"), product);
}

struct Blocks {
  std::vector<nn::Linear<>> layers = {nn::Linear<>(3, 4), nn::Linear<>(4, 2)};
  void visit(nn::Visitor& v) { v("layers", layers); }
  Tensor operator()(Tensor x) const {
    for (const auto& layer : layers) x = layer(x);
    return x;
  }
};
TEST(Containers, AVectorIsAModuleListAndGroupsAreByName) {
  Graph g;
  nn::Model<Blocks> model(g);
  EXPECT_EQ(model.entries()[2].name, "layers.1.weight");
  const auto biases = [](std::string_view name) { return name.ends_with("bias"); };
  ASSERT_EQ(model.parameters(biases).size(), 2u);
  EXPECT_EQ(model.parameters(biases)[1].node().name, "layers.1.bias");
  const Tensor x = g.input("x", {2, 3});
  const auto d = backward(trace(
      model, [](auto& net, const Tensor& x) { return sum(net(x)); }, x));
  ASSERT_EQ(d.updates(biases).size(), 2u);
  EXPECT_EQ(d.updates(biases)[0].parameter.node().name, "layers.0.bias");
}

template <class T, class U>
constexpr bool kSame = std::is_same_v<T, U>;

TEST(TypedLayers, PromiseShapes) {
  Graph g;
  const auto x = typed::input<float, "batch", 4, 8, 6>(g, "x");
  const auto row = typed::input<float, "batch", 6>(g, "row");
  using X = std::remove_const_t<decltype(x)>;
  nn::Inference mode;
#define LC_GIVES(layer, ...)                                                \
  static_assert(kSame<decltype(layer), typed::Tensor<float, __VA_ARGS__>>); \
  static_cast<void>(layer)
  LC_GIVES((nn::MaxPool2d<2>()(x)), "batch", 4, 4, 3);
  LC_GIVES((nn::MinPool2d<3, 1, 1>()(x)), "batch", 4, 8, 6);
  LC_GIVES((nn::AvgPool2d<>({2, 3})(x)), "batch", 4, dyn, dyn);
  LC_GIVES((nn::AdaptiveAvgPool2d<1>()(x)), "batch", 4, 1, 1);
  LC_GIVES((nn::AvgPoolGlobal()(x)), "batch", 4);
  LC_GIVES((nn::Upsample<2>()(x)), "batch", 4, 16, 12);
  LC_GIVES((nn::GLU<1>()(x)), "batch", 2, 8, 6);
  LC_GIVES((nn::ZeroPad2d({1})(x)), "batch", 4, dyn, dyn);
  LC_GIVES((nn::Unflatten<1, 2, dyn>()(row)), "batch", 2, 3);
  LC_GIVES((nn::Reshape<"batch", 3, 2>()(row)), "batch", 3, 2);
  LC_GIVES((nn::FlattenAxes<2, 3>()(x)), "batch", 4, 48);
  LC_GIVES((nn::LeakyReLU{0.2}(row)), "batch", 6);
  LC_GIVES((nn::Softmax{1}(x)), "batch", 4, 8, 6);
#undef LC_GIVES
  static_assert(kSame<decltype(nn::ELU()(typed::input<int, 3>(g, "whole"))), typed::Tensor<float, 3>>);
  static_assert(kSame<decltype(nn::ReLU()(typed::input<int, 3>(g, "whole2"))), typed::Tensor<int, 3>>);
  nn::Model<nn::ConvTranspose2d<4, 2, 3, 2, 1, 1>> up(g, {}, "up");
  static_assert(kSame<decltype(up(x)), typed::Tensor<float, "batch", 2, 16, 12>>);
  EXPECT_EQ(str(up(x).shape()), "[batch, 2, 16, 12]");
  nn::Model<nn::LayerNorm<8, 6>> norm(g, {}, "norm");
  static_assert(kSame<decltype(norm(x)), X>);
  nn::Model<nn::InstanceNorm2d<4>> instance(g, {}, "instance");
  static_assert(kSame<decltype(instance.module()(x, mode)), X>);
  EXPECT_EQ(norm(x).shape(), x.shape());
}

TEST(Layers, ThatWereNotVisitedSayWhoTheyAre) {
  Graph g;
  nn::Inference mode;
  const Tensor x = g.input("x", {2, 4, 5}), ids = g.input("ids", {2, 3}, DType::I64);
  const auto says = [](const std::string& layer, const std::function<void()>& f) {
    expect_error(
        f, layer + ": its parameters were never visited: name the layer in visit(), and call it through its Model", "");
  };
  says("Linear", [&] { nn::Linear<>(5, 2)(x); });
  says("Linear", [&] { nn::Linear<5, 2>()(typed::input<float, 3, 5>(g, "t")); });
  says("Bias", [&] { nn::Bias1d(5)(x); });
  says("Bilinear", [&] { nn::Bilinear(5, 5, 2)(x, x); });
  says("Embedding", [&] { nn::Embedding<>(5, 2)(ids); });
  says("EmbeddingBag", [&] { nn::EmbeddingBag(5, 2)(ids); });
  says("Conv", [&] { nn::Conv1d<>(4, 2, 1)(x); });
  says("ConvTranspose", [&] { nn::ConvTranspose1d<>(4, 2, 1)(x); });
  says("LayerNorm", [&] { nn::LayerNorm<>(5)(x); });
  says("RMSNorm", [&] { nn::RMSNorm<>(5)(x); });
  says("GroupNorm", [&] { nn::GroupNorm<2>(4)(x); });
  says("BatchNorm", [&] { nn::BatchNorm1d<>(4)(x, mode); });
  says("InstanceNorm", [&] { nn::InstanceNorm1d<>(4, {.affine = true})(x, mode); });
  says("PReLU", [&] { nn::PReLU()(x); });
  says("MultiheadAttention", [&] { nn::TransformerEncoderLayer(5, 1, {.norm_first = false})(x, mode); });
}

TEST(Layers, MistakesAreSentences) {
  Graph g;
  const Tensor x = g.input("x", {2, 4, 5}), ids = g.input("ids", {2, 3}, DType::I64);
  const auto says = [](const std::string& sentence, const std::function<void()>& f) { expect_error(f, sentence, ""); };
  says("Conv: 3 groups do not divide 4 channels in and 6 out", [] { nn::Conv1d<>(4, 6, 3, {.groups = 3}); });
  says("Conv: the kernel has 3 extents for 2 spatial axes", [] { nn::Conv2d<>(4, 6, {3, 3, 3}); });
  says("ConvTranspose: 4 groups do not divide 4 channels in and 6 out",
       [] { nn::ConvTranspose1d<>(4, 6, 3, {.groups = 4}); });
  says("max_pool2d: needs [batch, channels, 2 spatial axes], or one sample without a batch, not [2, 3]",
       [&] { nn::MaxPool2d<2>()(ids); });
  says("adaptive_avg_pool2d: needs [batch, channels, 2 spatial axes], or one sample without a batch, not [2, 3]",
       [&] { nn::AdaptiveAvgPool2d<1>()(ids); });
  says("global pool: needs [batch, channels, spatial axes], not [2, 3]", [&] { nn::AvgPoolGlobal()(ids); });
  says("Upsample: a scale of 2 with 1 sizes: it is one or the other",
       [] { nn::Upsample<>({.size = {3}, .scale_factor = 2}); });
  says("Pad: 3 numbers for 4 sides", [] { nn::ZeroPad2d({1, 2, 3}); });
  says("ChannelShuffle: 3 groups do not divide the channels of [2, 4, 5]", [&] { nn::ChannelShuffle{3}(x); });
  says("AlphaDropout: p is 2, not a probability", [&] { trained(nn::AlphaDropout(2), {2}, {1, 1}); });
  nn::Model<nn::LayerNorm<>> norm(g, nn::LayerNorm<>({4, 6}), "norm");
  says("LayerNorm: [2, 4, 5] does not end with the normalized shape [4, 6]", [&] { norm(x); });
  nn::Model<nn::EmbeddingBag> bag(g, nn::EmbeddingBag(5, 2, {.mode = nn::BagMode::Max}), "bag");
  says("EmbeddingBag: ids are [bags, n], or [n] with offsets [bags], and not [2, 4, 5]", [&] { bag.module()(x); });
  says("EmbeddingBag: the mode Max takes ids [bags, n]",
       [&] { bag.module()(g.input("a", {3}, DType::I64), g.input("b", {2}, DType::I64)); });
  says("EmbeddingBag: weights [2, 3] of ids [2, 3]: they have one shape, and are for the mode Sum", [&] {
    bag.module().weighted(ids, g.input("w", {2, 3}));
  });
  nn::Model<nn::Bilinear> bilinear(g, nn::Bilinear(5, 3, 2), "bilinear");
  says("Bilinear: [2, 4, 5] and [2, 4, 5] are not [..., 5] and [..., 3]", [&] { bilinear.module()(x, x); });
  says("Embedding: padding_idx is 7, and there are 5 rows",
       [&] { nn::Model<nn::Embedding<>> padded(g, nn::Embedding<>(5, 3, {.padding_idx = 7}), "padded"); });
  says("LocalResponseNorm: 0 neighbours of [2, 4, 5], which is not [batch, channels, ...]",
       [&] { nn::LocalResponseNorm{.size = 0}(x); });
}

}  // namespace
