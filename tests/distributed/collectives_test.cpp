// Collective operations: what each gives, in which order it adds, its derivative, and what a rank that does not come
// does.
#include "lightcone/distributed/collectives.h"

#include <atomic>
#include <chrono>
#include <cmath>

#include <gtest/gtest.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "ranks.h"

namespace lc {
namespace {

using Floats = std::vector<float>;
using test::run_ranks;

void expect_none(const std::vector<std::string>& thrown) {
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
}

// Computes y = f(x) on a rank by the processor's kernels and by the reference; both have to agree.
Floats compute(const Collectives&, Shape shape, const Floats& x, const std::function<Tensor(const Tensor&)>& f) {
  Graph g;
  g.output("y", f(g.input("x", std::move(shape))));
  Context c(compile(g, generic() | cpu({.threads = 1, .compiler = false})));
  const Floats y = c.set("x", x).run().get("y");
  Value v = make_value(DType::F32, {});
  const Node* in = nullptr;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input) in = &g[id];
  for (const Dim& d : in->shape) v.shape.push_back(*d.constant());
  v.f.assign(x.begin(), x.end());
  const Value want = interpret(g, {{"x", v}}).outputs.at("y");
  EXPECT_EQ(want.f, std::vector<double>(y.begin(), y.end()));
  return y;
}

TEST(Collectives, EachOperation) {
  const Mesh mesh({{"data", 2}, {"model", 2}});
  expect_none(run_ranks(mesh, [](const Collectives& c) {
    const auto r = static_cast<float>(c.rank()), d = static_cast<float>(c.rank() / 2),
               m = static_cast<float>(c.rank() % 2);
    const Floats x{r, 10 * r};
    EXPECT_EQ(compute(c, {2}, x, [&](const Tensor& t) { return c.all_reduce(t, {"data", "model"}); }), (Floats{6, 60}));
    EXPECT_EQ(compute(c, {2}, x, [&](const Tensor& t) { return c.all_reduce(t, {"data"}); }),
              (Floats{2 + 2 * m, 20 + 20 * m}));
    EXPECT_EQ(compute(c, {2}, x, [&](const Tensor& t) { return c.all_reduce(t, {"model"}, ReduceOp::Max); }),
              (Floats{2 * d + 1, 20 * d + 10}));
    EXPECT_EQ(compute(c, {2}, x, [&](const Tensor& t) { return c.all_gather(t, {"model"}); }),
              (Floats{2 * d, 20 * d, 2 * d + 1, 20 * d + 10}));
    // Along the first axis that is named, ranks are farthest apart.
    EXPECT_EQ(compute(c, {1}, {r},
                      [&](const Tensor& t) {
                        return c.all_gather(t, {"model", "data"});
                      }),
              (Floats{0, 2, 1, 3}));
    EXPECT_EQ(compute(c, {2, 1}, x, [&](const Tensor& t) { return c.reduce_scatter(t, {"data"}); }),
              (Floats{d == 0 ? 2 + 2 * m : 20 + 20 * m}));
    EXPECT_EQ(compute(c, {2, 1}, x, [&](const Tensor& t) { return c.all_to_all(t, {"model"}); }),
              m == 0 ? (Floats{2 * d, 2 * d + 1}) : (Floats{20 * d, 20 * d + 10}));
    EXPECT_EQ(compute(c, {1}, {r}, [&](const Tensor& t) { return c.broadcast(t, {"data"}, 1); }), (Floats{2 + m}));
    EXPECT_EQ(compute(c, {1}, {r}, [&](const Tensor& t) { return c.shift(t, "data", 1); }), (Floats{2 * (1 - d) + m}));
    EXPECT_EQ(compute(c, {1}, {r + 1}, [&](const Tensor& t) { return c.shift(t, "data", 1, false); }),
              (Floats{d == 0 ? 0 : m + 1}));
  }));
}

// 1e8 + 1 - 1e8 depends on the order: it is that of the ranks, on all of them.
TEST(Collectives, SumsAddInTheOrderOfTheRanks) {
  for (int n : {2, 3, 4, 8}) {
    expect_none(run_ranks(Mesh({{"data", n}}), [n](const Collectives& c) {
      Graph g;
      g.output("y", c.all_reduce(g.input("x", {5}), {"data"}));
      Context run(compile(g, generic() | cpu({.threads = 1, .compiler = false})));
      const float parts[] = {1e8f, 1.0f, -1e8f, 0.5f, 3e7f, 1.5f, -3e7f, 0.25f};
      float want = parts[0];
      for (int k = 1; k < n; ++k) want += parts[k];
      run.set("x", Floats(5, parts[c.rank()])).run();
      EXPECT_EQ(run.get("y"), Floats(5, want));
    }));
  }
}

TEST(Collectives, NarrowTypesAddInF32) {
  expect_none(run_ranks(Mesh({{"data", 3}}), [](const Collectives& c) {
    Graph g;
    g.output("y", prim::cast(c.all_reduce(g.input("x", {1}, DType::BF16), {"data"}), DType::F32));
    g.output("i", c.all_reduce(g.input("i8", {1}, DType::I8), {"data"}));
    g.output("b", c.all_reduce(g.input("bool", {2}, DType::Bool), {"data"}));
    Context run(compile(g, generic() | cpu({.threads = 1, .compiler = false})));
    run.set("x", Floats{c.rank() == 0 ? 256.0f : 1.0f})
        .set("i8", Floats{100})
        .set("bool", Floats{0, c.rank() == 1 ? 1.0f : 0});
    run.run();
    EXPECT_EQ(run.get("y"), Floats{258});  // 256 + 1 is 256 in bf16
    EXPECT_EQ(run.get("i"), Floats{44});   // 300 wraps
    EXPECT_EQ(run.get("b"), (Floats{0, 1}));
  }));
}

// The derivative of the sum of all ranks' losses: here of sum(w * op(x)), with another w on each rank.
TEST(Collectives, Derivatives) {
  expect_none(run_ranks(Mesh({{"data", 2}}), [](const Collectives& c) {
    const auto r = static_cast<float>(c.rank());
    const auto derivative = [&](Shape shape, Shape result, const Floats& w,
                                const std::function<Tensor(const Tensor&)>& f) {
      Graph g;
      const Tensor x = g.input("x", shape), y = g.input("w", std::move(result));
      g.output("d", gradient(sum(mul(f(x), y)), x));
      Context run(compile(g, generic() | cpu({.threads = 1, .compiler = false})));
      return run.set("x", Floats(static_cast<std::size_t>(*product(shape).constant()), 1)).set("w", w).run().get("d");
    };
    const std::vector<std::string> axes{"data"};
    EXPECT_EQ(derivative({2}, {2}, {1 + r, 2}, [&](const Tensor& x) { return c.all_reduce(x, axes); }), (Floats{3, 4}));
    EXPECT_EQ(derivative({1}, {2, 1}, {1 + r, 10 + r}, [&](const Tensor& x) { return c.all_gather(x, axes); }),
              (Floats{r == 0 ? 3.0f : 21.0f}));
    EXPECT_EQ(derivative({2, 1}, {1}, {5 + r}, [&](const Tensor& x) { return c.reduce_scatter(x, axes); }),
              (Floats{5, 6}));
    EXPECT_EQ(derivative({2, 1}, {2, 1}, {1 + r, 10 + r}, [&](const Tensor& x) { return c.all_to_all(x, axes); }),
              r == 0 ? (Floats{1, 2}) : (Floats{10, 11}));
    EXPECT_EQ(derivative({1}, {1}, {5 + r}, [&](const Tensor& x) { return c.broadcast(x, axes, 1); }),
              (Floats{r == 0 ? 0.0f : 11.0f}));
    EXPECT_EQ(derivative({1}, {1}, {5 + r}, [&](const Tensor& x) { return c.shift(x, "data", 1, false); }),
              (Floats{r == 0 ? 6.0f : 0.0f}));
  }));
}

// ---- what goes wrong
// -------------------------------------------------------------------------------------------------

TEST(Collectives, ARankThatEndsIsSeenAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  const auto thrown = run_ranks(Mesh({{"data", 3}}), [](const Collectives& c) {
    if (c.rank() == 1) throw Error("test", "this rank has no disk");
    compute(c, {1}, {1}, [&](const Tensor& t) { return c.all_reduce(t, {"data"}); });
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(thrown[1], "test: this rank has no disk");
  for (const int rank : {0, 2}) {
    EXPECT_NE(thrown[static_cast<std::size_t>(rank)].find("rank 1 has ended (all_reduce (sum) of 1 f32 among 3 ranks"),
              std::string::npos)
        << thrown[static_cast<std::size_t>(rank)];
  }
}

TEST(Collectives, ARankThatDoesNotComeIsNamed) {
  std::atomic<bool> over = false;
  const auto thrown = run_ranks(
      Mesh({{"data", 2}}),
      [&](const Collectives& c) {
        if (c.rank() == 1) {
          while (!over) std::this_thread::yield();
          return;
        }
        try {
          compute(c, {1}, {1}, [&](const Tensor& t) { return c.all_reduce(t, {"data"}); });
        } catch (...) {
          over = true;
          throw;
        }
        over = true;
      },
      0.2);
  EXPECT_NE(thrown[0].find("rank 1 did not come within 0.2 s"), std::string::npos) << thrown[0];
}

TEST(Collectives, RanksMustRunTheSameProgram) {
  const auto thrown = run_ranks(Mesh({{"data", 2}}), [](const Collectives& c) {
    const std::int64_t n = c.rank() + 1;
    compute(c, {n}, Floats(static_cast<std::size_t>(n), 1), [&](const Tensor& t) { return c.all_reduce(t, {"data"}); });
  });
  for (const std::string& what : thrown)
    EXPECT_NE(what.find("ranks run different operations: rank 0 all_reduce (sum) of 1 f32"), std::string::npos) << what;
  for (const std::string& what : run_ranks(Mesh({{"data", 2}}), [](const Collectives& c) {
         c.check_same("the model", c.rank() ? "gpt2-medium" : "gpt2");
       }))
    EXPECT_NE(what.find("ranks differ in the model: rank 0 has gpt2, rank 1 has gpt2-medium"), std::string::npos)
        << what;
}

TEST(Mesh, Groups) {
  const Mesh mesh({{"data", 2}, {"model", 3}});
  EXPECT_EQ(mesh.size(), 6);
  EXPECT_EQ(mesh.str(), "data=2, model=3");
  const std::vector<int> data{0}, model{1}, both{0, 1}, turned{1, 0};
  EXPECT_EQ(mesh.group(4, data), (std::vector<int>{1, 4}));
  EXPECT_EQ(mesh.group(4, model), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(mesh.group(4, both), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(mesh.group(4, turned), (std::vector<int>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(mesh.place(4, turned), 3);
  EXPECT_THROW(Mesh({{"data", 2}, {"data", 2}}), Error);
  EXPECT_THROW(Mesh({{"data", 0}}), Error);
  EXPECT_THROW(mesh.axis("pipe"), Error);
}

TEST(Mesh, IsReadFromText) {
  const Mesh mesh({{"data", 2}, {"model", 3}});
  EXPECT_EQ(Mesh::parse("data=2,model=3"), mesh);
  EXPECT_EQ(Mesh::parse(mesh.str()), mesh);
  for (const char* text :
       {"", "data", "data=", "data=2,", "data=2,,model=3", "data=2x", "data=-1", "=2", "data=2 ,a=1"})
    EXPECT_THROW(Mesh::parse(text), Error) << text;
}

}  // namespace
}  // namespace lc
