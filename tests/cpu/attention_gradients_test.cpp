// The derivative of attention is one kernel where it applies. It gives the definition's numbers on every instruction
// set and the same bits for any number of threads, and keeps no probabilities in memory.
#include "lightcone/backends/cpu/attention/gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "differences.h"
#include "guarded.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/composites/composites.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/verify.h"
#include "random_inputs.h"

using namespace lc;
using lc::backends::cpu::Isa;
using lc::test::random_values;

namespace {

struct Case {
  Shape q, k, v;
  bool causal = false;
  Shape mask = {};
  DType mask_type = DType::Bool;
  DType type = DType::F32;
};

Graph derivative(const Case& c) {
  Graph g;
  const Tensor q = g.input("q", c.q, c.type), k = g.input("k", c.k, c.type), v = g.input("v", c.v, c.type);
  Shape out = c.q;
  out.back() = c.v.back();
  const Tensor y = c.mask.empty() ? scaled_dot_product_attention(q, k, v, AttentionOptions{.is_causal = c.causal})
                                  : scaled_dot_product_attention(q, k, v, g.input("mask", c.mask, c.mask_type));
  const std::vector<Tensor> d = vjp({y}, {q, k, v}, {g.input("g", out, c.type)});
  g.output("y", y), g.output("dq", d[0]), g.output("dk", d[1]), g.output("dv", d[2]);
  return g;
}

int kernels(const Graph& g, const std::string& name) {
  int n = 0;
  for (NodeId id = 0; id < g.size(); ++id) n += g[id].kernel && g[id].kernel->name() == name;
  return n;
}

Results run(const Graph& g, const Inputs& in, Isa isa, int threads) {
  const Compiler compiler = generic() | cpu({.threads = threads, .target = backends::cpu::Target(isa)});
  return test::run_guarded(transform(g, compiler).graph, in, {}, test::Against::Back);
}

// Compares every instruction set and number of threads with the reference interpreter.
void expect_right(const Case& c, const std::function<void(Inputs&)>& change = {}) {
  const Graph g = derivative(c);
  const Graph compiled = transform(g, generic() | cpu({.threads = 1})).graph;
  EXPECT_EQ(kernels(compiled, "attention_gradients"), 1) << g.str();
  if (!(c.k[c.k.size() - 2] == Dim(1))) {
    EXPECT_EQ(kernels(compiled, "attention"), 1) << g.str();
  }
  Inputs in = random_values(g, 5);
  if (!c.mask.empty())
    for (std::size_t k = 0; k < in.at("mask").i.size(); ++k) in.at("mask").i[k] = k % 7 != 3 ? 1 : 0;
  if (change) change(in);
  const Results want = interpret(g, in, {}, Rounding::Wide, true);
  for (const Isa isa : backends::cpu::isas()) {
    const Results one = run(g, in, isa, 1), two = run(g, in, isa, 2);
    for (const auto& [name, v] : want.outputs) {
      const Value &a = one.outputs.at(name), &b = two.outputs.at(name);
      ASSERT_EQ(std::memcmp(a.f.data(), b.f.data(), a.f.size() * sizeof(double)), 0) << name << ": threads change bits";
      for (std::size_t k = 0; k < v.size(); ++k) {
        const std::string at = str_cat(backends::cpu::name(isa), " ", name, "[", k, "]");
        if (std::isnan(v.at(k))) ASSERT_TRUE(std::isnan(a.at(k))) << at << ": " << a.at(k);
        else if (std::isinf(v.at(k))) ASSERT_EQ(a.at(k), v.at(k)) << at;
        else ASSERT_NEAR(a.at(k), v.at(k), 4 * v.error_at(k) + 1e-5) << at;
      }
    }
  }
}

}  // namespace

