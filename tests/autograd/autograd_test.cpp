// Every rule of differentiation agrees with central differences in f64, of first and second order. Ties, jvp, hvp,
// stop_gradient, custom_gradient and each mistake behave as documented.
#include "lightcone/autograd/autograd.h"

#include <gtest/gtest.h>

#include "differences.h"
#include "error_of.h"
#include "lightcone/composites/composites.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "on_device.h"

using namespace lc;

namespace {

struct Case {
  Graph g;
  Inputs inputs;
  std::mt19937_64 random{11};

  Tensor in(const std::string& name, std::vector<std::int64_t> shape, double low = -2, double high = 2) {
    Value v = make_value(DType::F64, shape);
    std::uniform_real_distribution<double> uniform(low, high);
    for (double& x : v.f) x = uniform(random);
    inputs[name] = v;
    return g.input(name, Shape(shape.begin(), shape.end()), DType::F64);
  }
  Tensor ids(const std::string& name, std::vector<std::int64_t> shape, std::int64_t below) {
    Value v = make_value(DType::I64, shape);
    for (auto& x : v.i) x = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
    inputs[name] = v;
    return g.input(name, Shape(shape.begin(), shape.end()), DType::I64);
  }
};

void check(const std::string& what, const std::function<Tensor(Case&)>& f, int order = 2, double tolerance = 2e-6) {
  SCOPED_TRACE(what);
  Case c;
  const Tensor y = f(c);
  check_gradients(c.g, y, c.inputs, what, order, {}, tolerance);
}

TEST(Rules, TheTwelveAndTheElementwiseComposites) {
  using U = Tensor (*)(Operand);
  const std::pair<const char*, U> positive[] = {{"log2", prim::log2}, {"sqrt", prim::sqrt}, {"recip", prim::recip}};
  for (const auto& [name, f] : positive) check(name, [f = f](Case& c) { return f(c.in("x", {2, 3}, 0.5, 2)); });
  const std::pair<const char*, U> any[] = {{"exp2", prim::exp2},
                                           {"sin", prim::sin},
                                           {"exp", prim::exp},
                                           {"cos", prim::cos},
                                           {"contiguous", prim::contiguous}};
  for (const auto& [name, f] : any) check(name, [f = f](Case& c) { return f(c.in("x", {2, 3})); });
  using B = Tensor (*)(Operand, Operand);
  const std::pair<const char*, B> two[] = {
      {"add", prim::add}, {"mul", prim::mul}, {"maximum", prim::maximum}, {"minimum", prim::minimum}};
  for (const auto& [name, f] : two) check(name, [f = f](Case& c) { return f(c.in("x", {2, 3}), c.in("y", {2, 3})); });
  check("div", [](Case& c) { return prim::div(c.in("x", {4}), c.in("y", {4}, 0.5, 2)); });
  check("mod", [](Case& c) { return prim::mod(c.in("x", {4}, 3, 9), c.in("y", {4}, 1.5, 2.4)); });
  check("pow", [](Case& c) { return prim::pow(c.in("x", {4}, 0.5, 2), c.in("y", {4})); });
  check("where", [](Case& c) {
    const Tensor x = c.in("x", {5});
    return prim::where(x < 0.3, x * x, c.in("y", {5}));
  });
  for (int axis = 0; axis < 3; ++axis) {
    check("sum", [axis](Case& c) { return square(prim::sum_reduce(c.in("x", {2, 3, 4}), axis)); });
    check("max", [axis](Case& c) { return square(prim::max_reduce(c.in("x", {2, 3, 4}), axis)); });
  }
}

TEST(Rules, TheSameTensorTwice) {
  check("x x", [](Case& c) {
    const Tensor x = c.in("x", {3});
    return x * x * x;
  });
  check("x x^T", [](Case& c) {
    const Tensor x = c.in("x", {3, 3});
    return matmul(x, x.transpose(0, 1));
  });
}

TEST(Views, EachMoveHasItsTranspose) {
  check("permute", [](Case& c) { return square(c.in("x", {2, 3, 4}).permute({2, 0, 1})); });
  check("reshape", [](Case& c) { return square(c.in("x", {2, 6}).reshape({3, 4})); });
  check("expand", [](Case& c) { return c.in("x", {1, 3, 1}).expand({4, 3, 5}) * c.in("y", {4, 3, 5}); });
  check("slice", [](Case& c) { return square(c.in("x", {7, 3}).slice(0, 1, 6, 2)); });
  check("slice whose step reaches over the end", [](Case& c) { return square(c.in("x", {8}).slice(0, 1, 8, 3)); });
  check("flip", [](Case& c) { return square(c.in("x", {5})).flip(0) * c.in("y", {5}); });
  check("flip and step", [](Case& c) { return square(c.in("x", {7}).flip(0).slice(0, 1, 7, 2)); });
  check("pad", [](Case& c) { return square(c.in("x", {2, 3}).pad(1, 2, 1)) * c.in("y", {2, 6}); });
  const auto windows = [](std::int64_t n, std::int64_t size, std::int64_t stride, std::int64_t dilation) {
    check(
        str_cat("windows of ", size, " by ", stride, " dilated by ", dilation, " of ", n),
        [=](Case& c) {
          return square(c.in("x", {2, n, 3}).unfold(1, size, stride, dilation));
        },
        1);
  };
  windows(7, 3, 1, 1), windows(9, 3, 2, 1), windows(9, 3, 1, 2), windows(11, 2, 3, 4), windows(8, 2, 2, 1),
      windows(9, 2, 3, 1), windows(40, 35, 1, 1), windows(80, 36, 2, 2), windows(6, 3, 3, 1), windows(3, 3, 1, 1);
}

TEST(Views, WindowsOfASizeThatIsNotKnown) {
  const Dim k = Dim::symbol("k", 1, 9);
  for (const std::int64_t size : {1, 2, 3, 8}) {
    Case d;
    const Tensor z = square(d.in("x", {9, 2}).unfold(0, k, 2, 1));
    check_gradients(d.g, z, d.inputs, str_cat("k = ", size), 1, {{"k", size}});
  }
}

TEST(Rules, WhatMovesElements) {
  check("gather", [](Case& c) { return prim::gather(square(c.in("x", {4, 3})), c.ids("i", {6, 3}, 6), 0); });
  check("scatter_add", [](Case& c) {
    return square(prim::scatter_add(c.in("x", {4, 3}), c.ids("i", {6, 3}, 6), c.in("y", {6, 3}), 0));
  });
  check("scatter: the last writer counts", [](Case& c) {
    return square(prim::scatter(c.in("x", {4, 3}), c.ids("i", {6, 3}, 5), c.in("y", {6, 3}), 0));
  });
  check("slice_scatter", [](Case& c) {
    return square(prim::slice_scatter(c.in("x", {6, 2}), c.in("y", {3, 2}), 0, 2));
  });
  check("sort", [](Case& c) { return square(sort(c.in("x", {3, 5})).values); });
  check("topk", [](Case& c) { return square(topk(c.in("x", {3, 5}), 2).values); });
}

TEST(Gradients, OfAnMlpAreMatrixProducts) {
  Graph g;
  const Tensor x = g.input("x", {32, 64}), w = g.parameter("w", {64, 48}, DType::F32);
  const Tensor v = g.parameter("v", {48, 10}, DType::F32);
  const Tensor h = relu(matmul(x, w)), loss = sum(square(matmul(h, v)));
  const auto d = gradients(loss, {w, v});
  EXPECT_EQ(d[0].shape(), w.shape());
  d[0].retrieve("dw"), d[1].retrieve("dv");
  const Program p = compile(g, generic() | test::device());
  EXPECT_EQ(fired(p.log(), "matmul"), 5) << report(p.log());
}

// Two layers read one tensor. Its gradient is the sum of two matrix products, not a loop over the sum of both.
TEST(Gradients, OfLayersSideBySideAreMatrixProducts) {
  Graph g;
  const Tensor x = g.input("x", {32, 64}), h = x * 2.0;
  std::vector<Tensor> weights;
  for (const char* name : {"gate", "up"}) weights.push_back(g.parameter(name, {48, 64}, DType::F32));
  const Tensor loss = sum(silu(linear(h, weights[0])) * linear(h, weights[1]));
  weights.push_back(x);
  for (const Tensor& d : gradients(loss, weights)) d.retrieve();
  const Program p = compile(g, generic() | test::device());
  EXPECT_EQ(fired(p.log(), "matmul"), 6) << report(p.log());
}

TEST(Gradients, TiesShare) {
  Graph g;
  const Tensor x = g.input("x", {4}, DType::F64);
  gradient(amax(x), x).retrieve("amax");
  gradient(sum(maximum(x, full_like(x, 1))), x).retrieve("maximum");
  const auto out = interpret(g, {{"x",
                                  [] {
                                    Value v = make_value(DType::F64, {4});
                                    v.f = {1, 3, 3, 2};
                                    return v;
                                  }()}})
                       .outputs;
  EXPECT_EQ(out.at("amax").f, (std::vector<double>{0, 0.5, 0.5, 0}));
  EXPECT_EQ(out.at("maximum").f, (std::vector<double>{0.5, 1, 1, 1}));
}

TEST(Gradients, StopGradientAndCustomGradient) {
  Case c;
  const Tensor x = c.in("x", {3});
  gradient(sum(x * stop_gradient(x)), x).retrieve("stopped");
  const Tensor reversed = custom_gradient(
      x, {x}, [](const VjpCall& call) { return std::vector<Tensor>{prim::mul(call.g(), full_like(call.g(), -2))}; });
  gradient(sum(reversed * 3.0), x).retrieve("reversed");
  const auto out = interpret(c.g, c.inputs).outputs;
  EXPECT_EQ(out.at("stopped").f, c.inputs.at("x").f);
  EXPECT_EQ(out.at("reversed").f, (std::vector<double>{-6, -6, -6}));
}

TEST(Gradients, JvpAndHvp) {
  Case c;
  const Tensor x = c.in("x", {3}), t = c.in("t", {3}), y = sin(x) * square(x);
  jvp({y}, {x}, {t})[0].retrieve("jvp");
  (t * gradient(sum(y), x)).retrieve("expected");  // the Jacobian is diagonal
  const Tensor loss = sum(y) * sum(x);
  hvp(loss, {x}, {t})[0].retrieve("hvp");
  gradient(sum(gradient(loss, x) * t), x).retrieve("hvp expected");
  const auto out = interpret(c.g, c.inputs).outputs;
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(out.at("jvp").f[k], out.at("expected").f[k], 1e-12);
    EXPECT_NEAR(out.at("hvp").f[k], out.at("hvp expected").f[k], 1e-12);
  }
}

