// Graphs share equal nodes, define every composite in primitives, and report errors with the operation, the shapes and
// the caller's line.
#include "lightcone/core/graph.h"
#include "lightcone/composites/composites.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <locale>
#include <sstream>
#include <version>
#if defined(__cpp_lib_source_location)
#include <source_location>
#endif

#include <gtest/gtest.h>

#include "lightcone/core/tensor.h"
#include "lightcone/formats/block_formats.h"
#include "lightcone/passes/passes.h"
#include "lightcone/reference/interpreter.h"

using namespace lc;

namespace {

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

Value floats(std::vector<double> v, std::vector<std::int64_t> shape) {
  Value x = make_value(DType::F32, std::move(shape));
  x.f = std::move(v);
  return x;
}

Tensor matmul2(Tensor a, Tensor b) {
  const Dim m = a.extent(0), k = a.extent(1), n = b.extent(1);
  return prim::sum_reduce(prim::mul(a.unsqueeze(1).expand({m, n, k}), b.permute({1, 0}).unsqueeze(0).expand({m, n, k})),
                          2);
}

}  // namespace

TEST(Graph, EqualNodesAreOneNode) {
  Graph g;
  const Tensor a = g.input("a", {2, 3}), b = g.input("b", {2, 3});
  const Tensor x = prim::add(a, b), y = prim::add(a, b);
  EXPECT_EQ(x.edge(), y.edge());
  EXPECT_NE(prim::add(b, a).edge().node, x.edge().node);
}

TEST(Graph, MatmulInTheTwelve) {
  Graph g;
  const Tensor a = g.input("a", {3, 1}), b = g.input("b", {1, 4});
  g.output("c", matmul2(a, b));
  const std::map<std::string, Value> in = {{"a", floats({1, 2, 3}, {3, 1})}, {"b", floats({1, 2, 3, 4}, {1, 4})}};
  const Results r = interpret(g, in);
  EXPECT_EQ(r.outputs.at("c").f, (std::vector<double>{1, 2, 3, 4, 2, 4, 6, 8, 3, 6, 9, 12}));
  const Graph h = std::move(g);  // tensors and the graph survive a move
  EXPECT_EQ(interpret(h, in).outputs.at("c").f[11], 12);
}

TEST(Graph, ErrorsNameTheOperationTheShapesAndTheLine) {
  Graph g;
  const Tensor a = g.input("a", {2, 3}), b = g.input("b", {2, 4});
  EXPECT_NE(
      message([&] { prim::add(a, b); }).find("add: [2, 3] and [2, 4] differ at axis 1: 3 vs 4 (at graph_test.cpp:"),
      std::string::npos)
      << message([&] { prim::add(a, b); });
  EXPECT_NE(message([&] { prim::sum_reduce(a, 2); }).find("sum: axis 2 is not an axis of [2, 3]"), std::string::npos);
  EXPECT_NE(message([&] { a.reshape({5}); }).find("reshape: [2, 3] has 6 elements, [5] has 5"), std::string::npos);
  EXPECT_NE(message([&] { g.input("a", {1}); }).find("'a' exists already"), std::string::npos);
  Graph other;
  EXPECT_NE(message([&] { prim::add(a, other.input("x", {2, 3})); }).find("different graphs"), std::string::npos);
}

template <class T>
void expect_as_a_stream(T v) {
  std::ostringstream s;
  s.imbue(std::locale::classic());
  s << v;
  EXPECT_EQ(str_cat("<", v, ">"), "<" + s.str() + ">");
}
TEST(Sentences, AreWrittenAsAStreamWouldWhateverTheLocale) {
  struct Thousands : std::numpunct<char> {
    char do_thousands_sep() const override { return '\''; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Thousands));
  for (const double x : {0.0, -0.0, 0.1, 1e-5, 123456.0, 1234567.0, 1e20, -2.5e-300, 1e300 * 1e300})
    expect_as_a_stream(x), expect_as_a_stream(static_cast<float>(x));
  expect_as_a_stream(std::numeric_limits<std::int64_t>::min());
  expect_as_a_stream(std::numeric_limits<std::uint64_t>::max());
  expect_as_a_stream(-7), expect_as_a_stream(1234567u), expect_as_a_stream(short{-3}), expect_as_a_stream(true);
  expect_as_a_stream('c'), expect_as_a_stream("text"), expect_as_a_stream(std::string("a\0b", 3));
  expect_as_a_stream(std::string_view()), expect_as_a_stream(Dim::symbol("seq", 1, 8) * 3 + 1);
  std::locale::global(before);
  EXPECT_EQ(str_cat(), "");
}