TEST(AttentionGradients, ManyShapes) {
  expect_right({{2, 3, 20, 16}, {2, 3, 20, 16}, {2, 3, 20, 16}, true});
  expect_right({{2, 3, 20, 16}, {2, 3, 20, 16}, {2, 3, 20, 16}});
  expect_right({{130, 24}, {130, 24}, {130, 24}, true});                 // no heads, several blocks
  expect_right({{1, 2, 100, 8}, {1, 2, 300, 8}, {1, 2, 300, 8}, true});  // several panels of keys
  expect_right({{2, 1, 1, 3}, {2, 1, 1, 3}, {2, 1, 1, 1}, true});
  expect_right({{2, 1, 1, 3}, {2, 1, 65, 3}, {2, 1, 65, 2}});
}
TEST(AttentionGradients, GroupedHeadsAndOddSizes) {
  expect_right({{2, 4, 33, 5}, {2, 2, 70, 5}, {2, 2, 70, 7}, true});
  expect_right({{2, 4, 70, 5}, {2, 2, 33, 5}, {2, 2, 33, 7}, true});  // some queries see all keys
  expect_right({{3, 6, 17, 48}, {3, 1, 17, 48}, {3, 1, 17, 48}, true});
}
TEST(AttentionGradients, Masks) {
  expect_right({{2, 4, 13, 5}, {2, 2, 70, 5}, {2, 2, 70, 7}, false, {13, 70}});
  expect_right({{2, 4, 13, 5}, {2, 2, 70, 5}, {2, 2, 70, 7}, false, {2, 1, 1, 70}});
  expect_right({{2, 4, 13, 5}, {2, 2, 70, 5}, {2, 2, 70, 7}, false, {2, 4, 13, 70}});
  expect_right({{2, 4, 13, 5}, {2, 2, 70, 5}, {2, 2, 70, 7}, false, {4, 13, 1}},
               [](Inputs& in) { std::fill(in.at("mask").i.begin(), in.at("mask").i.end(), 1); });
}

// Results that are not finite occur where the definition has them, also beyond a causal mask, where they are multiplied
// by 0.
TEST(AttentionGradients, NumbersThatAreNotFinite) {
  const Case c{{1, 2, 40, 8}, {1, 2, 40, 8}, {1, 2, 40, 8}, true};
  for (const double odd : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (const char* name : {"q", "k", "v", "g"}) expect_right(c, [&](Inputs& in) { in.at(name).f[8 * 30 + 3] = odd; });
  const Case masked{{1, 1, 5, 4}, {1, 1, 6, 4}, {1, 1, 6, 4}, false, {5, 6}};
  expect_right(masked, [](Inputs& in) { std::fill_n(in.at("mask").i.begin() + 6, 6, 0); });  // one query sees no key
}

// At Medium, tile registers multiply in bf16. Inputs are bf16 numbers, so that only weights and slopes are rounded: by
// 2^-9 of themselves, which is allowed twice.
TEST(AttentionGradientsMedium, WeightsAndSlopesAreRounded) {
  for (const auto& [queries, keys, depth, width, group, causal] : {std::tuple{1, 1, 1, 1, 1, true},
                                                                   {40, 40, 16, 16, 1, true},
                                                                   {130, 130, 24, 40, 2, true},
                                                                   {33, 70, 5, 7, 2, false},
                                                                   {100, 300, 64, 64, 1, true},
                                                                   {70, 33, 33, 48, 1, true},
                                                                   {7, 900, 32, 32, 1, true}}) {
    Graph g;
    const Tensor q = g.input("q", {group, queries, depth}), k = g.input("k", {1, keys, depth}),
                 v = g.input("v", {1, keys, width}), up = g.input("g", {group, queries, width});
    const Tensor y = scaled_dot_product_attention(q, k, v, AttentionOptions{.is_causal = causal});
    const std::vector<Tensor> d = vjp({y}, {q, k, v}, {up});
    // what is rounded, and the sums of its sizes
    Tensor scores = matmul(q, k.permute({0, 2, 1})) * static_cast<float>(1 / std::sqrt(static_cast<double>(depth)));
    if (causal) scores = where(le(arange(g, keys), arange(g, queries).unsqueeze(1)), scores, -1e30f);
    const Tensor p = softmax(scores, -1), dp = matmul(up, v.permute({0, 2, 1}));
    const Tensor ds =
        abs(p * (dp - sum(p * dp, {-1}, true))) * static_cast<float>(1 / std::sqrt(static_cast<double>(depth)));
    const std::vector<Tensor> sizes{matmul(ds, abs(k)), sum(matmul(ds.permute({0, 2, 1}), abs(q)), {0}, true),
                                    sum(matmul(p.permute({0, 2, 1}), abs(up)), {0}, true)};
    const char* names[] = {"dq", "dk", "dv"};
    for (std::size_t i = 0; i < 3; ++i) g.output(names[i], d[i]), g.output(str_cat("|", names[i], "|"), sizes[i]);
    Inputs in = random_values(g, 6);
    for (auto& [name, value] : in)
      for (double& x : value.f) x = static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(x))));
    const Results want = interpret(g, in, {}, Rounding::Wide, true);
    const auto at = [&](Precision precision, int threads) {
      return test::run_guarded(transform(g, generic() | cpu({.threads = threads, .precision = precision})).graph, in,
                               {}, test::Against::Back);
    };
    const Results one = at(Precision::Medium, 1), two = at(Precision::Medium, 2), highest = at(Precision::Highest, 1);
    const Value &exact = highest.outputs.at("dv"), &rounded = one.outputs.at("dv");
    const bool tiles = backends::cpu::on_tiles(
        *backends::cpu::microkernel(backends::cpu::Arithmetic::Bf16, backends::cpu::this_target()));
    if (keys > 1) {  // else it is no attention
      EXPECT_EQ(std::memcmp(exact.f.data(), rounded.f.data(), exact.f.size() * sizeof(double)) != 0, tiles);
    }
    for (const char* name : names) {
      const Value &x = want.outputs.at(name), &size = want.outputs.at(str_cat("|", name, "|")),
                  &a = one.outputs.at(name), &b = two.outputs.at(name);
      ASSERT_EQ(std::memcmp(a.f.data(), b.f.data(), a.f.size() * sizeof(double)), 0) << name << ": threads change bits";
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(a.at(i), x.at(i), 4 * x.error_at(i) + std::ldexp(size.at(i), -8) + 1e-5)
            << name << "[" << i << "] " << queries << " " << keys;
    }
  }
}

