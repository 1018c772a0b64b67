// int8() stores weights as bytes by channel or by group, and activations too where a Calibration gave their range.
#include "lightcone/lowering/types/int8.h"

#include <cmath>

#include "error_of.h"
#include "lightcone/lightcone.h"
#include "narrow.h"
#include "nets.h"
#include "on_device.h"
#include "torch_cases.h"

using namespace lc;
using namespace lc::test;

namespace {

Tensor parameter(Graph& g, const std::string& name, Shape s, DType t = DType::F32) {
  return g.parameter(name, std::move(s), t);
}
Graph product(int rows, int in, int out, DType t = DType::F32) {
  Graph g;
  g.output("y", linear(g.input("x", {rows, in}), prim::cast(parameter(g, "w", {out, in}, t), DType::F32)));
  return g;
}

ActivationRanges ranges_of(const Graph& g, const Inputs& values) {
  Calibration seen(g);
  Program p = compile(seen.graph(), generic() | test::device());
  give(p, values);
  Context c(p);
  set(c, p, values);
  seen.add(c.run());
  return seen.ranges();
}

std::vector<double> on_values(const Graph& g, const Compiler& c, const Inputs& v) {
  Program p = compile(g, c);
  EXPECT_EQ(p.interpreted(), 0u);
  give(p, v);
  return answer(p, v);
}

}  // namespace

// Bounds the root mean square error relative to the results; the quantization step is 1 / 254 of the largest weight.
TEST(Int8, NetworksAreAsFarFromF64AsBytesAre) {
  struct Case {
    const char* name;
    Graph g;
    Int8Options options;
    double bound;
  };
  const Case cases[] = {{"mlp", mlp(), {}, 2.5e-2},
                        {"block", gpt(), {}, 1.2e-2},
                        {"block in groups of 32", gpt(), {.group = 32}, 8e-3},
                        {"block in groups of 64", gpt(), {.group = 64}, 1.2e-2},
                        {"head of a convolution net", vgg(), {}, 1.2e-2},
                        {"convolution net", vgg(), {.convolutions = true}, 2.5e-2}};
  for (const Case& c : cases) {
    const double error = error_in(c.g, generic() | int8(c.options) | test::device());
    EXPECT_LT(error, c.bound) << c.name;
    EXPECT_GT(error, c.bound / 20) << c.name << ": nothing was rounded";
  }
}

TEST(Int8, EveryPassBehindItIsTheReferences) {
  for (const Int8Options& o : {Int8Options{}, Int8Options{.group = 32}})
    for (const Graph& g : {mlp(4, 96, 64), gpt(9, 32, 2)}) {
      const VerifyReport r =
          verify(g, generic() | int8(o) | generic() | test::device(), {.trials = 1, .wild = false, .shrink = false});
      EXPECT_TRUE(r.ok()) << r.str();
    }
}

TEST(Int8, RoundsAsPyTorch) {
  int seen = 0;
  for (const TorchCase& c : torch_cases("narrow.txt")) {
    if (!c.name.starts_with("int8")) continue;
    ++seen;
    const auto extent = [&](int of, int axis) {
      return static_cast<int>(c.in[static_cast<std::size_t>(of)].shape[static_cast<std::size_t>(axis)]);
    };
    const Graph g = product(extent(0, 0), extent(0, 1), extent(1, 0));
    const Inputs values{{"x", c.in[0]}, {"w", c.in[1]}};
    Int8Options o;
    if (c.name.ends_with("32")) o.group = 32;
    if (c.name.ends_with("64")) o.group = 64;
    if (c.name.ends_with("by int8")) o.activations = ranges_of(g, values);
    EXPECT_LT(distance(c.out[0].f, on_values(g, int8(o) | generic() | test::device(), values)), 2e-6) << c.name;
  }
  EXPECT_EQ(seen, 8);
}