TEST(Graph, WhereIsTheCallersLine) {
  Graph g;
  const Tensor x = g.input("x", {2});
  EXPECT_EQ(x.node().where.line, __LINE__ - 1);
  EXPECT_TRUE(std::string_view(x.node().where.file).ends_with("graph_test.cpp"));
#if defined(__cpp_lib_source_location)
  const Tensor y = g.input("y", {2}, DType::F32, std::source_location::current());
  EXPECT_EQ(y.node().where.line, __LINE__ - 1);
#endif
}

TEST(Graph, StateIsAssigned) {
  Graph g;
  const Dim past = Dim::symbol("past", 0, 3);
  const Tensor cache = g.input("cache", {4}), x = g.input("x", {1});
  const Tensor next = prim::slice_scatter(cache, x, 0, past);
  g.assign(cache, next);
  g.output("seen", prim::sum_reduce(next.slice(0, 0, past + 1), 0));
  const Results r = interpret(g, {{"cache", floats({1, 2, 0, 0}, {4})}, {"x", floats({5}, {1})}}, {{"past", 2}});
  EXPECT_EQ(r.outputs.at("seen").f[0], 8);
  EXPECT_EQ(r.states.at("cache").f, (std::vector<double>{1, 2, 5, 0}));
}

TEST(Generic, FoldsAndKeepsTheAnswer) {
  Graph g;
  const Tensor a = g.input("a", {2});
  const Tensor two = prim::add(full_like(a, 1), full_like(a, 1));
  const Tensor y = prim::mul(prim::contiguous(prim::mul(a, full_like(a, 1))), two);
  g.output("y", y);
  const Compiled c = transform(g, generic());
  EXPECT_EQ(c.graph.str(),
            "%0 = input a : f32[2]\n%1 = constant 2 : f32[]\n"
            "%2 = mul %0 %1.reshape([1]).expand([2]) : f32[2]\ny = %2\n");
  EXPECT_GT(c.log[0].fired.at("x * 1"), 0);
  EXPECT_GT(c.log[0].fired.at("copy"), 0);
}

TEST(Primitives, EveryCompositeHasADefinitionInTheTwelve) {
  Graph g;
  const Tensor a = g.input("a", {4}), b = g.input("b", {4});
  const Tensor i = g.input("i", {4}, DType::I64);
  const Tensor c = prim::less_than(a, b);
  g.output("where", prim::where(c, a, b));
  g.output("maximum", prim::maximum(a, b));
  g.output("minimum", prim::minimum(a, b));
  g.output("div", prim::div(a, b));
  g.output("pow", prim::pow(a, b));
  g.output("exp", prim::exp(a));
  g.output("cos", prim::cos(a));
  g.output("ipow", prim::pow(i, full_like(i, 3)));
  g.output("idiv", prim::div(i, full_like(i, -2)));
  g.output("equal", prim::equal(a, b));
  g.output("and", prim::bitwise_and(i, full_like(i, 6)));
  g.output("or", prim::bitwise_or(i, full_like(i, -4)));
  g.output("xor", prim::bitwise_xor(i, full_like(i, 3)));
  g.output("bits", prim::bitcast(a, DType::I32));
  g.output("of bits", prim::bitcast(prim::bitcast(b, DType::U32), DType::F32));
  g.output("gather", prim::gather(a, i, 0));
  g.output("scatter", prim::scatter(a, i, b, 0));
  g.output("scatter_add", prim::scatter_add(a, i, b, 0));
  g.output("slice_scatter", prim::slice_scatter(a, b.slice(0, 0, 2), 0, 1));
  g.output("argsort", prim::argsort(a, 0));
  g.output("argsort_down", prim::argsort(a, 0, true));
  Value idx = make_value(DType::I64, {4});
  idx.i = {2, 0, 2, 9};
  const std::map<std::string, Value> in = {
      {"a", floats({2, -3, 0.5, -3}, {4})}, {"b", floats({1, -3, 4, 2}, {4})}, {"i", idx}};
  const Results want = interpret(g, in);
  const Compiled p = transform(g, primitives_only());
  for (NodeId id = 0; id < p.graph.size(); ++id)
    if (p.graph.live()[id]) {
      const OpInfo& op = info(p.graph[id].op);
      EXPECT_TRUE(op.has(kPrimitive) || op.kind == Kind::Leaf) << op.name;
    }
  const Results got = interpret(p.graph, in);
  for (const auto& [name, v] : want.outputs)
    for (std::size_t k = 0; k < v.size(); ++k)
      EXPECT_NEAR(got.outputs.at(name).at(k), v.at(k), (name == "exp" ? 1e-7 : 1e-9) * std::abs(v.at(k)) + 1e-12)
          << name << " " << k;  // log2 e is an f32 constant there
}