// A number that is not finite reaches what it reaches in the definition.
TEST(AttentionGradientsMedium, NumbersThatAreNotFinite) {
  const Graph g = derivative({{1, 2, 40, 8}, {1, 2, 40, 8}, {1, 2, 40, 8}, true});
  const Compiler medium = generic() | cpu({.threads = 1, .precision = Precision::Medium});
  for (const double odd : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (const char* name : {"q", "k", "v", "g"}) {
      Inputs in = random_values(g, 7);
      in.at(name).f[8 * 30 + 3] = odd;
      const Results want = interpret(g, in), got = run_values(transform(g, medium).graph, in, {});
      for (const auto& [output, v] : want.outputs)
        for (std::size_t i = 0; i < v.size(); ++i)
          ASSERT_EQ(std::isfinite(v.at(i)), std::isfinite(got.outputs.at(output).at(i)))
              << odd << " in " << name << ": " << output << "[" << i << "]";
    }
}

TEST(AttentionGradients, VerifiedInANetwork) {
  Graph g;
  const Tensor x = g.input("x", {2, 12, 16});
  const Tensor w = g.parameter("w", {48, 16}, DType::F32);
  const Tensor all = linear(x, w);
  const auto heads = [&](int part) {
    return all.slice(2, 16 * part, 16 * part + 16).reshape({2, 12, 2, 8}).permute({0, 2, 1, 3});
  };
  const Tensor y = scaled_dot_product_attention(heads(0), heads(1), heads(2), AttentionOptions{.is_causal = true});
  g.output("dw", gradient(mean(y * y), w));
  const Compiler compiler = generic() | cpu({.threads = 2});
  EXPECT_EQ(kernels(transform(g, compiler).graph, "attention_gradients"), 1);
  const VerifyReport r = verify(g, compiler);
  EXPECT_TRUE(r.ok()) << r.str();
}

// If the kernel does not apply, the definition is computed.
TEST(AttentionGradients, OtherTypesAndMasksThatAreAdded) {
  for (const Case& c : {Case{{2, 9, 4}, {2, 9, 4}, {2, 9, 4}, true, {}, DType::Bool, DType::F64},
                        Case{{2, 2, 9, 4}, {2, 1, 9, 4}, {2, 1, 9, 4}, false, {9, 9}, DType::F32}}) {
    const Graph g = derivative(c);
    const Compiler compiler = generic() | cpu({.threads = 1});
    EXPECT_EQ(kernels(transform(g, compiler).graph, "attention_gradients"), 0);
    const VerifyReport r = verify(g, compiler);
    EXPECT_TRUE(r.ok()) << r.str();
  }
}

TEST(AttentionGradients, Differences) {
  for (const bool causal : {false, true}) {
    Graph g;
    const Tensor q = g.input("q", {2, 3, 2}, DType::F64), k = g.input("k", {1, 4, 2}, DType::F64);
    const Tensor v = g.input("v", {1, 4, 3}, DType::F64);
    const Tensor y = scaled_dot_product_attention(q, k, v, AttentionOptions{.is_causal = causal});
    check_gradients(g, y, random_values(g, 3), "attention", 2);
  }
}

// The memory of a training step grows linearly with the context, not with its square.
TEST(AttentionGradients, NoProbabilitiesInMemory) {
  const auto bytes = [](std::int64_t context) {
    const Graph g = derivative({{1, 8, context, 16}, {1, 8, context, 16}, {1, 8, context, 16}, true});
    return compile(g, generic() | cpu({.threads = 1})).plan().arena_bytes;
  };
  const std::int64_t probabilities = std::int64_t{4} * 8 * 1024 * 1024;
  EXPECT_LT(bytes(1024), probabilities / 4);
}
