// A user's own composite runs by its definition or by its kernel, with attributes and several results. verify() finds a
// wrong kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lightcone/backends/cpu/composite_kernel.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/composites/composites.h"
#include "lightcone/core/op_eval.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

namespace lc {
namespace {

// Computes x / sqrt(mean(x^2) + eps) over the last axis.
Composite rms_norm(bool kernel, float wrong = 1) {
  Composite c;
  c.name = "test.rms_norm";
  c.infer = [](const Attributes& a, std::span<const TensorType> in) -> std::vector<TensorType> {
    if (in[0].dtype != DType::F32 || in[0].shape.empty()) throw Error("", "needs rows of f32");
    if (!(a.real("eps") > 0)) throw Error("", "eps is not positive");
    return {in[0]};
  };
  c.define = [](const Attributes& a, std::span<const Tensor> in) -> std::vector<Tensor> {
    return {in[0] / sqrt(mean(in[0] * in[0], {-1}, true) + a.real("eps"))};
  };
  if (kernel)
    c.kernels = {cpu_kernel([wrong](const CpuCall& call) {
      const auto shape = call.in_shape(0);
      const std::int64_t n = shape.back();
      std::int64_t rows = 1;
      for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
      const float eps = static_cast<float>(call.attributes().real("eps"));
      call.parallel(rows, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          const float* x = call.in<float>(0) + r * n;
          float* y = call.out<float>() + r * n;
          float sum = 0;
          for (std::int64_t k = 0; k < n; ++k) sum += x[k] * x[k];
          const float scale = wrong / std::sqrt(sum / static_cast<float>(n) + eps);
          for (std::int64_t k = 0; k < n; ++k) y[k] = x[k] * scale;
        }
      });
    })};
  return c;
}

// Computes the least and the greatest element of each row, and whether the row's sum lies between them. The results
// have three different types and shapes.
Composite extremes(bool kernel) {
  Composite c;
  c.name = "test.extremes";
  c.infer = [](const Attributes&, std::span<const TensorType> in) -> std::vector<TensorType> {
    const Shape rows{in[0].shape[0]};
    return {{DType::F32, rows}, {DType::F32, {in[0].shape[0], 2}}, {DType::Bool, rows}};
  };
  c.define = [](const Attributes&, std::span<const Tensor> in) -> std::vector<Tensor> {
    const Tensor low = amin(in[0], {1}), high = amax(in[0], {1}), total = sum(in[0], {1});
    return {low, stack({low, high}, 1), total < high};
  };
  if (kernel)
    c.kernels = {cpu_kernel(
        [](const CpuCall& call) {
          const std::int64_t rows = call.in_shape(0)[0], n = call.in_shape(0)[1];
          for (std::int64_t r = 0; r < rows; ++r) {
            const float* x = call.in<float>(0) + r * n;
            float low = x[0], high = x[0], total = 0;
            for (std::int64_t k = 0; k < n; ++k) {
              total += x[k];
              if (!(low <= x[k]) && low == low) low = x[k];  // keeps a NaN
              if (!(high >= x[k]) && high == high) high = x[k];
            }
            call.out<float>(0)[r] = call.out<float>(1)[2 * r] = low;
            call.out<float>(1)[2 * r + 1] = high;
            call.out<bool>(2)[r] = total < high;
          }
        },
        [](const Attributes&, std::span<const TensorType> in) { return in[0].dtype == DType::F32; })};
  return c;
}

CompositeRef made(Composite c) { return std::make_shared<const Composite>(std::move(c)); }
std::vector<std::string> kernels(const Program& p) {
  std::vector<std::string> names;
  for (NodeId id = 0; id < p.graph().size(); ++id)
    if (p.graph()[id].op == Op::Kernel) names.push_back(p.graph()[id].kernel->name());
  return names;
}
bool uses(const Program& p, const std::string& name) {
  const auto all = kernels(p);
  return std::find(all.begin(), all.end(), name) != all.end();
}

Graph norm_graph(const CompositeRef& c) {
  Graph g;
  const Dim n = Dim::symbol("n", 0, 9);
  const Tensor x = g.input("x", {n, 33});
  g.output("y", call(c, {x * 2.0}, {{"eps", 1e-5}})[0] + 1.0);
  return g;
}

TEST(Composites, ByDefinitionAndByKernel) {
  for (const bool kernel : {false, true}) {
    const Graph g = norm_graph(made(rms_norm(kernel)));
    for (const int threads : {1, 2}) {
      const Compiler c = generic() | cpu({.threads = threads});
      EXPECT_EQ(uses(compile(g, c), "test.rms_norm"), kernel);
      const VerifyReport r = verify(g, c, {.trials = 6});
      EXPECT_TRUE(r.ok()) << r.str();
      EXPECT_GT(r.decided(), 0.99);
    }
  }
}

