// Checked runs report indices out of range, arrays of another shape and tensors whose graph is gone.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "error_of.h"
#include "lightcone/lightcone.h"
#include "lightcone/ops/loss.h"
#include "on_device.h"

using namespace lc;

namespace {

struct Indexed {
  const char* op;
  Tensor (*build)(const Tensor& table, const Tensor& ids);
};
const Indexed kIndexed[] = {
    {"embedding", [](const Tensor& t, const Tensor& i) { return embedding(i, t); }},
    {"gather",
     [](const Tensor& t, const Tensor& i) {
       return gather(t, 0, i.unsqueeze(1).expand({3, 2}));
     }},
    {"index_select", [](const Tensor& t, const Tensor& i) { return index_select(t, 0, i); }},
    {"one_hot", [](const Tensor&, const Tensor& i) { return one_hot(i, 5); }},
    {"scatter",
     [](const Tensor& t, const Tensor& i) {
       return scatter(t, 0, i.unsqueeze(1).expand({3, 2}), 1);
     }},
    {"index", [](const Tensor& t, const Tensor& i) { return index(t, {i + 0}); }},
    {"index_put",
     [](const Tensor& t, const Tensor& i) {
       return index_put(t, {i}, full(t, {3, 2}, 1));
     }},
    {"take", [](const Tensor& t, const Tensor& i) { return take(t.slice(1, 0, 1), i); }},
    {"scatter_reduce",
     [](const Tensor& t, const Tensor& i) {
       return scatter_reduce(t, 0, i.unsqueeze(1).expand({3, 2}), full(t, {3, 2}, 1), "sum");
     }},
    {"cross_entropy",
     [](const Tensor& t, const Tensor& i) {
       return cross_entropy(t.t().slice(0, 0, 1).expand({3, 5}), i);
     }},
    {"index_add",
     [](const Tensor& t, const Tensor& i) {
       return index_add(t, 0, i, full(t, {3, 2}, 1));
     }},
};

}  // namespace

TEST(Checks, AnIndexOutOfRangeIsAnErrorThatNamesTheOperationAndTheLine) {
  for (const Indexed& c : kIndexed) {
    Graph g;
    const Tensor ids = g.input("ids", {3}, DType::I64);
    g.output("y", c.build(g.input("table", {5, 2}), ids));
    for (const bool checks : {false, true}) {
      Context run(compile(g, generic() | test::device({.threads = 1}), {.checks = checks}));
      if (c.op != std::string("one_hot")) run.set("table", std::vector<float>(10, 1));
      const std::set<std::string> from_end{"index", "index_put", "take", "scatter_reduce"};
      for (const std::int64_t bad : {5, -1, 1000000}) {
        if (bad == -1 && from_end.contains(c.op)) continue;        // -1 is the last element
        run.set("ids", std::vector<std::int64_t>{0, 4, 2}).run();  // these are in range
        run.set("ids", std::vector<std::int64_t>{0, bad, 2});
        const std::string said = error_of([&] { run.run(); });
        if (!checks) {
          EXPECT_EQ(said, "no error") << c.op;
          continue;
        }
        EXPECT_PRED2(contains, said, str_cat(c.op, ": the index ", bad, " is out of range: there are 5 places"));
        EXPECT_PRED2(contains, said, "checks_test.cpp:");
      }
    }
    const std::vector<std::string> only{"y"};
    EXPECT_EQ(compile(g, generic() | test::device({.threads = 1}), {.checks = true}).outputs(), only);
  }
}

TEST(Checks, WithoutThemAnIndexOutOfRangeReadsZero) {
  Graph g;
  g.output("y", embedding(g.input("ids", {2}, DType::I64), g.input("table", {2, 2})));
  Context run(compile(g, generic() | test::device({.threads = 1})));
  run.set("ids", std::vector<std::int64_t>{1, 7}).set("table", std::vector<float>{1, 2, 3, 4}).run();
  EXPECT_EQ(run.get("y"), (std::vector<float>{3, 4, 0, 0}));
}

TEST(Checks, SizesBoundLaterAndEmptyIndices) {
  Graph g;
  const Dim n = Dim::symbol("rows", 1, 9), m = Dim::symbol("picked", 0, 4);
  g.output("y", embedding(g.input("ids", {m}, DType::I64), g.input("table", {n, 1})));
  Context run(compile(g, generic() | test::device({.threads = 1}), {.checks = true}));
  run.bind("rows", 3).bind("picked", 2).set("table", std::vector<float>(3, 1));
  run.set("ids", std::vector<std::int64_t>{0, 3});
  EXPECT_PRED2(contains, error_of([&] { run.run(); }), "the index 3 is out of range: there are 3 places");
  run.bind("rows", 4).set("table", std::vector<float>(4, 1)).run();
  run.bind("picked", 0).set("ids", std::vector<std::int64_t>{}).run();
}