TEST(Gradients, MistakesAreSentences) {
  Graph g;
  const Tensor x = g.input("x", {3}), w = g.input("w", {3}), k = g.input("k", {3}, DType::I64);
  EXPECT_PRED2(contains, error_of([&] { gradients(x, {x}); }), "not one floating element; reduce it");
  EXPECT_PRED2(contains, error_of([&] { gradients(sum(x), {w}); }),
               "the loss does not depend on 'w' [3]: no operation on the way to the loss reads it. Leave out what is "
               "not trained: in a model nn::Frozen does; gradients() and vjp() take {.allow_unused = true}");
  EXPECT_PRED2(contains, error_of([&] { gradients(sum(x), {k}); }), "derivatives need floating elements");
  EXPECT_PRED2(contains, error_of([&] { gradients(sum(x), {x.reshape({1, 3})}); }), "name the tensor itself");
  EXPECT_PRED2(contains, error_of([&] { gradients(sum(x * stop_gradient(w)), {w}); }), "stop_gradient");
  EXPECT_PRED2(contains, error_of([&] { gradients(sum(x * to(argmax(w * x, 0), DType::F32)), {w}); }),
               "has no derivative and cuts the path");
}

TEST(Gradients, AsACompiler) {
  Graph g;
  const Tensor x = g.input("x", {4}), w = g.parameter("w", {4}, DType::F32);
  sum(square(x * w)).retrieve("loss");
  Program p = compile(g, autograd("loss") | generic() | test::device());
  const float weights[4] = {1, 2, 3, 4};
  p.load("w", weights, sizeof weights);
  Context c(p);
  c.set("x", std::vector<float>{1, 1, 2, 0}).run();
  EXPECT_EQ(c.get("grad.w"), (std::vector<float>{2, 4, 24, 0}));
  EXPECT_PRED2(contains, error_of([&] { compile(g, autograd("los") | generic()); }), "no output is named 'los'");
}

}  // namespace
