// StableHLO loops that carry arrays become scans over their rows where that is equivalent, and stay loops where it is
// not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lightcone/autograd/autograd.h"
#include "lightcone/lightcone.h"
#include "lightcone/stablehlo/read.h"
#include "on_device.h"

using namespace lc;

namespace {

constexpr int kRows = 6;
using Rows = std::array<std::array<float, 2>, kRows>;

// The values that the loops below carry from step to step.
struct Carried {
  Rows x, y;
  std::array<float, 2> s;
};

Carried start() {
  const float nan = std::nanf(""), inf = INFINITY;
  return {{{{1, 10}, {2, -0.f}, {4, 30}, {8, -inf}, {16, nan}, {32, 60}}},
          {{{-1, 3}, {-2, 5}, {-3, 7}, {-4, 9}, {-5, 11}, {-6, 13}}},
          {0.5f, -1}};
}

struct Loop {
  std::string name, body;  // computes %y1 and %s1 from %i, %x, %y and %s
  std::function<void(std::int64_t i, Carried&)> step;
  std::size_t states, slices, ys;  // expected counts of the scan
  int begin = 0, limit = kRows, by = 1;
  std::string x1 = "%x";
};

std::string module_of(const Loop& l) {
  return str_cat(
      R"(func.func @main(%x0: tensor<6x2xf32>, %y0: tensor<6x2xf32>, %s0: tensor<2xf32>, %three: tensor<i32>) -> (tensor<6x2xf32>, tensor<6x2xf32>, tensor<2xf32>, tensor<i32>) {
    %from = stablehlo.constant dense<)",
      l.begin, R"(> : tensor<i32>
    %r:4 = stablehlo.while(%i = %from, %x = %x0, %y = %y0, %s = %s0) : tensor<i32>, tensor<6x2xf32>, tensor<6x2xf32>, tensor<2xf32>
    cond {
      %limit = stablehlo.constant dense<)",
      l.limit, R"(> : tensor<i32>
      %go = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %five = stablehlo.constant dense<5> : tensor<i32>
      %by = stablehlo.constant dense<)",
      l.by, R"(> : tensor<i32>
      %back = stablehlo.subtract %five, %i : tensor<i32>
      %next = stablehlo.add %i, %by : tensor<i32>
)",
      l.body, R"(
      stablehlo.return %next, )",
      l.x1, R"(, %y1, %s1 : tensor<i32>, tensor<6x2xf32>, tensor<6x2xf32>, tensor<2xf32>
    }
    return %r#1, %r#2, %r#3, %r#0 : tensor<6x2xf32>, tensor<6x2xf32>, tensor<2xf32>, tensor<i32>
  })");
}

// Each function below returns lines of a loop body.
std::string read(const char* to, const char* array, const char* at) {
  return str_cat("%", to, "_row = stablehlo.dynamic_slice %", array, ", %", at,
                 ", %zero, sizes = [1, 2] : (tensor<6x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>\n%", to,
                 " = stablehlo.reshape %", to, "_row : (tensor<1x2xf32>) -> tensor<2xf32>\n");
}
std::string write(const char* to, const char* array, const char* what, const char* at) {
  return str_cat("%", to, "_row = stablehlo.reshape %", what, " : (tensor<2xf32>) -> tensor<1x2xf32>\n%", to,
                 " = stablehlo.dynamic_update_slice %", array, ", %", to, "_row, %", at,
                 ", %zero : (tensor<6x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<6x2xf32>\n");
}
std::string add(const char* to, const char* a, const char* b, const char* type = "tensor<2xf32>") {
  return str_cat("%", to, " = stablehlo.add %", a, ", %", b, " : ", type, "\n");
}
std::string copy(const char* to, const char* from, const char* type = "tensor<2xf32>") {
  return str_cat("%", to, " = stablehlo.reshape %", from, " : (", type, ") -> ", type, "\n");
}

std::array<float, 2> sum(const std::array<float, 2>& a, const std::array<float, 2>& b) {
  return {a[0] + b[0], a[1] + b[1]};
}
std::size_t row(std::int64_t at) { return static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, kRows - 1)); }

// y[to] = s1 = s + x[from]
std::string running_sum(const char* from, const char* to) {
  return read("a", "x", from) + add("s1", "s", "a") + write("y1", "y", "s1", to);
}
auto running_sum(std::int64_t (*from)(std::int64_t), std::int64_t (*to)(std::int64_t)) {
  return [=](std::int64_t i, Carried& c) {
    c.s = sum(c.s, c.x[row(from(i))]);
    c.y[row(to(i))] = c.s;
  };
}

