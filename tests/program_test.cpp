#include "lightcone/runtime/program.h"

#include <gtest/gtest.h>

#include "lightcone/passes/passes.h"

using namespace lc;

TEST(Program, RunsOnTheInterpreterWithoutABackEnd) {
  Graph g;
  const Tensor a = g.input("a", {3}), b = g.input("b", {3});
  const Tensor y = prim::mul(prim::add(a, b), b).retrieve("y");
  const Program p = compile(g, generic());
  Context c(p);
  c.set(a, {1, 2, 3}).set(b, {4, 5, 6}).run();
  EXPECT_EQ(c.get(y), (std::vector<float>{20, 35, 54}));
  EXPECT_EQ(p.plan().input_bytes, 24u);
  EXPECT_EQ(p.interpreted(), 2u);
}

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
  EXPECT_THROW(c.set(x, {1, 2}).run(), Error);
  EXPECT_THROW(Context(p).run(), Error);
}
