// Derivatives by central differences in f64, against which the differentiation rules are checked.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/ops/ops.h"
#include "lightcone/reference/interpreter.h"

namespace lc {

using Inputs = std::map<std::string, Value>;

// Returns d output / d input for a scalar output: (f(x + step) - f(x - step)) / (2 step) per element, where step is h *
// max(1, |x|).
inline std::vector<double> central_differences(const Graph& g, const Inputs& inputs, const std::string& input,
                                               const std::string& output, const Bindings& env = {}, double h = 1e-6) {
  std::vector<double> d;
  Inputs moved = inputs;
  for (std::size_t k = 0; k < inputs.at(input).f.size(); ++k) {
    const double x = inputs.at(input).f[k], step = h * std::max(1.0, std::abs(x));
    double& at = moved.at(input).f[k];
    at = x + step;
    const double up = interpret(g, moved, env).outputs.at(output).f[0], high = at;
    at = x - step;
    const double down = interpret(g, moved, env).outputs.at(output).f[0];
    d.push_back((up - down) / (high - at));
    at = x;
  }
  return d;
}

// Checks the gradients of sum(y * c), for random c, with respect to every f64 input of `g` against central differences.
// With `order` 2, the gradients themselves are differentiated and checked in the same way.
inline void check_gradients(Graph& g, const Tensor& y, Inputs inputs, const std::string& what, int order = 1,
                            const Bindings& env = {}, double tolerance = 2e-6) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto weighted = [&](const Tensor& t, const std::string& name) {
    const Tensor c = g.input(name, t.shape(), DType::F64);
    Value v = make_value(DType::F64, {});
    for (const Dim& d : t.shape()) v.shape.push_back(d.eval(env));
    std::size_t n = 1;
    for (const auto s : v.shape) n *= static_cast<std::size_t>(s);
    for (std::size_t k = 0; k < n; ++k) v.f.resize(n), v.f[k] = uniform(random);
    inputs[name] = v;
    return sum(prim::cast(t, DType::F64) * c);
  };
  std::vector<Tensor> wrt;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && g[id].dtype == DType::F64) wrt.emplace_back(g, Edge{id, View(g[id].shape)});
  Tensor loss = weighted(y, what + ".c");
  for (int k = 1; k <= order; ++k) {
    const std::string name = str_cat(what, ".loss", k);
    loss.retrieve(name);
    const std::vector<Tensor> d = gradients(loss, wrt, {.allow_unused = true});
    Tensor next;
    for (std::size_t i = 0; i < d.size(); ++i) {
      const std::string input = wrt[i].node().name;
      d[i].retrieve(str_cat(name, ".d.", input));
      const Tensor part = weighted(d[i], str_cat(name, ".c.", input));
      next = next.defined() ? next + part : part;
    }
    const auto found = interpret(g, inputs, env).outputs;
    for (const Tensor& w : wrt) {
      const std::string input = w.node().name;
      const std::vector<double> expected = central_differences(g, inputs, input, name, env);
      const Value& got = found.at(str_cat(name, ".d.", input));
      ASSERT_EQ(got.size(), expected.size()) << what;
      double largest = 1;
      for (const double e : expected) largest = std::max(largest, std::abs(e));
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(got.f[i], expected[i], tolerance * largest)
            << what << ": order " << k << ", " << input << "[" << i << "]";
    }
    loss = next;
  }
}

}  // namespace lc