// Weights take a quarter, plus a scale per channel. The given weight is not kept.
TEST(Int8, WeightsTakeAQuarterOfTheirMemory) {
  for (const int rows : {1, 64})
    for (const DType t : {DType::F32, DType::BF16}) {
      const Program bytes = compile(product(rows, 1024, 512, t), generic() | int8() | test::device()),
                    blocks = compile(product(rows, 1024, 512, t), generic() | int8({.group = 32}) | test::device());
      EXPECT_EQ(bytes.plan().prepared_bytes, 512u * 1024 + 512 * 4) << rows;
      EXPECT_LE(blocks.plan().prepared_bytes, 512u * 1024 / 32 * 36) << rows;  // 34 bytes per block, and its scales
      EXPECT_FALSE(bytes.resident("w"));
      EXPECT_FALSE(blocks.resident("w"));
      if (rows > 1) continue;  // for many rows some weights are unpacked
      EXPECT_LT(bytes.plan().arena_bytes, 128u * 1024);
      EXPECT_LT(blocks.plan().arena_bytes, 128u * 1024);
    }
}

// Loading a weight again quantizes it anew, although the first weight was not kept.
TEST(Int8, AWeightMayBeLoadedAgain) {
  const Graph g = product(3, 64, 32);
  Program p = compile(g, int8() | generic() | test::device());
  const Inputs first = trained_values(g, 1), second = trained_values(g, 2);
  give(p, first);
  const auto before = answer(p, first);
  give(p, second);
  EXPECT_GT(distance(before, answer(p, first)), 0.1);
  give(p, first);
  EXPECT_EQ(answer(p, first), before);
}

TEST(Int8, AnEmbeddingReadsTheBytesOfItsHead) {
  for (const int group : {0, 64}) {
    Graph g;
    const Tensor w = parameter(g, "w", {1024, 128});
    g.output("y", linear(embedding(g.input("ids", {5}, DType::I64), w), w));
    const Compiled c = transform(g, int8({.group = group}));
    EXPECT_EQ(fired(c.log, "embedding of bytes"), 1);
    const Program p = compile(g, generic() | int8({.group = group}) | test::device());
    EXPECT_LT(p.plan().prepared_bytes, 1024u * 128 * 5 / 4);
    EXPECT_FALSE(p.resident("w"));
  }
}

TEST(Int8, EveryOrderOfAMatrix) {
  Graph g;
  const Tensor x = g.input("x", {2, 6, 64});
  g.output("in out", matmul(x, parameter(g, "a", {64, 32})));
  g.output("out in", matmul(x, parameter(g, "b", {32, 64}).t()));
  g.output("batch", matmul(x, parameter(g, "c", {2, 64, 32})));
  g.output("left", matmul(parameter(g, "d", {32, 6}), x));
  g.output("vector", matmul(x, parameter(g, "e", {64})));
  const Inputs v = trained_values(g, 3);
  const auto want = interpret(g, v).outputs;
  for (const Compiler& c :
       {generic() | int8() | test::device(), int8() | generic() | test::device({.precision = Precision::Medium})}) {
    Program p = compile(g, c);
    EXPECT_EQ(fired(p.log(), "weight in bytes"), 5);
    give(p, v);
    for (const auto& [name, y] : want) EXPECT_LT(distance(y.f, answer(p, v, name)), 1.5e-2) << name;
  }
}

TEST(Int8, ChannelsOfZerosNaNAndInfinities) {
  const Graph g = product(2, 32, 4);
  Inputs v = trained_values(g, 1);
  for (std::size_t k = 0; k < 32; ++k) v["w"].f[k] = 0;
  v["w"].f[32 + 5] = kNaN, v["w"].f[64 + 7] = -kInf;
  for (const int group : {0, 32}) {
    const auto y = on_values(g, generic() | int8({.group = group}) | test::device(), v);
    EXPECT_EQ(y[0], 0) << group;
    EXPECT_TRUE(std::isnan(y[1])) << group;
    EXPECT_FALSE(std::isfinite(y[2])) << group;
    EXPECT_TRUE(std::isfinite(y[3])) << group;
  }
}

