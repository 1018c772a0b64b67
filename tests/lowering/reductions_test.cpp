// Joining and splitting reductions keeps their results.
#include "lightcone/lowering/reductions.h"

#include <gtest/gtest.h>

#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

using namespace lc;
using lowering::SplitRules;

namespace {

Compiler join() { return Compiler({"join", lowering::join_reductions}); }
Compiler split(SplitRules rules) {
  return Compiler(
      {"split", [rules](const Graph& g, PassLog& log) { return lowering::split_reductions(g, log, rules); }});
}

int reductions(const Graph& g) {
  const auto live = g.live();
  int n = 0;
  for (NodeId id = 0; id < g.size(); ++id) n += live[id] && info(g[id].op).kind == Kind::Reduce;
  return n;
}

}  // namespace

TEST(Reductions, OverNeighbouringAxesAreOne) {
  Graph g;
  const Tensor x = g.input("x", {4, 5, 6, 7});
  g.output("all", sum(x));
  g.output("inner", amax(x, {2, 3}));
  g.output("middle", sum(x, {1, 2}));
  const Compiled done = transform(g, generic() | join());
  EXPECT_EQ(reductions(done.graph), 3);
  EXPECT_TRUE(verify(g, generic() | join()).ok());
}

// An inner sum that something else reads, too, is not joined.
TEST(Reductions, StayWhereTheInnerOneIsWanted) {
  Graph g;
  const Tensor inner = sum(g.input("x", {4, 5, 6}), {2});
  g.output("inner", inner);
  g.output("outer", sum(inner, {1}));
  EXPECT_EQ(fired(transform(g, generic() | join()).log, "reductions joined"), 0);
}

TEST(Reductions, LongOnesAreCutIntoParts) {
  Graph g;
  const Tensor x = g.input("x", {1 << 16}), m = g.input("m", {4096, 24});
  g.output("all", sum(x));
  g.output("most", amax(x));
  g.output("columns", sum(m, {0}));
  g.output("halves", sum(prim::cast(m, DType::BF16), {0}));
  g.output("short", sum(g.input("s", {100})));
  const Compiled done = transform(g, generic() | split({}));
  EXPECT_EQ(fired(done.log, "reduction split"), 4);
  EXPECT_EQ(reductions(done.graph), 9);
  const VerifyReport r = verify(g, generic() | split({}), {.trials = 2});
  EXPECT_TRUE(r.ok()) << r.str();
}

TEST(Reductions, RandomGraphsComputeWhatTheyDid) {
  int joined = 0, cut = 0;
  for (std::uint64_t i = 9000000; i < 9001500; ++i) {
    const Graph g = random_graph(i, {.nodes = 4 + static_cast<int>(i % 14)});
    const Bindings env = random_bindings(g, i);
    const auto inputs = random_inputs(g, env, i, i % 3 == 0);
    const Compiled done =
        transform(g, generic() | join() | split({.threads = 1 << 20, .row = 2, .column = 1, .group = 1}));
    joined += fired(done.log, "reductions joined"), cut += fired(done.log, "reduction split");
    const auto d = compare(interpret(g, inputs, env, Rounding::Wide, true), run_values(done.graph, inputs, env), 4);
    ASSERT_FALSE(d) << i << ": " << d->str() << "\n" << g.str();
  }
  EXPECT_GT(joined, 5);
  EXPECT_GT(cut, 100);
}
