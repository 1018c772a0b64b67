// Models that are plain structs have the right parameter names, modes and frozen parts.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

#include "error_of.h"
#include "lightcone/nn/layers.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/train/trace.h"
#include "on_device.h"

using namespace lc;
static_assert(std::has_virtual_destructor_v<nn::ModelBase>);  // `lightcone train` deletes models through it

namespace {

struct Net {
  nn::Frozen<nn::Embedding<10, 8>> embed;
  nn::Linear<8, 16> fc;
  nn::Repeated<nn::Sequential<nn::Linear<16, 16>, nn::ReLU, nn::Dropout>, 2> blocks;
  nn::Residual<nn::LayerNorm<16>> norm;
  nn::Linear<> head{16, 3, {.bias = false}};
  void visit(nn::Visitor& v) { v("embed", embed)("fc", fc)("blocks", blocks)("norm", norm)("head", head); }
  auto operator()(const auto& ids, auto& mode) const { return head(Tensor(norm(blocks(fc(embed(ids)), mode)))); }
};

std::vector<std::string> names(const std::vector<nn::Entry>& entries) {
  std::vector<std::string> n;
  for (const nn::Entry& e : entries) n.push_back(e.name);
  return n;
}

TEST(Module, ParametersAreNamedByTheirPath) {
  Graph g;
  nn::Model<Net> net(g);
  EXPECT_EQ(names(net.entries()), (std::vector<std::string>{"embed.weight", "fc.weight", "fc.bias", "blocks.0.0.weight",
                                                            "blocks.0.0.bias", "blocks.1.0.weight", "blocks.1.0.bias",
                                                            "norm.weight", "norm.bias", "head.weight"}));
  EXPECT_EQ(net.count(), 16 * 8 + 16 + 2 * (16 * 16 + 16) + 2 * 16 + 3 * 16);
  EXPECT_PRED2(contains, net.summary(), "embed.weight       [10, 8]   80  frozen");
  Graph other;
  nn::Model<nn::Linear<2, 2>> inside(other, {}, "encoder.0");
  EXPECT_EQ(inside.entries()[0].name, "encoder.0.weight");
}

TEST(Module, FrozenPartsHaveNoGradients) {
  Graph g;
  nn::Model<Net> net(g);
  const Tensor ids = g.input("ids", {4}, DType::I64);
  auto d = backward(trace(
      net, [](auto& net, const Tensor& ids) { return sum(square(net(ids))); }, ids));
  EXPECT_EQ(d.updates().size(), net.entries().size() - 1);
  for (const optim::Update& u : d.updates()) EXPECT_NE(u.parameter.node().name, "embed.weight");
}

TEST(Module, FrozenLayersStandInModelsThatTrain) {
  Graph g;
  nn::Model<nn::Sequential<nn::Frozen<nn::Linear<8, 8>>, nn::Frozen<nn::Dropout>, nn::Linear<8, 1>>> net(g);
  const auto x = typed::input<float, 4, 8>(g, "x");
  auto d = backward(trace(
      net, [](auto& net, auto x) { return mean(net(x)); }, x));
  ASSERT_EQ(d.updates().size(), 2u);
  EXPECT_EQ(d.updates()[0].parameter.node().name, "2.weight");
}

struct Sum {
  void visit(nn::Visitor&) {}
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c, const nn::At& at = nn::At::current()) const {
    return nn::located(a, at) + b + nn::located(c, at) * nn::located(a, at);
  }
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d,
                    const nn::At& at = nn::At::current()) const {
    return (*this)(a, b, nn::located(c, at) + d, at);
  }
};

// The error names the line of the call, whatever modules contain the layer.
TEST(Module, ErrorsNameTheLineOfTheCall) {
  Graph g;
  const Tensor x = g.input("x", {2, 8}), narrow = g.input("narrow", {2, 7});
  const auto at = [](int line) { return str_cat("module_test.cpp:", line); };
  nn::Model<nn::Linear<>> alone(g, {8, 4}, "alone");
  EXPECT_PRED2(contains, error_of([&] { alone(narrow); }), at(__LINE__));
  nn::Sequential blocks(
      nn::Repeated<nn::Sequential<nn::Linear<>, nn::ReLU>, 2>(nn::Sequential(nn::Linear<>{8, 8}, nn::ReLU())),
      nn::Frozen<nn::Linear<>>{{8, 4}});
  nn::Model net(g, blocks, "net");
  EXPECT_EQ(net(x).shape(), (Shape{2, 4}));
  EXPECT_PRED2(contains, error_of([&] { net(narrow); }), at(__LINE__));
  InTraining training(net);
  EXPECT_PRED2(contains, error_of([&] { training(narrow); }), at(__LINE__));
  nn::Model<nn::Residual<nn::Linear<>>> shortcut(g, {{8, 4}}, "shortcut");
  EXPECT_PRED2(contains, error_of([&] { shortcut(x); }), at(__LINE__));
  nn::Model<nn::Bilinear> two(g, {8, 8, 4}, "two");
  EXPECT_PRED2(contains, error_of([&] { two(x, narrow); }), at(__LINE__));
  nn::Model<Sum> sum(g);
  EXPECT_PRED2(contains, error_of([&] { sum(x, x, narrow); }), at(__LINE__));
  EXPECT_PRED2(contains, error_of([&] { sum(x, x, x, narrow); }), at(__LINE__));
  EXPECT_PRED2(contains, error_of([&] { x[2]; }), at(__LINE__));
  const Dim n = Dim::symbol("n", 1, 8);
  EXPECT_EQ(g.input("rows", {n, 3})[n - 1].node().where.line, static_cast<std::uint32_t>(__LINE__));
}