// ---- activations --------------------------------------------------------------------------------

TEST(Int8, RangesAreTheLargestThatWereSeen) {
  const Graph g = product(2, 3, 4);
  Inputs v = trained_values(g, 1);
  v["x"].f = {1, -5, 0.5, -2, 3, 0.25};
  Calibration seen(g);
  EXPECT_EQ(error_of([&] { seen.ranges(); }), "Calibration: nothing was run yet: add() a context that has run graph()");
  Program p = compile(seen.graph(), generic() | test::device());
  give(p, v);
  Context c(p);
  set(c, p, v);
  seen.add(c.run());
  c.set("x", std::vector<float>{0, std::nanf(""), -1, 0, 0, 0}), seen.add(c.run());
  EXPECT_EQ(seen.ranges().at("w"), (std::vector<float>{2, 5, 1}));
}

TEST(Int8, BytesTimesBytesAreExactSums) {
  for (const Graph& g : {mlp(8, 96, 64), gpt(9, 32, 2)}) {
    const Inputs v = trained_values(g, 1);
    const Compiler both = generic() | int8({.activations = ranges_of(g, v)}) | test::device();
    const Program p = compile(g, both);
    EXPECT_GT(fired(p.log(), "product of bytes"), 2);
    const double error = distance(interpret(g, v).outputs.at("y").f, on_values(g, both, v)),
                 weights = error_in(g, generic() | int8() | test::device());
    EXPECT_LT(error, 3e-2);
    EXPECT_GT(error, weights);
    const VerifyReport r = verify(g, both, {.trials = 1, .wild = false, .shrink = false});
    EXPECT_TRUE(r.ok()) << r.str();
  }
}

// Activations beyond the calibrated range are clamped.
TEST(Int8, ActivationsAreCutOffAtTheirRange) {
  const Graph g = product(1, 2, 2);
  Inputs v;
  v["x"] = make_value(DType::F32, {1, 2}), v["w"] = make_value(DType::F32, {2, 2});
  v["x"].f = {9, -0.5}, v["w"].f = {1, 1, 0, 1};
  EXPECT_NEAR(on_values(g, int8({.activations = {{"w", {1, 1}}}}) | generic() | test::device(), v)[0], 1 - 0.5, 0.005);
}

// ---- mistakes -----------------------------------------------------------------------------------

TEST(Int8, Mistakes) {
  const auto with = [](const Int8Options& o, const Graph& g) {
    return error_of([&] { compile(g, int8(o) | generic() | test::device()); });
  };
  EXPECT_EQ(error_of([] { int8({.group = 48}); }),
            "int8: groups of 48: 32, 64 or 128 weights share a scale, or with 0 a channel");
  Graph none;
  none.output("y", matmul(none.input("a", {2, 3}), none.input("b", {3, 4})));
  EXPECT_EQ(with({}, none),
            "int8: no product has a parameter for a factor, so there are no weights to store in bytes: mark "
            "them, nn::parameter or Graph::parameter()");
  EXPECT_TRUE(
      contains(with({.group = 32}, product(2, 48, 4)),
               "'w' is summed along 48 numbers, which groups of 32 do not divide: another group, or leave it as "
               "it is, Int8Options::leave"));
  EXPECT_EQ(with({.leave = {"v"}}, product(2, 32, 4)), "int8: the graph has no parameter 'v'");
  EXPECT_EQ(with({.activations = {{"v", {1}}}}, product(2, 32, 4)), "int8: the graph has no parameter 'v'");
  EXPECT_EQ(with({.group = 32, .activations = {{"w", {1}}}}, product(2, 32, 4)),
            "int8: activations in bytes need a scale for each channel, and not for groups: leave `group` at 0");
}
