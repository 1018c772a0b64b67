// States keep their values from run to run, are written in place, and begin with what was loaded. Contexts see weights
// that are loaded later.
#include "lightcone/runtime/program.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "on_device.h"

using namespace lc;

TEST(Program, StateAndSymbols) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 4);
  const Tensor x = g.input("x", {n}), total = g.input("total", {});
  const Tensor sum = prim::add(total, prim::sum_reduce(x, 0));
  g.assign(total, sum);
  g.output("sum", sum);
  const Program p = compile(g);
  Context c(p);
  c.bind("n", 2).set(x, {1, 2}).run();
  EXPECT_EQ(c.scalar("sum"), 3);
  c.bind("n", 3).set(x, {1, 2, 3}).run();
  EXPECT_EQ(c.scalar("sum"), 9);
  EXPECT_EQ(c.scalar("total"), 9);
  EXPECT_THROW(c.bind("n", 5), Error);
  const float held = 0;
  EXPECT_THROW(c.use("total", std::as_bytes(std::span(&held, 1))), Error);  // a state is written
  EXPECT_THROW(c.set(x, {1, 2}).run(), Error);
  EXPECT_THROW(Context(p).run(), Error);
}

// A loaded state is the initial value of every context, in memory of its own.
TEST(Program, ALoadedStateIsTheFirstValue) {
  Graph g;
  const Tensor total = g.input("total", {2}), x = g.input("x", {2});
  g.assign(total, prim::add(total, x));
  g.output("before", total);
  const float first[2] = {10, 20};
  Program p = compile(g, generic() | test::device({.threads = 1}));
  p.load("total", first, sizeof first);
  for (int i = 0; i < 2; ++i) {
    Context c(p);
    EXPECT_EQ(c.get("total"), (std::vector<float>{10, 20}));
    c.set("x", std::vector<float>{1, 2}).run();
    EXPECT_EQ(c.get("before"), (std::vector<float>{10, 20}));
    EXPECT_EQ(c.get("total"), (std::vector<float>{11, 22}));
    c.clear_states();
    EXPECT_EQ(c.get("total"), (std::vector<float>{0, 0}));
  }
  EXPECT_EQ(first[0], 10);
}

// An output that is a state has its value before the run, and the state is still overwritten in place.
TEST(Program, AStateThatIsAnOutputIsWrittenInPlace) {
  Graph g;
  const Tensor s = g.input("s", {8}), x = g.input("x", {8});
  g.assign(s, prim::add(s, x));
  g.output("old", s);
  const Program p = compile(g, generic() | test::device({.threads = 1}));
  EXPECT_TRUE(p.plan().copies.empty());
  ASSERT_EQ(p.plan().snapshots.size(), 1u);
  Context c(p);
  c.set("x", std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}).run().run();
  EXPECT_EQ(c.get("old"), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(c.get("s"), (std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14}));
}

// Whether kernels read a weight as loaded, packed, or both, an existing context sees all new values or none.
TEST(Program, ContextsTakeWeightsThatAreLoadedLater) {
  Graph g;
  const Tensor x = g.input("x", {2, 16});
  const auto weight = [&](const char* name, Shape s) { return g.parameter(name, std::move(s), DType::F32); };
  const Tensor w = weight("w", {16, 16}), b = weight("b", {16}), s = weight("s", {16});
  (matmul(x, w) * s + b).retrieve("y");
  const Tensor count = g.input("count", {});
  g.assign(count, count + sum(x));
  Program p = compile(g, generic() | test::device());
  std::vector<std::vector<float>> kept;
  const auto load = [&](float by) {
    for (const auto& [name, n] : {std::pair{"w", 256}, {"b", 16}, {"s", 16}}) {
      kept.emplace_back(static_cast<std::size_t>(n), by);
      p.load(name, kept.back().data(), kept.back().size() * sizeof(float));
    }
  };
  kept.reserve(20);
  load(1);
  const std::vector<float> ones(32, 1);
  Context c(p);
  c.set("x", ones).set("count", std::vector<float>{5}).run();
  EXPECT_EQ(c.get("y")[0], 17);  // 16 + 1
  load(2);
  EXPECT_EQ(c.run().get("y")[0], 66);  // 32 * 2 + 2
  EXPECT_EQ(c.get("y"), Context(p).set("x", ones).set("count", std::vector<float>{0}).run().get("y"));
  EXPECT_EQ(c.scalar("count"), 69);  // the state continues
  load(3);
  EXPECT_EQ(c.run_checked().get("y")[0], 147);
}