constexpr auto here = [](std::int64_t i) { return i; };
constexpr auto back = [](std::int64_t i) { return 5 - i; };
constexpr auto next = [](std::int64_t i) { return i + 1; };

const LoopBody* loop_of(const Graph& g) {
  const std::vector<bool> live = g.live();
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[id] && g[id].composite && g[id].composite->loop) return g[id].composite->loop.get();
  return nullptr;
}

template <class Span>
std::vector<float> flat(const Span& rows) {
  return {&rows[0][0], &rows[0][0] + 2 * rows.size()};
}

void expect_same(const std::vector<float>& got, const std::vector<float>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t k = 0; k < got.size(); ++k) {
    EXPECT_EQ(std::isnan(got[k]), std::isnan(expected[k])) << what << ", element " << k;
    if (std::isnan(expected[k])) continue;
    EXPECT_EQ(got[k], expected[k]) << what << ", element " << k;
  }
}

void expect_right(const Loop& l) {
  const StableHloProgram s = read_stablehlo(module_of(l));
  Carried c = start();
  int i = l.begin;
  for (; i < l.limit; i += l.by) l.step(i, c);
  for (const bool compiled : {false, true}) {
    const std::string what = l.name + (compiled ? ", compiled" : ", interpreted");
    Context run(compile(s.graph, compiled ? generic() | test::device({.threads = 1}) : Compiler()));
    const Carried before = start();
    run.set("x0", flat(before.x))
        .set("y0", flat(before.y))
        .set("s0", std::vector<float>(before.s.begin(), before.s.end()));
    run.set("three", std::vector<std::int64_t>{3}).run();
    expect_same(run.get("out0"), flat(c.x), what + ": x");
    expect_same(run.get("out1"), flat(c.y), what + ": y");
    expect_same(run.get("out2"), {c.s[0], c.s[1]}, what + ": s");
    EXPECT_EQ(run.value("out3").i, (std::vector<std::int64_t>{i})) << what << ": the counter";
  }
  const LoopBody* b = loop_of(s.graph);
  ASSERT_EQ(b != nullptr, l.states + l.slices + l.ys > 0) << l.name;
  if (!b) return;
  EXPECT_EQ(b->states, l.states) << l.name;
  EXPECT_EQ(b->slices, l.slices) << l.name;
  EXPECT_EQ(b->ys, l.ys) << l.name;
}

// ---- what becomes a scan ------------------------------------------------------------------------------

TEST(ReadScans, RowsOfTheCounterAreSlicesAndResults) {
  expect_right({"forwards", running_sum("i", "i"), running_sum(here, here), 1, 1, 1});
  expect_right({"backwards", running_sum("back", "back"), running_sum(back, back), 1, 1, 1});
  expect_right({"there and back", running_sum("i", "back"), running_sum(here, back), 1, 1, 1});
  expect_right({"one step", running_sum("back", "i"), running_sum(back, here), 1, 1, 1, 2, 3});
  expect_right({"some rows", running_sum("i", "i"), running_sum(here, here), 1, 1, 1, 1, 4});
  expect_right({"some rows from the last", running_sum("back", "back"), running_sum(back, back), 1, 1, 1, 1, 4});
  expect_right({"neighbours", running_sum("i", "next"), running_sum(here, next), 1, 1, 1, 0, 5});
}

TEST(ReadScans, PlacesAreFollowedThroughArithmetic) {
  // JAX's form of x[i - 6]: negative indices count from the end
  const std::string wrapped = R"(
    %six = stablehlo.constant dense<6> : tensor<i32>
    %below = stablehlo.subtract %i, %six : tensor<i32>
    %is_below = stablehlo.compare LT, %below, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %p = stablehlo.select %is_below, %i, %below : tensor<i1>, tensor<i32>
  )";
  expect_right({"from the end", wrapped + running_sum("p", "p"), running_sum(here, here), 1, 1, 1});
  const std::string halves = "%p = stablehlo.add %i, %i : tensor<i32>\n";
  expect_right({"every second row is read", halves + running_sum("p", "i"),
                running_sum([](std::int64_t i) { return 2 * i; }, here), 1, 1, 1, 0, 3});
}

