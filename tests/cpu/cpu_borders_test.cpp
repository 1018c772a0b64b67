// The CPU back end reads nothing outside an array that is padded, and divides by no extent that is zero. Its code
// decides borders without divisions and is about as long where an extent may be zero.
#include "lightcone/backends/cpu/cpu.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "agree.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

using namespace lc;
using namespace lc::test;

// Rows of two to five numbers between rows of zeros. GCC 12 would unroll such rows whole, make vectors of rows that may
// or may not be read, and take the wrong elements.
TEST(Cpu, ShortRowsBetweenZeros) {
  Graph g;
  std::map<std::string, std::vector<float>> inputs;
  for (const int wide : {2, 3, 4, 5, 8, 16}) {
    const std::string name = "x" + std::to_string(wide);
    const Tensor x = g.input(name, {5, wide}), y = x.pad(0, 2, 2);
    g.output(name + " as it is", y);
    g.output(name + " turned round", y.flip(1));
    inputs[name] = normals(static_cast<std::size_t>(5 * wide), static_cast<unsigned>(wide));
  }
  agree(g, inputs);
}

// Rows between rows of zeros, whose elements lie side by side in one iteration. GCC 12 would load all vectors of them
// by the mask of the first.
TEST(Cpu, NeighboursUnderOneGuard) {
  Graph g;
  std::map<std::string, std::vector<float>> inputs;
  for (const int wide : {2, 3, 5})
    for (const DType t : {DType::F32, DType::F64, DType::I32}) {
      const std::string name = "x" + std::to_string(wide) + std::string(lc::name(t));
      const Tensor x = to(g.input(name, {2, 3, 5, wide}), t).permute({1, 0, 2, 3});
      g.output(name + " between", x.pad(2, 2, 2).pad(3, 2, 2));
      g.output(name + " after", x.pad(2, 2, 2).pad(3, wide, 0));
      g.output(name + " twice", x.pad(2, 1, 3).pad(3, 1, 0) + x.pad(2, 3, 1).pad(3, 0, 1));
      inputs[name] = normals(static_cast<std::size_t>(30 * wide), static_cast<unsigned>(wide));
    }
  agree(g, inputs);
}

// Regression: GCC 12 loaded a whole vector and blended where padding masks its ends.
TEST(Cpu, PaddingReadsNothingOutside) {
  for (const int width : {5, 12, 27, 60}) {
    Graph g;
    g.output("y", g.input("x", {2, width, 1}).pad(1, 1, 2));
    agree(g, {{"x", normals(static_cast<std::size_t>(2 * width), 1)}});
  }
}

// In the padding, an index may denote an element of the next row. Reads of the padded value are still decided without
// division.
TEST(Cpu, BordersAroundBordersNeedNoDivisions) {
  Graph g;
  Tensor t = prim::mul(g.input("x", {2, 13, 14}), g.input("s", {2, 13, 14}));
  for (const int axis : {1, 2}) {
    const Tensor border = t.pad(axis, 1, 1);
    t = prim::maximum(border, prim::mul(border, border));
  }
  g.output("y", t);
  const Program p = compile(g, generic() | cpu({.threads = 1}));
  ASSERT_EQ(p.kernels(), 1u);
  const std::string text = p.graph()[p.graph().roots()[0].edge.node].kernel->source();
  EXPECT_EQ(text.find('%'), text.npos) << text;
  EXPECT_EQ(text.find(" / "), text.npos) << text;
}

// The index expression of an empty value divides by its extent, although no element is read. With many rows this
// happens on a worker thread, which must not throw.
TEST(Cpu, ExtentsOfZeroDivideNothing) {
  const Dim c = Dim::symbol("c", 0, 8);
  Graph g;
  const Tensor places = g.index({c, 2}, Dim::index(0, c) * 2 + Dim::index(1, 2), DType::F32);
  const Tensor line = places.transpose(0, 1).reshape({c * 2}).pad(0, 0, 400);
  const Tensor rows =
      prim::mul(line.unsqueeze(0).expand({300, c * 2 + 400}), g.input("z", {300, 1}).expand({300, c * 2 + 400}));
  g.output("y", prim::sum_reduce(rows, 1));
  g.output("line", prim::add(line, g.input("one", {1}).expand({c * 2 + 400})));
  std::vector<CpuOptions> ways = {{.threads = 2}, {.threads = 1, .compiler = false}, {.threads = 2, .compiler = false}};
  if (!backends::cpu::find_llvm().path.empty())
    ways.push_back({.threads = 2, .jit = {.compiler = std::string(backends::cpu::kLlvm)}});
  for (const std::int64_t n : {0, 3}) {
    const std::map<std::string, Value> inputs = random_inputs(g, {{"c", n}}, 1, false);
    const Results want = interpret(g, inputs, {{"c", n}}, Rounding::Wide, true);
    for (const CpuOptions& o : ways) {
      const auto d = compare(want, run_values(transform(g, generic() | cpu(o)).graph, inputs, {{"c", n}}), 4);
      EXPECT_FALSE(d) << d->str() << " with an extent of " << n;
    }
  }
}

// An extent that may be 0 must not add a division to every offset.
TEST(Cpu, ExtentsThatMayBeZeroGenerateNoMoreCode) {
  std::map<std::int64_t, std::size_t> text;
  for (const std::int64_t least : {1, 0}) {
    const Dim s = Dim::symbol("s", least, 48);
    Graph g;
    const Tensor x = g.input("x", {2, s, 64}), y = softmax(x), w = g.input("w", {64, 32});
    g.output("y", y);
    g.output("turned", prim::exp2(y.transpose(0, 1).reshape({s * 2, 64})));
    g.output("product", matmul2(prim::mul(softmax(x), x).reshape({s * 2, 64}), w));
    g.output("columns", prim::max_reduce(prim::mul(x, x), 1));
    const Program p = compile(g, generic() | cpu({.threads = 1}));
    for (NodeId id = 0; id < p.graph().size(); ++id)
      if (p.graph()[id].op == Op::Kernel) text[least] += p.graph()[id].kernel->source().size();
    for (std::int64_t n = least; n <= 48; n += 16)
      agree(g, {{"x", normals(static_cast<std::size_t>(n * 128), 1)}, {"w", normals(64 * 32, 2)}}, {{"s", n}});
  }
  EXPECT_GT(text[1], 1000u);
  EXPECT_LT(text[0], text[1] + text[1] / 10);
}