TEST(Composites, AWrongKernelIsFound) {
  const VerifyReport r = verify(norm_graph(made(rms_norm(true, 1.001f))), generic() | cpu({.threads = 1}));
  ASSERT_TRUE(r.fault);
  EXPECT_EQ(r.fault->pass, "cpu");
}

TEST(Composites, SeveralResults) {
  for (const bool kernel : {false, true})
    for (const int read : {1, 2, 4, 7}) {  // bit mask of the results that are read
      Graph g;
      const Dim n = Dim::symbol("n", 1, 40);
      const auto r = call(made(extremes(kernel)), {g.input("x", {n, 7}).permute({0, 1}) - 0.5});
      ASSERT_EQ(r.size(), 3u);
      EXPECT_EQ(str(r[1].shape()), "[n, 2]");
      EXPECT_EQ(r[2].dtype(), DType::Bool);
      if (read & 1) g.output("low", r[0]);
      if (read & 2) g.output("both", r[1].permute({1, 0}) * 3.0);
      if (read & 4) g.output("between", r[2]);
      const Compiler c = generic() | cpu({.threads = 2});
      EXPECT_EQ(uses(compile(g, c), "test.extremes"), kernel);
      const VerifyReport v = verify(g, c, {.trials = 4});
      EXPECT_TRUE(v.ok()) << v.str();
      EXPECT_TRUE(v.compared());
      const VerifyReport twelve = verify(g, primitives_only(), {.trials = 4});
      EXPECT_TRUE(twelve.ok()) << twelve.str();
      const Bindings env{{"n", 5}};  // without a back end
      auto in = random_inputs(g, env, 3, false);
      in.at("x").f[9] = kNaN, in.at("x").f[15] = kInf, in.at("x").f[22] = -kInf;
      const auto d = compare(interpret(g, in, env, Rounding::Wide, true), run_values(g, in, env), 4);
      EXPECT_FALSE(d) << d->str();
      const auto k =
          compare(interpret(g, in, env, Rounding::Wide, true), run_values(transform(g, c).graph, in, env), 4);
      EXPECT_FALSE(k) << k->str();
      const Graph plain = transform(g, primitives_only()).graph;
      const auto live = plain.live();
      for (NodeId id = 0; id < plain.size(); ++id)
        EXPECT_TRUE(!live[id] || info(plain[id].op).has(kPrimitive) || info(plain[id].op).kind == Kind::Leaf);
    }
}

// A definition may use other composites.
TEST(Composites, WithinEachOther) {
  const CompositeRef inner = made(rms_norm(true));
  Composite outer;
  outer.name = "test.twice";
  outer.infer = [](const Attributes&, std::span<const TensorType> in) -> std::vector<TensorType> { return {in[0]}; };
  outer.define = [inner](const Attributes&, std::span<const Tensor> in) -> std::vector<Tensor> {
    return {call(inner, {call(inner, {in[0]}, {{"eps", 0.5}})[0]}, {{"eps", 0.25}})[0]};
  };
  Graph g;
  g.output("y", call(made(outer), {g.input("x", {3, 5})})[0]);
  const Program p = compile(g, generic() | cpu({.threads = 1}));
  EXPECT_EQ(kernels(p), (std::vector<std::string>{"test.rms_norm", "test.rms_norm"}));
  EXPECT_TRUE(verify(g, generic() | cpu({.threads = 1})).ok());
}

// A symbol that occurs only in an attribute.
TEST(Composites, ExtentsOfAttributesAreBound) {
  const auto answer = [](const Graph& g, const Compiler& c) {
    Context run(compile(g, c));
    run.bind("at", 2).set("x", std::vector<float>{1, 2, 3, 4, 5, 6}).run();
    return run.get("y");
  };
  const auto compilers = {Compiler(), generic() | cpu({.threads = 1})};
  const Dim at = Dim::symbol("at", 0, 4);
  for (const Compiler& c : compilers) {
    Graph g;
    const Tensor x = g.input("x", {6});
    g.output("y", prim::slice_scatter(x, full(g, {2}, 9), 0, at));
    EXPECT_EQ(answer(g, c), (std::vector<float>{1, 2, 9, 9, 5, 6}));
    Graph h;
    // the symbol is in no shape either: the result has two elements
    h.output("y", h.input("x", {6}).slice(0, at, at + 2));
    EXPECT_EQ(answer(h, c), (std::vector<float>{3, 4}));
  }
  Composite plus;
  plus.name = "test.plus";
  plus.infer = [](const Attributes&, std::span<const TensorType> in) -> std::vector<TensorType> { return {in[0]}; };
  plus.define = [](const Attributes& a, std::span<const Tensor> in) -> std::vector<Tensor> {
    return {in[0] + prim::cast(in[0].graph().index({}, a.dim("n")), DType::F32).reshape({1}).expand(in[0].shape())};
  };
  plus.kernels = {cpu_kernel([](const CpuCall& call) {
    for (std::int64_t k = 0; k < call.in_shape(0)[0]; ++k)
      call.out<float>()[k] = call.in<float>(0)[k] + static_cast<float>(call.extent("n"));
  })};
  Graph g;
  g.output("y", call(made(plus), {g.input("x", {6})}, {{"n", at * 10 + 1}})[0]);
  for (const Compiler& c : compilers) EXPECT_EQ(answer(g, c), (std::vector<float>{22, 23, 24, 25, 26, 27}));
  EXPECT_TRUE(verify(g, generic() | cpu({.threads = 1})).ok());
}

