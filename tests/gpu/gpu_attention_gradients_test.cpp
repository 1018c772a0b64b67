// The derivative of attention runs as kernels of its own on every GPU device and agrees with f64 for all masks, groups
// and odd sizes. It keeps no scores in memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ranges>

#include "gpu_devices.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"
#include "random_inputs.h"

using namespace lc;
using test::Inputs;

namespace {

struct Case {
  Shape q, k, v;
  bool causal = false;
  Shape mask = {};
  DType mask_type = DType::Bool;
};

Graph derivative(const Case& c) {
  Graph g;
  const Tensor q = g.input("q", c.q), k = g.input("k", c.k), v = g.input("v", c.v);
  Shape out = c.q;
  out.back() = c.v.back();
  const AttentionOptions o{.attn_mask = c.mask.empty() ? Tensor() : g.input("mask", c.mask, c.mask_type),
                           .is_causal = c.causal};
  const std::vector<Tensor> d = vjp({scaled_dot_product_attention(q, k, v, o)}, {q, k, v}, {g.input("g", out)});
  g.output("dq", d[0]), g.output("dk", d[1]), g.output("dv", d[2]);
  return g;
}

Inputs draw(const Graph& g) {
  Inputs in = test::random_values(g, 5);
  if (const auto mask = in.find("mask"); mask != in.end())
    for (std::size_t k = 0; k < mask->second.i.size(); ++k) mask->second.i[k] = k % 7 != 3;
  return in;
}

class AttentionGradientsOnGpu : public test::OnGpu {
 protected:
  Compiler with_fallback() const { return compiler({.precision = precision, .fallback = cpu({.threads = 1})}); }
  Graph compiled(const Graph& g, int kernels = 1) const {
    auto t = transform(g, generic() | with_fallback());
    EXPECT_EQ(std::ranges::count_if(
                  t.log, [](const PassLog& l) { return l.pass == "gpu" && l.fired.contains("attention_gradients"); }),
              kernels);
    return std::move(t.graph);
  }
  // At medium precision, operands, probabilities and slopes are rounded to bf16, so sums of them are off by up to two
  // hundredths of the largest element.
  void compare_all(const Results& want, const Results& got) const {
    for (const auto& [name, v] : want.outputs) {
      const Value& a = got.outputs.at(name);
      double most = 0;
      for (std::size_t k = 0; k < v.size(); ++k)
        most = std::isfinite(v.at(k)) ? std::max(most, std::abs(v.at(k))) : most;
      const double rounded = precision == Precision::Medium ? 0.02 * most : 0;
      for (std::size_t k = 0; k < v.size(); ++k) {
        const std::string at = str_cat(name, "[", k, "]");
        if (std::isnan(v.at(k))) ASSERT_TRUE(std::isnan(a.at(k))) << at << ": " << a.at(k);
        else if (std::isinf(v.at(k))) ASSERT_EQ(a.at(k), v.at(k)) << at;
        else ASSERT_NEAR(a.at(k), v.at(k), 4 * v.error_at(k) + 1e-5 + rounded) << at;
      }
    }
  }
  Precision precision = Precision::Highest;
  static bool same_bits(const Results& a, const Results& b) {
    return std::all_of(a.outputs.begin(), a.outputs.end(), [&](const auto& output) {
      const auto& v = output.second.f;
      const auto& w = b.outputs.at(output.first).f;
      return v.empty() || std::memcmp(v.data(), w.data(), v.size() * sizeof v[0]) == 0;
    });
  }
  // On the CUDA simulator, it also runs with threads in reverse order.
  void agree(const Graph& g, const Graph& made, const Inputs& in, const Bindings& env = {}) const {
    const Results got = run_values(made, in, env);
    compare_all(interpret(g, in, env, Rounding::Wide, true), got);
    if (HasFatalFailure() || GetParam().name != "cuda" || !test::set_fake_cuda("order", 1)) return;
    const Results reversed = run_values(made, in, env);
    test::set_fake_cuda("order", 0);
    ASSERT_TRUE(same_bits(got, reversed)) << "the order of threads changes bits";
  }
  void agree(const Case& c, const std::vector<std::function<void(Inputs&)>>& changes = {[](Inputs&) {}}) const {
    const Graph g = derivative(c), made = compiled(g);
    for (const auto& change : changes) {
      Inputs in = draw(g);
      change(in);
      agree(g, made, in);
    }
  }
};
LIGHTCONE_ON_GPUS(AttentionGradientsOnGpu);

}  // namespace

