// Compares the gradients of every operation, for any compiler, with PyTorch's (tests/goldens/gradients.txt, made by
// tools/make_goldens.py).
#pragma once

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "../ops/goldens.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/verify.h"

namespace lc::test {

inline Tensor cotangent(const Tensor& t) {
  const Tensor k = t.graph().index({product(t.shape())}, Dim::index(0, product(t.shape())), DType::F64);
  const Tensor c = (fmod(k * 7.0 + 3.0, full_like(k, 11)) - 5.0) / 4.0;
  return c.reshape(t.shape());
}

// Returns why the gradient of case `name` differs from PyTorch's, or "" if it must agree.
inline std::string reason_to_differ(const std::string& name) {
  if (name.starts_with("hardsigmoid")) return "PyTorch's 1/6 is an f32";
  if (name == "fmod odd" || name == "remainder odd") return "by zero: NaN, as the remainder itself";
  if (name == "pow number -0.5") return "at -0, where it is a reciprocal root";
  if (name.starts_with("acosh") || name == "logit") return "outside of its domain";
  return {};
}

struct GradientBatch {
  Graph g;
  std::map<std::string, Value> inputs;
  std::vector<const Golden*> cases;
  int differ = 0;  // cases that differ as expected

  void add(const Golden& c) {
    std::set<std::string> used;
    std::vector<Tensor> in, wrt;
    for (const Value& v : c.in) {
      const std::string name = str_cat(c.name, " in ", in.size());
      in.push_back(g.input(name, Shape(v.shape.begin(), v.shape.end()), v.dtype));
      if (v.dtype == DType::F64) wrt.push_back(in.back());
      inputs[name] = v;
    }
    std::vector<Tensor> results, cotangents;
    for (const Tensor& y : build(c.name, g, in, used))
      if (y.dtype() == DType::F64) results.push_back(y), cotangents.push_back(cotangent(y));
    const std::vector<Tensor> d = vjp(results, wrt, cotangents, {.allow_unused = true});
    ASSERT_EQ(d.size(), c.out.size()) << c.name;
    for (std::size_t k = 0; k < d.size(); ++k) g.output(str_cat(c.name, " d", k), d[k]);
    cases.push_back(&c);
  }

  static std::string difference(const Value& want, const Value& got) {
    if (want.shape != got.shape) return "another shape";
    double largest = 0;
    for (const double w : want.f)
      if (std::isfinite(w)) largest = std::max(largest, std::abs(w));
    for (std::size_t k = 0; k < want.size(); ++k) {
      const double w = want.f[k], g = got.f[k];
      const bool same = std::isfinite(w) ? std::abs(w - g) <= 1e-10 * std::abs(w) + 1e-12 * largest + 1e-300
                                         : std::isnan(w) == std::isnan(g) && (std::isnan(w) || w == g);
      if (!same) return str_cat("[", k, "] is ", g, ", not ", w);
    }
    return {};
  }

  void check(const Compiler& device) {
    const auto reference = interpret(g, inputs).outputs;
    const auto compiled = run_values(transform(g, generic() | device).graph, inputs, {}).outputs;
    for (const Golden* c : cases)
      for (std::size_t k = 0; k < c->out.size(); ++k) {
        const std::string name = str_cat(c->name, " d", k);
        const std::string one = difference(c->out[k], reference.at(name)),
                          two = difference(c->out[k], compiled.at(name));
        if (reason_to_differ(c->name).empty()) {
          EXPECT_EQ(one, "") << "reference: " << name;
          EXPECT_EQ(two, "") << "compiled: " << name;
        } else {
          differ += one != "" && two != "";
        }
      }
  }
};

inline void expect_gradients_of_pytorch(const Compiler& device) {
  const std::vector<Golden> all = goldens("gradients.txt");
  EXPECT_GE(all.size(), 400u);
  int differ = 0;
  for (std::size_t at = 0; at < all.size();) {
    GradientBatch b;
    for (const std::size_t end = std::min(all.size(), at + 40); at < end; ++at) {
      try {
        b.add(all[at]);
      } catch (const std::exception& e) {
        ADD_FAILURE() << all[at].name << ": " << e.what();
      }
    }
    b.check(device);
    differ += b.differ;
  }
  EXPECT_EQ(differ, 8) << "results that differ, each for a reason above";
}

}  // namespace lc::test