TEST(ReadScans, ARowMayBeReadBeforeItIsWritten) {
  expect_right({"added to", read("a", "y", "i") + add("s1", "s", "a") + write("y1", "y", "s1", "i"),
                [](std::int64_t i, Carried& c) { c.y[row(i)] = c.s = sum(c.s, c.y[row(i)]); }, 1, 1, 1});
}

TEST(ReadScans, WhatStaysIsReadFromOutside) {
  const auto nothing = [](std::int64_t, Carried&) {};
  expect_right({"nothing changes", copy("y1", "y", "tensor<6x2xf32>") + copy("s1", "s"), nothing, 0, 0, 0});
  expect_right({"no array is touched", add("s1", "s", "s") + copy("y1", "y", "tensor<6x2xf32>"),
                [](std::int64_t, Carried& c) { c.s = sum(c.s, c.s); }, 1, 0, 0});
  expect_right({"the same row, many times", write("y1", "y", "s", "i") + copy("s1", "s"),
                [](std::int64_t i, Carried& c) { c.y[row(i)] = c.s; }, 1, 0, 1});
  // an array that the loop does not carry
  const std::string outside = read("a", "x0", "i") + add("s1", "s", "a") + copy("y1", "y", "tensor<6x2xf32>");
  expect_right({"from outside", outside, [](std::int64_t i, Carried& c) { c.s = sum(c.s, c.x[row(i)]); }, 1, 1, 0});
}

TEST(ReadScans, AScatterOfOneRowIsAWriteToo) {
  const std::string set = R"(
    %at = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
    %y1 = "stablehlo.scatter"(%y, %at, %s1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>, indices_are_sorted = true, unique_indices = true}> ({
      ^bb0(%old: tensor<f32>, %new: tensor<f32>):
        stablehlo.return %new : tensor<f32>
      }) : (tensor<6x2xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<6x2xf32>
  )";
  expect_right({"scatter", read("a", "x", "i") + add("s1", "s", "a") + set, running_sum(here, here), 1, 1, 1});
}

TEST(ReadScans, RowsOfOtherAxesAndHigherRank) {
  const StableHloProgram s = read_stablehlo(R"(func.func @main(%x0: tensor<2x3x2xf32>) -> tensor<2x3x2xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<2x3x2xf32>
    %r:3 = stablehlo.while(%i = %zero, %x = %x0, %y = %none) : tensor<i32>, tensor<2x3x2xf32>, tensor<2x3x2xf32>
    cond {
      %limit = stablehlo.constant dense<3> : tensor<i32>
      %go = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %two = stablehlo.constant dense<2> : tensor<i32>
      %back = stablehlo.subtract %two, %i : tensor<i32>
      %a = stablehlo.dynamic_slice %x, %zero, %back, %zero, sizes = [2, 1, 2] : (tensor<2x3x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x1x2xf32>
      %b = stablehlo.add %a, %a : tensor<2x1x2xf32>
      %y1 = stablehlo.dynamic_update_slice %y, %b, %zero, %i, %zero : (tensor<2x3x2xf32>, tensor<2x1x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x2xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %x, %y1 : tensor<i32>, tensor<2x3x2xf32>, tensor<2x3x2xf32>
    }
    return %r#2 : tensor<2x3x2xf32>
  })");
  Context c(compile(s.graph, generic() | test::device({.threads = 1})));
  c.set("x0", std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).run();
  EXPECT_EQ(c.get("out0"), (std::vector<float>{10, 12, 6, 8, 2, 4, 22, 24, 18, 20, 14, 16}));
  const LoopBody* b = loop_of(s.graph);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->states, 0u);
  EXPECT_EQ(b->ys, 1u);
}

TEST(ReadScans, DerivativesGoThroughRows) {
  StableHloProgram s = read_stablehlo(module_of({"", running_sum("i", "back"), {}, 1, 1, 1}));
  Graph& g = s.graph;
  Tensor x, y;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && g[id].name == "x0") x = Tensor(g, {id, View(g[id].shape)});
  for (const Root& r : g.roots())
    if (r.name == "out1") y = Tensor(g, r.edge);
  g.output("dx", gradients(lc::sum(y, {0, 1}), {x})[0]);
  Context c(compile(g, generic() | test::device({.threads = 1})));
  c.set("x0", std::vector<float>(12, 1)).set("y0", std::vector<float>(12, 1)).set("s0", std::vector<float>{0, 0});
  c.set("three", std::vector<std::int64_t>{3}).run();
  EXPECT_EQ(c.get("dx"), (std::vector<float>{6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1}));
}