TEST_P(AttentionGradientsOnGpu, HeadSizes) {
  for (const auto& [depth, width] : {std::pair{1, 5}, {36, 100}, {256, 200}}) {
    SCOPED_TRACE(str_cat("heads of ", depth, " and ", width));
    agree({{2, 20, depth}, {2, 20, depth}, {2, 20, width}, depth == 36});
  }
}

TEST_P(AttentionGradientsOnGpu, OddSizesAndGroups) {
  agree({{130, 8}, {130, 8}, {130, 8}, true});  // no heads, several blocks
  agree({{1, 2, 70, 4}, {1, 2, 150, 4}, {1, 2, 150, 4}, true});
  agree({{1, 2, 150, 4}, {1, 2, 70, 4}, {1, 2, 70, 4}, true});  // some queries see all keys
  agree({{2, 1, 1, 3}, {2, 1, 65, 3}, {2, 1, 65, 2}});
  agree({{2, 4, 33, 5}, {2, 2, 70, 5}, {2, 2, 70, 7}, true});
  agree({{3, 6, 17, 8}, {3, 1, 17, 8}, {3, 1, 17, 8}});
}

TEST_P(AttentionGradientsOnGpu, Masks) {
  for (const Shape& mask : {Shape{13, 70}, Shape{2, 1, 1, 70}, Shape{2, 4, 13, 70}})
    agree({{2, 4, 13, 5}, {2, 2, 70, 5}, {2, 2, 70, 7}, false, mask});
  agree({{2, 4, 13, 5}, {2, 2, 70, 5}, {2, 2, 70, 7}, true, {4, 1, 70}});
  agree({{2, 4, 13, 5}, {2, 2, 70, 5}, {2, 2, 70, 7}, false, {4, 13, 1}},
        {[](Inputs& in) { std::fill(in.at("mask").i.begin(), in.at("mask").i.end(), 1); }});
}

// At medium precision with tensor cores, where the device has them: the same sizes, masks, NaN and infinities.
TEST_P(AttentionGradientsOnGpu, ByTensorCores) {
  precision = Precision::Medium;
  for (const auto& [depth, width] : {std::pair{1, 5}, {36, 100}, {64, 64}, {128, 112}, {256, 200}}) {
    SCOPED_TRACE(str_cat("heads of ", depth, " and ", width));
    const Case c{{2, 70, depth}, {2, 70, depth}, {2, 70, width}, depth == 36};
    if (GetParam().name == "cuda") {
      const Graph g = derivative(c), made = compiled(g);
      const bool cores = std::ranges::any_of(std::views::iota(NodeId{0}, made.size()), [&](NodeId id) {
        return made[id].kernel && made[id].kernel->source().find("lc_core_weighted(sum") != std::string::npos;
      });
      EXPECT_EQ(cores, depth <= 128 && backends::gpu::capability(device->limits()) >= 80);
    }
    agree(c);
  }
  agree({{130, 8}, {130, 8}, {130, 8}, true});
  agree({{1, 2, 150, 4}, {1, 2, 70, 4}, {1, 2, 70, 4}, true});
  agree({{2, 4, 33, 5}, {2, 2, 70, 5}, {2, 2, 70, 7}, true});
  agree({{2, 4, 13, 5}, {2, 2, 70, 5}, {2, 2, 70, 7}, true, {4, 1, 70}});
  agree({{75, 4}, {70, 4}, {70, 4}, true, {75, 70}},
        {[](Inputs& in) { std::fill_n(in.at("mask").i.begin() + 7 * 70, 70, 0); }});
  for (const char* name : {"q", "k", "v", "g"})
    agree({{2, 80, 4}, {1, 80, 4}, {1, 80, 4}, true}, {[&](Inputs& in) { in.at(name).f[4 * 75 + 3] = kInf; }});
}