TEST(Composites, SeveralResultsNeedABound) {
  Graph g;
  const Tensor x = g.input("x", {Dim::symbol("n", 1, std::int64_t{1} << 60), 2});
  try {
    call(made(extremes(false)), {x});
    FAIL() << "sizes of bytes overflowed";
  } catch (const Error& e) {
    EXPECT_TRUE(std::string(e.what()).starts_with("test.extremes: results of [n")) << e.what();
  }
}

TEST(Composites, AttributesArePartOfANodesIdentity) {
  const CompositeRef c = made(rms_norm(false));
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  const Edge a = call(c, {x}, {{"eps", 1e-5}})[0].edge();
  EXPECT_EQ(call(c, {x}, {{"eps", 1e-5}})[0].edge(), a);
  EXPECT_NE(call(c, {x}, {{"eps", 1e-6}})[0].edge(), a);
  EXPECT_NE(call(made(rms_norm(false)), {x}, {{"eps", 1e-5}})[0].edge(), a);
  g.output("y", Tensor(g, a));
  EXPECT_NE(g.str().find("test.rms_norm<eps=1e-05>"), std::string::npos) << g.str();
}

std::string problem(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Composites, ErrorsNameTheCompositeAndTheLine) {
  const CompositeRef c = made(rms_norm(false));
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  const auto begins = [&](const std::string& s, const std::string& with) {
    EXPECT_TRUE(s.starts_with(with) && s.find("composite_test.cpp:") != std::string::npos) << s;
  };
  begins(problem([&] { call(c, {x}, {{"eps", 0.0}}); }), "test.rms_norm: eps is not positive");
  begins(problem([&] { call(c, {to(x, DType::I32)}, {{"eps", 1.0}}); }), "test.rms_norm: needs rows of f32");
  begins(problem([&] { call(c, {x, x}, {{"eps", 1.0}}); }), "test.rms_norm: takes 1 operands, not 2");
  begins(problem([&] { call(c, {x}); }), "test.rms_norm: it has no attribute 'eps' that is a number");
  Composite broken = rms_norm(false);
  broken.define = [](const Attributes&, std::span<const Tensor> in) -> std::vector<Tensor> {
    return {sum(in[0], {1})};
  };
  g.output("y", call(made(broken), {x}, {{"eps", 1.0}})[0]);
  EXPECT_NE(problem([&] { compile(g, cpu({.threads = 1})); }), "no error");
}

TEST(Constants, WholeNumbersKeepTheir64Bits) {
  using Limits = std::numeric_limits<std::int64_t>;
  for (const std::int64_t v :
       {(std::int64_t{1} << 53) + 1, -(std::int64_t{1} << 62) - 1, Limits::max(), Limits::min()}) {
    Graph g;
    const Tensor c = g.constant(v, DType::I64);
    g.output("c", c);
    g.output("sum", g.input("x", {2}, DType::I64) + c.reshape({1}).expand({2}));
    for (const Compiler& compiler : {Compiler(), generic() | cpu({.threads = 1}), generic() | cpu({.compiler = false}),
                                     generic() | cpu({.threads = 1, .jit = {.compiler = "llvm"}})}) {
      try {
        Program p = compile(g, compiler);
        Context run(p);
        run.set("x", std::vector<std::int64_t>{0, 1}).run();
        EXPECT_EQ(run.get_i64("c")[0], v);
        EXPECT_EQ(run.get_i64("sum"), (std::vector<std::int64_t>{v, eval::add(v, 1)}));
      } catch (const Error& e) {
        // the LLVM library is not installed
        ASSERT_NE(std::string(e.what()).find("llvm"), std::string::npos) << e.what();
      }
    }
  }
}

}  // namespace
}  // namespace lc