TEST(Checks, VerifyLooksAtIndicesThatTheUserGave) {
  Graph g;
  g.output("y", embedding(g.input("ids", {2}, DType::I64), g.input("table", {4, 2})));
  Value ids = make_value(DType::I64, {2});
  ids.i = {3, 4};
  const VerifyReport bad = verify(g, generic(), {.values = {{"ids", ids}}});
  ASSERT_TRUE(bad.fault);
  EXPECT_PRED2(contains, bad.str(), "embedding");
  EXPECT_PRED2(contains, bad.str(), "the index 4 is out of range: there are 4 places (at checks_test.cpp:");
  ids.i = {3, 0};
  EXPECT_TRUE(verify(g, generic(), {.values = {{"ids", ids}}}).ok());
  EXPECT_TRUE(verify(g, generic()).ok());  // random indices are in range
}

TEST(Checks, AnArrayHasTheShapeAndTheTypeOfWhatItIsSetTo) {
  Graph g;
  const Tensor x = g.input("x", {784, 128}), w = g.parameter("w", {2, 3}, DType::F32);
  g.output("y", sum(x) + sum(w));
  Program p = compile(g, generic() | test::device({.threads = 1}));
  const std::vector<float> numbers(784 * 128, 1);
  const auto bytes = std::as_bytes(std::span(numbers));
  EXPECT_EQ(error_of([&] {
              p.load("w", ArrayView{DType::F32, {3, 2}, bytes.first(24)});
            }),
            "load: an array of f32 [3, 2] for 'w', which is f32 [2, 3]: it is the transpose");
  EXPECT_EQ(error_of([&] {
              p.load("w", ArrayView{DType::I32, {2, 3}, bytes.first(24)});
            }),
            "load: an array of i32 [2, 3] for 'w', which is f32 [2, 3]");
  EXPECT_PRED2(contains, error_of([&] {
                 p.load("v", ArrayView{DType::F32, {2, 3}, bytes.first(24)});
               }),
               "load: the graph has no input 'v'");
  p.load("w", ArrayView{DType::F32, {2, 3}, bytes.first(24)});
  Context c(p);
  EXPECT_EQ(error_of([&] {
              c.set("x", ArrayView{DType::F32, {128, 784}, bytes});
            }),
            "set: an array of f32 [128, 784] for 'x', which is f32 [784, 128]: it is the transpose");
  EXPECT_EQ(c.set(x, ArrayView{DType::F32, {784, 128}, bytes}).run().scalar("y"), 784 * 128 + 6);
}

TEST(Checks, ATensorThatOutlivesItsGraphIsAnError) {
  Tensor untyped;
  typed::Tensor<float, 2> typed_one;
  {
    Graph g;
    untyped = g.input("x", {2});
    typed_one = typed::Tensor<float, 2>::from(untyped);
  }
  const std::string gone = ": the graph of this Tensor is gone: its Graph or Session ended before";
  EXPECT_PRED2(contains, error_of([&] { untyped + 1; }), "operator+" + gone);
  EXPECT_PRED2(contains, error_of([&] { typed_one + typed_one; }), "operator+" + gone);
  Graph again;  // may reuse the memory of the destroyed graph
  again.input("y", {3});
  EXPECT_EQ(error_of([&] { untyped.shape(); }), "tensor" + gone);
  EXPECT_PRED2(contains, error_of([&] { again.output("x", untyped); }), "output" + gone);
  std::optional<Session> session(std::in_place);
  auto a = session->tensor<2>();
  session.reset();
  EXPECT_EQ(error_of([&] { a.retrieve(); }), "tensor" + gone);
  Graph moved;
  const Tensor stays = moved.input("z", {4});
  const Graph there = std::move(moved);
  EXPECT_EQ(stays.shape(), Shape{4});  // tensors survive a move
}

// If a slice exceeds its axis for some of the allowed sizes, binding such a size is an Error, and nothing is read.
TEST(Checks, ASliceThatLeavesItsAxisForTheSizesThatAreBound) {
  for (const Compiler& c : {Compiler(), generic() | test::device({.threads = 1})}) {
    Graph g;
    const Dim first = Dim::symbol("first", 0, 7);
    const Tensor x = g.input("x", {8});
    g.output("y", x.slice(0, first, first + 2) * 2);
    Context run(compile(g, c));
    run.set("x", std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}).bind("first", 6).run();
    EXPECT_EQ(run.get("y"), (std::vector<float>{12, 14}));
    run.bind("first", 7);
    EXPECT_PRED2(contains, error_of([&] { run.run(); }), "slice: 2 elements from 7 on leave axis 0 of [8] by 1");
    EXPECT_EQ(run.bind("first", 0).run().get("y"), (std::vector<float>{0, 2}));
  }
}

TEST(Checks, ResultsAreThereOnceSomethingHasRun) {
  Graph g;
  g.output("y", g.input("x", {2}) * 2);
  Context run(compile(g, generic() | test::device({.threads = 1})));
  run.set("x", std::vector<float>{1, 2});
  EXPECT_PRED2(contains, error_of([&] { run.get("y"); }), "get: there are no results yet: run() first");
  EXPECT_EQ(run.run().get("y"), (std::vector<float>{2, 4}));
}