// Results that are not finite occur where the definition has them, also beyond a causal mask, where they are multiplied
// by 0.
TEST_P(AttentionGradientsOnGpu, NanAndInfinity) {
  const Case causal{{2, 80, 4}, {1, 80, 4}, {1, 80, 4}, true}, open{{1, 10, 4}, {1, 70, 4}, {1, 70, 4}};
  for (const char* name : {"q", "k", "v", "g"}) {
    SCOPED_TRACE(name);
    const auto at = [&](std::size_t row, double odd) { return [=](Inputs& in) { in.at(name).f[4 * row + 3] = odd; }; };
    agree(causal, {at(3, kNaN), at(75, kInf), at(79, kNaN)});
    agree(open, {at(3, kInf), at(9, kNaN)});
  }
}

TEST_P(AttentionGradientsOnGpu, QueriesThatSeeNothing) {
  for (const bool causal : {false, true})
    agree({{75, 4}, {70, 4}, {70, 4}, causal, {75, 70}},
          {[](Inputs& in) { std::fill_n(in.at("mask").i.begin() + 7 * 70, 70, 0); },
           [](Inputs& in) { std::fill(in.at("mask").i.begin(), in.at("mask").i.end(), 0); }});
}

// Scores are so far apart that one key has all of a query's weight.
TEST_P(AttentionGradientsOnGpu, HugeScores) {
  agree({{70, 4}, {70, 4}, {70, 4}, true}, {[](Inputs& in) {
          for (double& x : in.at("q").f) x = std::ldexp(std::round(x * 4), 60);  // f32 holds their products exactly
          for (double& x : in.at("k").f) x = std::round(x * 4);
        }});
}

TEST_P(AttentionGradientsOnGpu, LengthsThatAreBoundLater) {
  const Dim n = Dim::symbol("n", 0, 100), m = Dim::symbol("m", 0, 100), batch = Dim::symbol("batch", 0, 2);
  const Case c{{batch, 2, n, 4}, {batch, 1, m, 4}, {batch, 1, m, 4}, true};
  const Graph g = derivative(c), made = compiled(g, GetParam().name == "opencl" ? 0 : 1);
  for (const auto& [batches, queries, keys] :
       {std::tuple{1, 100, 100}, {1, 3, 90}, {2, 66, 64}, {2, 0, 5}, {2, 5, 0}, {0, 5, 5}}) {
    const Bindings env{{"n", queries}, {"m", keys}, {"batch", batches}};
    SCOPED_TRACE(str_cat("queries ", queries, " keys ", keys));
    agree(g, made, random_inputs(g, env, 5, false), env);
  }
}

TEST_P(AttentionGradientsOnGpu, VerifiedInANetwork) {
  Graph g;
  const Tensor x = g.input("x", {2, 12, 16});
  const Tensor w = g.parameter("w", {48, 16}, DType::F32);
  const Tensor all = linear(x, w);
  const auto heads = [&](int part) {
    return all.slice(2, 16 * part, 16 * part + 16).reshape({2, 12, 2, 8}).permute({0, 2, 1, 3});
  };
  const Tensor y = scaled_dot_product_attention(heads(0), heads(1), heads(2), AttentionOptions{.is_causal = true});
  g.output("dw", gradient(mean(y * y), w));
  compiled(g);
  const VerifyReport r = verify(g, generic() | with_fallback());
  EXPECT_TRUE(r.ok()) << r.str();
}

// If the kernels do not apply, the definition is computed.
TEST_P(AttentionGradientsOnGpu, WhatTheyAreNotFor) {
  const Graph large = derivative({{1, 9, 257}, {1, 9, 257}, {1, 9, 257}, true});
  const Graph added = derivative({{2, 2, 9, 4}, {2, 2, 9, 4}, {2, 2, 9, 4}, false, {9, 9}, DType::F32});
  for (const Graph* g : {&large, &added}) agree(*g, compiled(*g, 0), draw(*g));
}

// The memory of a training step grows linearly with the context, not with its square.
TEST_P(AttentionGradientsOnGpu, NoScoresInMemory) {
  const auto bytes = [&](std::int64_t context) {
    const Graph g = derivative({{1, 8, context, 16}, {1, 8, context, 16}, {1, 8, context, 16}, true});
    return compile(g, generic() | with_fallback()).plan().arena_bytes;
  };
  EXPECT_LT(bytes(2048), 3 * bytes(1024));
  EXPECT_LT(bytes(2048), std::int64_t{4} * 8 * 2048 * 2048 / 4);
}
