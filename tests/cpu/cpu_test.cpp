// The CPU back end compiles elementwise chains, reductions, structured operations and symbolic sizes correctly, in few
// kernels whose sums of products are fused.
#include "lightcone/backends/cpu/cpu.h"

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "agree.h"
#include "error_of.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/verify.h"

using namespace lc;
using namespace lc::test;

TEST(Cpu, Elementwise) {
  Graph g;
  const Tensor a = g.input("a", {37, 5}), b = g.input("b", {5});
  g.output("y", prim::exp2(prim::add(prim::mul(a, expand_to(b, 0, 37)), full_like(a, 0.5))));
  g.output("t", prim::sin(a.permute({1, 0})));
  g.output("p", a.pad(0, 1, 2).slice(1, 1, 4));
  agree(g, {{"a", normals(185, 1)}, {"b", normals(5, 2)}});
}

TEST(Cpu, ReductionsOverAnyAxis) {
  Graph g;
  const Tensor a = g.input("a", {6, 40, 30});
  g.output("s0", prim::sum_reduce(a, 0));
  g.output("s1", prim::sum_reduce(a, 1));
  g.output("m2", prim::max_reduce(a, 2));
  g.output("all", prim::sum_reduce(prim::sum_reduce(prim::sum_reduce(a, 2), 1), 0));
  g.output("windows", prim::max_reduce(prim::max_reduce(a.unfold(1, 3, 2).unfold(2, 2, 2), 4), 3));
  agree(g, {{"a", normals(7200, 1)}});
}

TEST(Cpu, SymbolicSizes) {
  Graph g;
  const Dim s = Dim::symbol("s", 1, 40), p = Dim::symbol("p", 0, 30);
  const Tensor q = g.input("q", {s, 4, 16}), k = g.input("k", {p + s, 4, 16});
  const Tensor scores =
      prim::sum_reduce(prim::mul(expand_to(q.permute({1, 0, 2}), 2, p + s), expand_to(k.permute({1, 0, 2}), 1, s)), 3);
  g.output("y", softmax(scores));
  for (const auto& [sv, pv] : {std::pair{1, 0}, std::pair{1, 9}, std::pair{7, 0}, std::pair{33, 12}})
    agree(g,
          {{"q", normals(static_cast<std::size_t>(sv * 64), 1)},
           {"k", normals(static_cast<std::size_t>((sv + pv) * 64), 2)}},
          {{"s", sv}, {"p", pv}});
}

TEST(Cpu, StructuredOperations) {
  Graph g;
  const Tensor a = g.input("a", {5, 6}), i = g.input("i", {3, 6}, DType::I64), b = g.input("b", {3, 6});
  g.output("gather", prim::gather(a, i, 0));
  g.output("scatter", prim::scatter(a, i, b, 0));
  g.output("add", prim::scatter_add(a, i, prim::exp2(b), 0));
  g.output("slice", prim::slice_scatter(a, prim::exp2(b), 0, 1));
  g.output("sort", prim::argsort(a, 1, true));
  std::vector<float> idx;
  for (int k = 0; k < 18; ++k) idx.push_back(static_cast<float>((k * 7) % 9 - 2));
  agree(g, {{"a", normals(30, 1)}, {"b", normals(18, 2)}, {"i", idx}});
}

// Scatters rows, as an embedding's gradient does: whole rows are added or copied, and several threads share the
// columns.
TEST(Cpu, ScatteredRows) {
  constexpr std::int64_t rows = 9, width = 200, count = 60;
  for (const DType type : {DType::F32, DType::F64}) {
    Graph g;
    const Tensor base = g.input("base", {rows, width}, type), source = g.input("source", {count, width}, type);
    const Tensor ids = g.input("ids", {count}, DType::I64);  // some of them out of range
    index_add(base, 0, ids, source).retrieve("added");
    index_copy(base, 0, ids, source).retrieve("copied");
    std::map<std::string, Value> in{{"base", make_value(type, {rows, width})},
                                    {"source", make_value(type, {count, width})},
                                    {"ids", make_value(DType::I64, {count})}};
    std::mt19937 random(4);
    for (const char* name : {"base", "source"})
      for (double& v : in.at(name).f) v = static_cast<float>(random() % 1000) / 256 - 2;
    for (auto& v : in.at("ids").i) v = static_cast<std::int64_t>(random() % (rows + 2)) - 1;
    const Results want = interpret(g, in, {}, Rounding::Wide, true);
    for (const int threads : {1, 2}) {
      const auto d = compare(want, run_values(transform(g, generic() | cpu({.threads = threads})).graph, in, {}), 4);
      EXPECT_FALSE(d) << d->str();
    }
  }
}