TEST(Module, OfOneNameTwiceInAGraphTheLineIsTheSecondOnes) {
  Graph g;
  const nn::Model<nn::Linear<4, 3>> first(g), other(g, {}, "other");
  const int line = __LINE__ + 1;
  const std::string said = error_of([&] { nn::Model<nn::Linear<4, 3>>{g}; });
  EXPECT_PRED2(contains, said, "'weight' exists already");
  EXPECT_PRED2(contains, said, str_cat("module_test.cpp:", line));
}

TEST(Module, DropsOutOnlyWhileItTrains) {
  Graph g;
  nn::Model<nn::Sequential<nn::Dropout>> net(g);
  const auto x = typed::input<float, 1000>(g, "x");
  net(x).retrieve("inference");
  InTraining<nn::Sequential<nn::Dropout>> training(net);
  training(x).retrieve("training");
  Context c(compile(g, generic() | test::device()));
  c.set("x", std::vector<float>(1000, 1)).run();
  EXPECT_EQ(c.get("inference"), std::vector<float>(1000, 1));
  const std::vector<float> dropped = c.get("training");
  const auto zeros = std::count(dropped.begin(), dropped.end(), 0.0f),
             twos = std::count(dropped.begin(), dropped.end(), 2.0f);
  EXPECT_EQ(zeros + twos, 1000);
  EXPECT_NEAR(static_cast<double>(zeros), 500, 80);
}

TEST(Module, BatchNormKeepsStatistics) {
  Graph g;
  nn::Model<nn::BatchNorm1d<2>> net(g);
  const auto x = typed::input<float, 4, 2>(g, "x");
  net(x).retrieve("inference");
  InTraining<nn::BatchNorm1d<2>> training(net);
  training(x).retrieve("training");
  Program p = compile(g, generic() | test::device());
  net.initialise(p, 0);
  Context c(p);
  c.set("x", std::vector<float>{1, 10, 2, 10, 3, 10, 6, 10}).run();  // means 3 and 10, unbiased variances 14 / 3 and 0
  const std::vector<float> y = c.get("training"), mean = c.get("running_mean"), var = c.get("running_var");
  EXPECT_NEAR(y[0], -2 / std::sqrt(3.5), 1e-5);
  EXPECT_NEAR(y[1], 0, 1e-5);
  EXPECT_NEAR(mean[0], 0.3, 1e-6);
  EXPECT_NEAR(mean[1], 1, 1e-6);
  EXPECT_NEAR(var[0], 0.9 + 0.1 * 14 / 3, 1e-6);
  EXPECT_NEAR(var[1], 0.9, 1e-6);
  EXPECT_EQ(c.get_i64("num_batches_tracked"), std::vector<std::int64_t>{1});
  EXPECT_NEAR(c.get("inference")[0], 1 / std::sqrt(1 + 1e-5), 1e-5);  // by the running statistics before the run
}

TEST(Module, BatchNormDoesNotTrainOnOneValue) {
  Graph g;
  nn::Model<nn::BatchNorm1d<2>> net(g);
  const Tensor one = g.input("one", {1, 2});
  net(one);  // inference uses the running statistics
  InTraining<nn::BatchNorm1d<2>> training(net);
  EXPECT_PRED2(contains, error_of([&] { training(one); }),
               "batch_norm: training needs more than one value in a channel, and [1, 2] has one: take a larger batch");
  training(g.input("some", {Dim::symbol("n", 1, 9), 2}));  // the batch size is not known yet
}

TEST(Module, FirstValuesDependOnTheSeedAlone) {
  const auto values = [](std::int64_t seed) {
    Graph g;
    nn::Model<nn::Linear<64, 32>> net(g);
    net(typed::input<float, 1, 64>(g, "x")).retrieve("y");
    Program p = compile(g, generic() | test::device());
    net.initialise(p, seed);
    Context c(p);
    return c.set("x", std::vector<float>(64, 1)).run().get("y");
  };
  EXPECT_EQ(values(3), values(3));
  EXPECT_NE(values(3), values(4));
}

TEST(Module, MistakesAreSentences) {
  Graph g;
  nn::Model<nn::Linear<3, 3>> net(g);
  EXPECT_PRED2(contains, error_of([&] { nn::Model<nn::Linear<3, 3>> again(g); }), "'weight' exists already");
  nn::Model<nn::Linear<3, 3>> other(g, {}, "other");
  const Tensor x = g.input("x", {2, 3});
  const auto loss = [](auto& net, const Tensor& x) { return sum(net(x)); };
  EXPECT_PRED2(contains, error_of([&] { update(net, optim::SGD{}, backward(trace(other, loss, x))); }),
               "gradients of another model of the same type");
  auto d = backward(trace(net, loss, x));
  update(net, optim::SGD{}, std::move(d));
  EXPECT_PRED2(contains, error_of([&] { update(net, optim::SGD{}, std::move(d)); }),
               "these gradients were used already");
  EXPECT_PRED2(contains, error_of([&] {
                 static_cast<void>(backward(trace(
                     other, [](auto&, const Tensor& x) { return sum(x); }, x)));
               }),
               "the loss does not depend on 'other.weight' [3, 3]");
}

}  // namespace

TEST(Module, LinearWithoutABiasInItsType) {
  Graph g;
  nn::Model<nn::Sequential<nn::Linear<8, 4, false>, nn::Linear<4, 2>>> net(g);
  const auto x = typed::input<float, 3, 8>(g, "x");
  net(x).retrieve("y");
  std::vector<std::string> names;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && g[id].parameter) names.push_back(g[id].name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "1.weight", "1.bias"}));
}
