// half() stores and computes a model in f16 or bf16, keeps in f32 what must stay, and costs no more error than
// documented.
#include "lightcone/lowering/types/half_precision.h"

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

const DType kTypes[] = {DType::F16, DType::BF16};

// Returns the bound of a network's root mean square error, relative to its results: some roundings of 2^-11 or 2^-8.
double bound(DType t) { return t == DType::F16 ? 1.5e-3 : 1.2e-2; }

Graph linear_layer(int rows = 4, int in = 64, int out = 32) {
  Net n;
  return n.done(n.dense(n.input("x", {rows, in}), "fc", in, out));
}

int inputs_of(const Graph& g, DType t) {
  int n = 0;
  for (NodeId id = 0; id < g.size(); ++id) n += g[id].op == Op::Input && g[id].dtype == t;
  return n;
}

}  // namespace

TEST(Half, NetworksAreAsFarFromF64AsTheirTypeIs) {
  const Graph nets[] = {mlp(), resnet(), gpt()};
  for (const DType t : kTypes)
    for (const Graph& g : nets) {
      const double exact = error_in(g, generic() | test::device()),
                   error = error_in(g, generic() | half(t) | test::device());
      EXPECT_LT(exact, 1e-6);
      EXPECT_LT(error, bound(t)) << name(t);
      EXPECT_GT(error, bound(t) / 100) << name(t) << ": nothing was rounded";
    }
}

// (For bf16 products the CPU may keep the operands of a few rows exact.)
TEST(Half, EveryPassBehindItIsTheReferences) {
  for (const DType t : kTypes)
    for (const Graph& g : {mlp(8, 96, 64), gpt(9, 32, 2)}) {
      const VerifyReport r =
          verify(g, generic() | half(t) | generic() | test::device(),
                 {.trials = 1, .wild = false, .shrink = false, .products = t == DType::BF16 ? 0x1p-8 : 0});
      EXPECT_TRUE(r.ok()) << r.str();
    }
}

TEST(Half, RoundsAsPyTorch) {
  int seen = 0;
  for (const TorchCase& c : torch_cases("narrow.txt")) {
    if (c.name != "f16" && c.name != "bf16") continue;
    ++seen;
    const auto k = static_cast<int>(c.in[0].shape[1]);
    Graph g;
    g.output("y", linear(g.input("x", {static_cast<int>(c.in[0].shape[0]), k}),
                         g.parameter("w", {static_cast<int>(c.in[1].shape[0]), k}, DType::F32)));
    Program p = compile(g, half(c.name == "f16" ? DType::F16 : DType::BF16) | generic() | test::device());
    const Inputs values{{"x", c.in[0]}, {"w", c.in[1]}};
    give(p, values);
    const Compiled rounded = transform(g, half(c.name == "f16" ? DType::F16 : DType::BF16));
    EXPECT_LT(distance(c.out[0].f, interpret(rounded.graph, values).outputs.at("y").f), 1e-6) << c.name;
    // for up to four rows the CPU keeps bits that bf16 would remove (Precision::Medium)
    EXPECT_LT(distance(c.out[0].f, answer(p, values)), c.name == "f16" ? 1e-6 : 4e-3) << c.name;
  }
  EXPECT_EQ(seen, 4);
}

TEST(Half, NamesShapesAndTypesStay) {
  const Graph g = gpt();
  const Compiled c = transform(g, generic() | half());
  EXPECT_EQ(inputs_of(c.graph, DType::F16), 0);
  EXPECT_EQ(inputs_of(c.graph, DType::F32), inputs_of(g, DType::F32));
  EXPECT_EQ(c.graph[c.graph.roots()[0].edge.node].dtype, DType::F32);
  EXPECT_GT(fired(c.log, "parameter in f16"), 8);
  EXPECT_EQ(fired(c.log, "product in f16"), 6);
  EXPECT_GE(fired(c.log, "value in f16"), 2);  // the residual stream
}