TEST(Cpu, SoftmaxIsOneKernel) {
  Graph g;
  const Tensor a = g.input("a", {33, 70});
  g.output("y", softmax(a));
  EXPECT_EQ(compile(g, generic() | cpu({.threads = 1})).kernels(), 1u);
  agree(g, {{"a", normals(33 * 70, 1)}});
}

// A chain longer than a kernel may be is split and gives right results. (Regression: this never finished compiling.)
TEST(Cpu, LongChainsAreCut) {
  Graph g;
  const Tensor x = g.input("x", {4, 8}), w = g.input("w", {8, 4});
  Tensor t = x;
  for (int k = 0; k < 300; ++k) {
    const Tensor shifted = t.slice(1, 1, 8).pad(1, 0, 1);  // each read of it takes several instructions
    t = prim::maximum(prim::add(shifted, w.transpose(0, 1)), prim::mul(t, full_like(t, k % 2 ? -0.5 : 0.75)));
  }
  g.output("y", t);
  const Program p = compile(g, generic() | cpu({.threads = 1, .compiler = false}));
  EXPECT_GT(p.kernels(), 1u);
  agree(g, {{"x", normals(32, 1)}, {"w", normals(32, 2)}});
}

// A stack of row operations over rows of changing length. Fusion stops at values that are too expensive to inline, and
// a layer is a few kernels, not one for each operation.
TEST(Cpu, DeepStacksOfRowOperations) {
  Graph g;
  Tensor t = g.input("x", {64});
  for (int k = 0; k < 12; ++k) {
    const int row = 4 << k % 3;
    const Tensor r = t.reshape({64 / row, row});
    const Tensor e =
        prim::exp2(prim::add(r, prim::mul(prim::max_reduce(r, 1).unsqueeze(1).expand(r.shape()), full_like(r, -1.0))));
    t = prim::mul(e, prim::recip(prim::sum_reduce(e, 1)).unsqueeze(1).expand(r.shape())).reshape({64});
  }
  g.output("y", t);
  const Program p = compile(g, generic() | cpu({.threads = 1, .compiler = false}));
  EXPECT_LE(p.kernels(), 5u * 12u);
  agree(g, {{"x", normals(64, 3)}});
}

// The same expression occurs in two loops of a kernel, once with other uses of its product and once alone. If it were
// rounded differently, a row's largest element would equal no element of the row.
TEST(Cpu, AnExpressionHasTheSameBitsInEveryLoop) {
  constexpr std::int64_t rows = 40000, columns = 6;
  Graph g;
  const Tensor x = g.input("x", {rows, columns});
  argmax(-log(-log1p(x * (0x1p-24 - 1))), -1).retrieve("place");
  std::vector<float> values;
  std::mt19937 random(1);
  for (std::int64_t k = 0; k < rows * columns; ++k) values.push_back(static_cast<float>(random() >> 8) * 0x1p-24f);
  for (const char* compiler : {"", "llvm"}) {
    Context c(compile(g, generic() | cpu({.threads = 2, .jit = {.compiler = compiler}})));
    const std::vector<std::int64_t> place = c.set("x", values).run().get_i64("place");
    for (std::int64_t row = 0; row < rows; ++row) {
      ASSERT_GE(place[static_cast<std::size_t>(row)], 0) << compiler << ", row " << row;
      ASSERT_LT(place[static_cast<std::size_t>(row)], columns) << compiler << ", row " << row;
    }
  }
}

// Sums of products are fused (FMA), elementwise and in reductions, unless the product itself is stored.
TEST(Cpu, SumsOfProductsAreFused) {
  const auto source = [](const std::function<Tensor(Tensor, Tensor)>& f) {
    Graph g;
    f(g.input("x", {300, 70}), g.input("y", {300, 70})).retrieve();
    const Program p = compile(g, generic() | cpu({.jit = {.compiler = ""}}));
    for (NodeId id = 0; id < p.graph().size(); ++id)
      if (p.graph()[id].op == Op::Kernel) return p.source(p.graph()[id].name);
    return std::string();
  };
  const auto fused = [&](const std::function<Tensor(Tensor, Tensor)>& f) {
    return source(f).find("lc_mul_add_f(") != std::string::npos;
  };
  EXPECT_TRUE(fused([](Tensor x, Tensor y) { return x * y + x; }));
  EXPECT_TRUE(fused([](Tensor x, Tensor y) { return x + y * y; }));
  EXPECT_TRUE(fused([](Tensor x, Tensor) { return sum(exp(x) * sin(x), {1}); }));
  EXPECT_FALSE(fused([](Tensor x, Tensor y) { return x * y; }));
  EXPECT_FALSE(fused([](Tensor x, Tensor y) { return (x + y) * y; }));
}

TEST(Cpu, ThreadsAreCounted) {
  EXPECT_EQ(error_of([&] { cpu({.threads = -3}); }),
            "cpu: -3 threads: there is at least 1, and 0 is one for each core");
}