// The quotient that replaces a cosine is 0 / 0 at zero, and near zero its divisor is too small for a reciprocal.
TEST(Primitives, CosOfTheSmallest) {
  for (const DType t : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    const double half_ulp = t == DType::F64 ? 0x1p-54 : t == DType::F16 ? 0x1p-12 : t == DType::BF16 ? 0x1p-9 : 0x1p-25;
    std::vector<double> small;
    for (const double x : {0.0, 5e-324, 1e-310, 1e-45, 1e-39, 6e-8, 1e-6, 0x1p-27, 0x1p-14, 0x1p-13, 0x1p-12, 0x1p-8,
                           0x1p-7, 0x1p-6, 0.1, 1.0, 3.0, 100.0})
      small.push_back(x), small.push_back(-x);
    Value x = make_value(t, {static_cast<std::int64_t>(small.size())});
    for (std::size_t k = 0; k < small.size(); ++k) {
      std::uint64_t stored = 0;
      store_f64(&stored, t, 0, small[k]);
      x.f[k] = load_f64(&stored, t, 0);
    }
    Graph g;
    g.output("y", prim::cos(g.input("x", {static_cast<std::int64_t>(small.size())}, t)));
    const Graph p = transform(g, primitives_only()).graph;
    const Value y = interpret(p, {{"x", x}}, {}, Rounding::Storage).outputs.at("y");
    for (std::size_t k = 0; k < y.size(); ++k)
      EXPECT_NEAR(y.f[k], std::cos(x.f[k]), 16 * half_ulp) << info(t).name << " " << x.f[k];
  }
}

TEST(Primitives, DequantizeIsExact) {
  for (const QuantInfo& q : kQuantFormats) {
    const int rows = q.more.book.entries ? 1 : 3;  // a grid in primitives is a long sum
    Graph g;
    const Tensor w = g.input("w", {rows, 2 * q.bytes}, DType::U8);
    g.output("v", prim::dequantize(w, q.format));
    Value bytes = make_value(DType::U8, {rows, 2 * q.bytes});
    std::uint32_t seed = 7;
    for (auto& b : bytes.i) b = (seed = seed * 1664525 + 1013904223) >> 24;
    for (int block = 0; block < 2 * rows; ++block)  // avoids scales that are infinite or NaN
      put_quant_scales(q.format, 0.37 + block,
                       [&](int i, int byte) { bytes.i[static_cast<std::size_t>(block * q.bytes + i)] = byte; });
    const Results want = interpret(g, {{"w", bytes}});
    const Results got = interpret(transform(g, primitives_only()).graph, {{"w", bytes}}, {}, Rounding::Storage);
    EXPECT_EQ(want.outputs.at("v").f, got.outputs.at("v").f) << q.name;
  }
}