// ---- what does not --------------------------------------------------------------------------------------

TEST(ReadScans, AnArrayIsCarriedWhereItsRowsDependOnEachOther) {
  // y[i + 1] = y[i] + s
  expect_right({"a recurrence",
                read("a", "y", "i") + add("b", "s", "a") + write("y1", "y", "b", "next") + copy("s1", "s"),
                [](std::int64_t i, Carried& c) { c.y[row(i + 1)] = sum(c.s, c.y[row(i)]); }, 2, 0, 0, 0, 5});
  expect_right({"a row of all steps",
                read("a", "y", "zero") + add("b", "s", "a") + write("y1", "y", "b", "i") + copy("s1", "s"),
                [](std::int64_t i, Carried& c) { c.y[row(i)] = sum(c.s, c.y[0]); }, 2, 0, 0});
  expect_right({"read behind the write", write("y1", "y", "s", "i") + read("a", "y1", "zero") + add("s1", "s", "a"),
                [](std::int64_t i, Carried& c) {
                  c.y[row(i)] = c.s;
                  c.s = sum(c.s, c.y[0]);
                },
                3, 0, 0});
  const std::string total = R"(
    %nothing = stablehlo.constant dense<0.0> : tensor<f32>
    %a = stablehlo.reduce(%y init: %nothing) applies stablehlo.add across dimensions = [0] : (tensor<6x2xf32>, tensor<f32>) -> tensor<2xf32>
  )";
  expect_right({"all rows", total + write("y1", "y", "a", "i") + copy("s1", "s"),
                [](std::int64_t i, Carried& c) {
                  std::array<float, 2> all = {0, 0};
                  for (const auto& r : c.y) all = sum(all, r);
                  c.y[row(i)] = all;
                },
                2, 0, 0});
}

TEST(ReadScans, AnArrayIsCarriedWhereItIsWrittenOtherwise) {
  expect_right({"twice", write("b", "y", "s", "i") + write("y1", "b", "s", "next") + copy("s1", "s"),
                [](std::int64_t i, Carried& c) { c.y[row(i)] = c.y[row(i + 1)] = c.s; }, 2, 0, 0});
  expect_right({"past the end, where places stop", running_sum("next", "next"), running_sum(next, next), 4 - 1, 0, 0});
  expect_right({"every second row", running_sum("i", "i"), running_sum(here, here), 3, 1, 0, 0, kRows, 2});
  expect_right({"another state's rows", write("y1", "x", "s", "i") + copy("s1", "s"),
                [](std::int64_t i, Carried& c) {
                  c.y = c.x;
                  c.y[row(i)] = c.s;
                },
                2, 0, 0});
}

TEST(ReadScans, PlacesThatDependOnDataStay) {
  expect_right({"an argument", running_sum("three", "three"),
                running_sum([](std::int64_t) { return std::int64_t{3}; }, [](std::int64_t) { return std::int64_t{3}; }),
                2, 0, 0});
  const std::string kept = "%p = stablehlo.maximum %back, %i : tensor<i32>\n";  // 5 4 3 3 4 5
  expect_right({"there and back again", kept + running_sum("p", "p"),
                running_sum([](std::int64_t i) { return std::max(5 - i, i); },
                            [](std::int64_t i) { return std::max(5 - i, i); }),
                3, 0, 0});
}

TEST(ReadScans, AnArrayThatChangesIsNoInput) {
  // x moves up by a row in each step, while x[i] is read
  Loop l{"changed",
         read("a", "x", "i") + add("s1", "s", "a") + write("x1", "x", "s", "zero") + copy("y1", "y", "tensor<6x2xf32>"),
         [](std::int64_t i, Carried& c) {
           const auto a = c.x[row(i)];
           c.x[0] = c.s;
           c.s = sum(c.s, a);
         },
         3,
         0,
         0};
  l.x1 = "%x1";
  expect_right(l);
}

TEST(ReadScans, ALoopOfNoStepsGivesWhatItWasGiven) {
  expect_right({"none", running_sum("i", "i"), running_sum(here, here), 0, 0, 0, 6, 6});
}

}  // namespace
