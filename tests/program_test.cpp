#include "lightcone/runtime/program.h"

#include <functional>

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

TEST(Program, EveryWayToGiveDataChecksItsSize) {
  Graph g;
  const Dim n = Dim::symbol("n", 2, 4);
  const Tensor x = g.input("x", {n}), w = g.input("w", {3});
  g.output("y", prim::sum_reduce(x, 0));
  g.output("z", prim::add(w, w));
  Program p = compile(g);
  alignas(4) const char bytes[24] = {};
  EXPECT_THROW(p.load("w", bytes, 8), Error);
  EXPECT_THROW(p.load("w", bytes, 16), Error);
  EXPECT_THROW(p.load("w", bytes + 1, 12), Error);  // floats lie at multiples of four
  EXPECT_NO_THROW(p.load("w", bytes, 12));
  EXPECT_NO_THROW(p.load("nobody reads this", bytes, 1));
  Context c(p);
  EXPECT_THROW(c.bind("n", 1), Error);
  EXPECT_THROW(c.bind("n", 5), Error);
  EXPECT_NO_THROW(c.bind("n", 2));
  EXPECT_THROW(c.set(x, {1, 2, 3, 4, 5}), Error);
  EXPECT_THROW(c.set("x", std::vector<std::int64_t>(5)), Error);
  EXPECT_THROW(c.set_bytes("x", bytes, 20), Error);
  EXPECT_THROW(c.set("nothing", std::vector<float>{1}), Error);
  float mine[4] = {1, 2, 4, 8};
  EXPECT_THROW(c.use("x", mine, 8), Error);  // it must hold the largest size
  EXPECT_THROW(c.run(), Error);              // x has no value yet
  c.use("x", mine, sizeof mine).run();
  EXPECT_EQ(c.scalar("y"), 3);
  mine[0] = 10;  // read in place
  EXPECT_EQ(c.bind("n", 4).run().scalar("y"), 24);
  EXPECT_THROW(c.get("nothing"), Error);
  EXPECT_THROW(c.scalar("z"), Error);
}

// What a pass must keep is checked after each.
TEST(Program, APassThatBreaksTheContractIsRefused) {
  Graph g;
  const Tensor x = g.input("x", {2}), s = g.input("s", {2});
  g.output("y", prim::add(x, s));
  g.assign(s, x);
  const auto breaks = [&](const std::function<void(Graph&, Tensor, Tensor)>& finish, const std::string& words) {
    const Compiler c(Pass{"odd", [&](const Graph&, PassLog&) {
                            Graph h;
                            const Tensor a = h.input("x", {2}), b = h.input("s", {2});
                            finish(h, a, b);
                            return h;
                          }});
    try {
      transform(g, c);
      ADD_FAILURE() << words;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  };
  breaks([](Graph& h, Tensor a, Tensor b) { h.assign(b, a); }, "the number of outputs");
  breaks([](Graph& h, Tensor a, Tensor b) { h.output("z", a), h.assign(b, a); }, "renamed the output 'y'");
  breaks([](Graph& h, Tensor a, Tensor b) { h.output("y", a.slice(0, 0, 1)), h.assign(b, a); }, "changed the shape");
  breaks([](Graph& h, Tensor a, Tensor b) { h.output("y", prim::cast(a, DType::F64)), h.assign(b, a); },
         "changed the element type");
  breaks([](Graph& h, Tensor a, Tensor) { h.output("y", a); }, "the number of assignments");
}