// The loaded f32 weight is not kept, in either layout of the matrix.
TEST(Half, WeightsTakeHalfOfTheirMemory) {
  for (const bool transposed : {false, true})
    for (const DType t : kTypes) {
      Graph g;
      const Tensor w = g.parameter("w", {512, 1024}, DType::F32);
      g.output("y", matmul(g.input("x", {2, transposed ? 1024 : 512}), transposed ? w.t() : w));
      const Program p = compile(g, half(t) | generic() | test::device());
      EXPECT_EQ(p.plan().prepared_bytes, 512u * 1024 * 2) << name(t);
      EXPECT_FALSE(p.resident("w"));
      EXPECT_EQ(p.interpreted(), 0u);
    }
}

// An embedding reads rows of the weight that the head multiplies by: they share one copy.
TEST(Half, ATiedEmbeddingIsStoredOnce) {
  Graph g;
  const Tensor w = g.parameter("w", {1024, 128}, DType::F32);
  g.output("y", linear(embedding(g.input("ids", {5}, DType::I64), w), w));
  const Program p = compile(g, generic() | half() | test::device());
  EXPECT_EQ(p.plan().prepared_bytes, 1024u * 128 * 2);
  EXPECT_FALSE(p.resident("w"));
}

TEST(Half, StatesF64WholeNumbersAndTrainedWeightsStay) {
  Graph g;
  const Tensor state = g.input("state", {4}), x = g.input("x", {4}), wide = g.input("wide", {4}, DType::F64);
  const Tensor trained = g.parameter("trained", {4}, DType::F32);
  g.assign(state, state * 0.5 + x), g.assign(trained, trained + x);
  g.output("wide", wide * 3.0), g.output("state", state + trained);
  const Compiled c = transform(g, half());
  for (NodeId id = 0; id < c.graph.size(); ++id) EXPECT_FALSE(is_half(c.graph[id].dtype)) << c.graph.str();
}

// 1e5 exceeds the range of f16 and becomes infinity; bf16 holds it.
TEST(Half, WhatIsTooLargeForF16IsInfinite) {
  Graph g = linear_layer(1, 4, 1);
  for (const DType t : kTypes) {
    Program p = compile(g, half(t) | generic() | test::device());
    Inputs v = trained_values(g, 1);
    v["x"].f = {1, 0, 0, 0}, v["fc.weight"].f = {1e5, 1, 1, 1};
    give(p, v);
    const double y = answer(p, v)[0];
    if (t == DType::F16) EXPECT_TRUE(std::isinf(y)) << y;
    else EXPECT_NEAR(y, 1e5, 1e3);
  }
}

TEST(Half, NaNAndInfinityPassThrough) {
  Graph g = linear_layer();
  for (const DType t : kTypes) {
    Program p = compile(g, half(t) | generic() | test::device());
    Inputs v = trained_values(g, 1);
    v["x"].f[3] = kNaN, v["x"].f[64] = kInf;
    give(p, v);
    const auto y = answer(p, v);
    for (int k = 0; k < 32; ++k) EXPECT_TRUE(std::isnan(y[static_cast<std::size_t>(k)]));
    for (int k = 32; k < 64; ++k) EXPECT_TRUE(!std::isfinite(y[static_cast<std::size_t>(k)]));
    for (int k = 64; k < 128; ++k) EXPECT_TRUE(std::isfinite(y[static_cast<std::size_t>(k)]));
  }
}

TEST(Half, Mistakes) {
  EXPECT_EQ(error_of([] { half(DType::F64); }), "half: to f64: a model is rounded to f16 or bf16");
  Graph g;
  g.output("y", g.input("ids", {3}, DType::I64) + 1);
  EXPECT_EQ(error_of([&] { compile(g, half() | generic() | test::device()); }),
            "half: nothing in the graph is f32, so there is nothing to round to f16");
}
