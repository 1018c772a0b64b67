// The CPU back end updates a state in place only where nothing reads its old value afterwards, and reads all states
// before it writes one.
#include "lightcone/backends/cpu/cpu.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "agree.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;
using namespace lc::test;

TEST(Cpu, StateIsUpdatedInPlace) {
  Graph g;
  const Dim p = Dim::symbol("p", 0, 7);
  const Tensor cache = g.input("cache", {8, 4}), x = g.input("x", {1, 4});
  const Tensor next = prim::slice_scatter(cache, prim::add(x, x), 0, p);
  g.assign(cache, next);
  g.output("seen", prim::sum_reduce(next.slice(0, 0, p + 1), 0));
  const Program prog = compile(g, generic() | cpu({.threads = 1}));
  EXPECT_TRUE(prog.plan().copies.empty());
  Context c(prog);
  for (int t = 0; t < 3; ++t) c.bind("p", t).set(x, {1, 2, 3, 4}).run();
  EXPECT_EQ(c.get("seen"), (std::vector<float>{6, 12, 18, 24}));
}

// A state is overwritten in place only if nothing reads its old value afterwards.
TEST(Cpu, AStateThatIsReadLaterKeepsItsOldValue) {
  Graph g;
  const Tensor s = g.input("s", {4}), x = g.input("x", {2});
  const Tensor next = prim::slice_scatter(s, x, 0, 1);
  g.assign(s, next);
  const Tensor total = expand_to(prim::sum_reduce(next, 0), 0, 4);
  g.output("late", prim::add(prim::mul(s, full_like(s, 10)), total));  // runs after `next`
  const Tensor t = g.input("t", {4}), twice = prim::add(t, t.flip(0));
  g.assign(t, twice);  // element 3 needs the old value of element 0
  const Tensor u = g.input("u", {4}), more = prim::add(u, full_like(u, 1));
  g.assign(u, more);
  g.output("before", u);  // the old value is also a result
  const Tensor v = g.input("v", {4}), i = g.input("i", {4}, DType::I64);
  g.assign(v, prim::scatter(v, i, v, 0));  // element 0 goes to 1 while 1 goes to 2
  for (const bool compiler : {true, false}) {
    Context c(compile(g, generic() | cpu({.threads = 1, .compiler = compiler})));
    EXPECT_THROW(c.run(), Error);  // no state has a value yet
    c.set(v, {1, 2, 3, 4}).set(i, {1, 2, 3, 0});
    c.set(s, {1, 2, 3, 4}).set(x, {5, 6}).set(t, {1, 2, 3, 4}).set(u, {7, 8, 9, 10}).run();
    EXPECT_EQ(c.get("late"), (std::vector<float>{26, 36, 46, 56}));
    EXPECT_EQ(c.get("s"), (std::vector<float>{1, 5, 6, 4}));
    EXPECT_EQ(c.get("t"), (std::vector<float>{5, 5, 5, 5}));
    EXPECT_EQ(c.get("before"), (std::vector<float>{7, 8, 9, 10}));
    EXPECT_EQ(c.get("v"), (std::vector<float>{4, 1, 2, 3}));
    EXPECT_EQ(c.get("u"), (std::vector<float>{8, 9, 10, 11}));
    c.run();
    EXPECT_EQ(c.get("late"), (std::vector<float>{26, 66, 76, 56}));
    EXPECT_EQ(c.get("t"), (std::vector<float>{10, 10, 10, 10}));
  }
}

// Two states that exchange values, and one that is assigned a view of another.
TEST(Cpu, StatesAreAllReadBeforeOneIsWritten) {
  Graph g;
  const Tensor a = g.input("a", {3}), b = g.input("b", {3}), c = g.input("c", {3});
  g.assign(a, b);
  g.assign(b, a);
  g.assign(c, a.flip(0));
  for (const Compiler& compiler : {generic(), generic() | cpu({.threads = 1})}) {
    Context x(compile(g, compiler));
    x.set(a, {1, 2, 3}).set(b, {4, 5, 6}).set(c, {0, 0, 0}).run();
    EXPECT_EQ(x.get("a"), (std::vector<float>{4, 5, 6}));
    EXPECT_EQ(x.get("b"), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(x.get("c"), (std::vector<float>{3, 2, 1}));
  }
}