// A refused call leaves the graph unchanged: the name is still free.
TEST(Graph, WhatWasRefusedLeavesNoNameBehind) {
  Graph g;
  EXPECT_THROW(g.input("x", {Dim::symbol("n", 0, 4) - 3}), Error);
  EXPECT_NO_THROW(g.input("x", {3}));
}

namespace {

// x after many view operations, and its values if each of them were materialized.
struct Chain {
  Graph graph;
  Tensor x;
  std::vector<std::int64_t> shape = {4, 6, 5}, values;
  const Dim n = Dim::symbol("n", 1, 512), m = Dim::symbol("m", 1, 512);
  bool open;  // true: extents are symbols, with n = 4 and 3 * m = 6

  explicit Chain(bool with_symbols) : open(with_symbols) {
    x = open ? graph.input("x", {n, m * 3, 5}) : graph.input("x", {4, 6, 5});
    for (std::int64_t k = 0; k < 120; ++k) values.push_back(k);
  }
  void permute_and_reshape() {  // [a, b, c] permuted to [c, a, b] and reshaped to [a, b, c]
    std::vector<std::int64_t> moved;
    for (std::int64_t c = 0; c < 5; ++c)
      for (std::int64_t r = 0; r < 24; ++r) moved.push_back(values[static_cast<std::size_t>(r * 5 + c)]);
    values = std::move(moved);
    const Shape to = x.shape();
    x = x.permute({2, 0, 1}).reshape(to);
  }
  // The largest numbers of view operations and of expression parts over all edges.
  std::pair<std::size_t, std::size_t> most() const {
    std::pair<std::size_t, std::size_t> most;
    for (NodeId id = 0; id < graph.size(); ++id)
      for (const Edge& e : graph[id].in) {
        const View::Position p = e.view.locate(index_symbols(e.view.shape()));
        std::size_t parts = p.offset.parts() + p.valid.parts();
        for (const Dim& d : p.index) parts += d.parts();
        most = {std::max(most.first, e.view.moves().size()), std::max(most.second, parts)};
      }
    return most;
  }
  std::vector<double> computed() {
    graph.output("y", x);
    Value in = make_value(DType::F32, {4, 6, 5});
    for (std::size_t k = 0; k < 120; ++k) in.f[k] = static_cast<double>(k);
    return interpret(graph, {{"x", in}}, {{"n", 4}, {"m", 2}}).outputs.at("y").f;
  }
};

}  // namespace

// Each pair of a permute and a reshape makes an element's index three times as long. An occasional copy keeps edges
// simple, whatever the chain is.
TEST(Graph, LongChainsOfViewsAreCopiedNowAndThen) {
  for (const bool open : {false, true}) {
    Chain c(open);
    for (int k = 0; k < 101; ++k) {
      c.permute_and_reshape();
      if (k % 10 == 3) c.x = prim::sqrt(prim::mul(c.x, c.x));
    }
    const std::vector<double> y = c.computed();
    EXPECT_TRUE(std::equal(y.begin(), y.end(), c.values.begin(), c.values.end())) << "open: " << open;
    const auto [moves, parts] = c.most();
    EXPECT_LE(moves, View::kMostMoves);
    EXPECT_LE(parts, View::kMostParts);
    EXPECT_LT(c.graph.size(), 120u);
  }
}

// 2,000 pads and slices: their stored description grows linearly, not with the square of their number.
TEST(Graph, LongChainsOfPadsAreCopiedNowAndThen) {
  Graph g;
  Tensor x = g.input("x", {3, 4});
  std::size_t moves = 0;
  for (int k = 0; k < 2000; ++k) {
    x = k % 2 ? x.slice(k % 4 / 2, 1, x.extent(k % 4 / 2)) : x.pad(k % 4 / 2, 1, 0);
    moves = std::max(moves, x.view().moves().size());
  }
  EXPECT_LE(moves, 4 * View::kMostMoves);
  g.output("y", x);
  EXPECT_LT(g.size(), 100u);
  const Value in = floats({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {3, 4});
  EXPECT_EQ(interpret(g, {{"x", in}}).outputs.at("y").f, in.f);
}
