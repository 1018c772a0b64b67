// Fused attention is found in a graph on every GPU device and agrees with f64 for all types, masks and lengths, NaN and
// infinities included.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "attention_graphs.h"
#include "gpu_devices.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

using namespace lc;
using test::cached;
using test::Masked;

namespace {

using Inputs = std::map<std::string, Value>;

class AttentionOnGpu : public test::OnGpu {
 protected:
  // Compiles the graph and checks that it has this number of attention kernels.
  Graph compiled(const Graph& g, int kernels = 1) const {
    auto t = transform(g, generic() | compiler({.precision = precision, .fallback = cpu({.threads = 1})}));
    EXPECT_EQ(fired(t.log, "attention"), kernels);
    return std::move(t.graph);
  }
  // On the CUDA simulator, it also runs with threads in reverse order.
  void agree(const Graph& g, const Graph& made, const Inputs& inputs, const Bindings& env = {}) const {
    const Results want = interpret(g, inputs, env, Rounding::Wide, true), got = run_values(made, inputs, env);
    if (precision == Precision::Highest) {
      const auto d = compare(want, got, 4);
      ASSERT_FALSE(d) << d->str();
    } else {
      near(want, got, inputs);
    }
    if (GetParam().name != "cuda" || !test::set_fake_cuda("order", 1)) return;
    const Results reversed = run_values(made, inputs, env);
    test::set_fake_cuda("order", 0);
    ASSERT_TRUE(same_bits(got, reversed)) << "the order of threads changes bits";
  }
  void agree(const Graph& g, const Inputs& inputs, const Bindings& env = {}) const {
    agree(g, compiled(g), inputs, env);
  }
  // Compares results for operands that bf16 holds exactly (halves()), so only the weights are rounded, to bf16. NaN
  // must match.
  static void near(const Results& want, const Results& got, const Inputs& inputs) {
    double most = 0;
    for (const double v : inputs.at("v").f) most = std::isfinite(v) ? std::max(most, std::abs(v)) : most;
    for (const std::int64_t v : inputs.at("v").i) most = std::max(most, std::abs(static_cast<double>(v)));
    if (inputs.contains("v.scale"))
      most *= std::abs(*std::ranges::max_element(inputs.at("v.scale").f, {}, [](double x) { return std::abs(x); }));
    for (const auto& [name, w] : want.outputs) {
      const Value& g = got.outputs.at(name);
      for (std::size_t i = 0; i < w.size(); ++i) {
        if (!std::isfinite(w.f[i]) || !std::isfinite(g.f[i]))
          ASSERT_TRUE(std::isnan(w.f[i]) == std::isnan(g.f[i]) && (std::isnan(w.f[i]) || w.f[i] == g.f[i]))
              << i << ": " << g.f[i] << " where it is " << w.f[i];
        else ASSERT_NEAR(g.f[i], w.f[i], most / 200) << i;
      }
    }
  }
  Precision precision = Precision::Highest;
  static bool same_bits(const Results& a, const Results& b) {
    for (const auto& [name, v] : a.outputs)
      if (std::memcmp(v.f.data(), b.outputs.at(name).f.data(), v.size() * sizeof v.f[0]) != 0) return false;
    return true;
  }
};
LIGHTCONE_ON_GPUS(AttentionOnGpu);

Inputs draw(const Graph& g, std::uint64_t seed, const Bindings& env = {}) { return random_inputs(g, env, seed, false); }

// Rounds inputs to numbers that tensor cores take exactly: bf16 numbers, and scales of integers that are powers of two.
Inputs halves(Inputs in) {
  for (auto& [name, v] : in)
    for (double& x : v.f) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x)) & 0xffff0000u;
      if (name.ends_with(".scale")) x = std::exp2(std::round(std::log2(std::abs(x) + 1e-3)));
      else if (name != "bias") x = std::bit_cast<float>(bits);
    }
  return in;
}

constexpr DType kStored[] = {DType::F32, DType::F16, DType::BF16, DType::I8};

}  // namespace

// Few queries and many, with an empty cache and with a full one.
TEST_P(AttentionOnGpu, HeadSizes) {
  for (const auto& [depth, width] : {std::pair{1, 5}, {100, 130}, {128, 128}, {256, 256}}) {
    const Graph g = cached({.depth = depth, .width = width}, Masked::Causal), made = compiled(g);
    for (const auto& [seq, past] : {std::pair{1, 0}, {3, 70}, {40, 9}}) {
      const Bindings env{{"seq", seq}, {"past", past}};
      agree(g, made, draw(g, 1, env), env);
    }
  }
}

TEST_P(AttentionOnGpu, LengthsGroupsAndMasks) {
  for (const auto& [group, m] : {std::pair{1, Masked::No},
                                 {3, Masked::Causal},
                                 {8, Masked::Window},
                                 {1, Masked::Bool},
                                 {8, Masked::Bias},
                                 {3, Masked::Both}}) {
    const Graph g = cached({.kv = 2, .group = group, .depth = 16, .width = 24}, m), made = compiled(g);
    for (const auto& [seq, past] : {std::pair{1, 63}, {2, 390}, {64, 0}, {70, 75}}) {
      const Bindings env{{"seq", seq}, {"past", past}};
      agree(g, made, draw(g, 2, env), env);
    }
  }
}

// The context is long enough for the keys to be split, into pieces of different lengths.
TEST_P(AttentionOnGpu, SplitKeys) {
  for (const auto& [stored, m] : {std::pair{DType::F32, Masked::No},
                                  {DType::F16, Masked::Window},
                                  {DType::BF16, Masked::Bool},
                                  {DType::I8, Masked::Both}}) {
    const Graph g = cached({.kv = 1, .group = 2, .depth = 32, .width = 32, .context = 3000}, m, stored),
                made = compiled(g);
    for (const auto& [seq, past] : {std::pair{1, 2699}, {1, 600}, {9, 1900}}) {
      const Bindings env{{"seq", seq}, {"past", past}};
      agree(g, made, draw(g, 3, env), env);
    }
  }
}

TEST_P(AttentionOnGpu, NarrowKeysAndValues) {
  for (const auto& [t, depth, width, group, m] : {std::tuple{DType::F16, 40, 33, 2, Masked::Causal},
                                                  {DType::BF16, 128, 128, 4, Masked::Both},
                                                  {DType::I8, 64, 96, 4, Masked::Causal},
                                                  {DType::I8, 5, 16, 1, Masked::No}}) {
    const Graph g = cached({.group = group, .depth = depth, .width = width, .context = 400}, m, t), made = compiled(g);
    for (NodeId id = 0; id < made.size(); ++id)
      if (made[id].kernel && made[id].kernel->name() == "attention") {
        EXPECT_EQ(made[made[id].in[1].node].dtype, t) << "is widened in memory first";
        EXPECT_EQ(made[made[id].in[2].node].dtype, t);
      }
    for (const auto& [seq, past] : {std::pair{1, 99}, {3, 66}, {45, 30}}) {
      const Bindings env{{"seq", seq}, {"past", past}};
      agree(g, made, draw(g, 4, env), env);
    }
  }
}

TEST_P(AttentionOnGpu, RowsThatSeeNothing) {
  const Bindings few{{"seq", 20}, {"past", 100}}, many{{"seq", 50}, {"past", 100}};
  for (const double fill : {-kInf, -3e38}) {
    const Graph g = cached({.depth = 16, .width = 16}, Masked::Bool, DType::F32, fill), made = compiled(g);
    for (const Bindings& env : {few, many}) {
      Inputs in = draw(g, 5, env);
      Value& mask = in.at("mask");
      for (int row : {0, 7, 19})
        for (std::int64_t j = 0; j < mask.shape[1]; ++j) mask.i[static_cast<std::size_t>(row * mask.shape[1] + j)] = 1;
      agree(g, made, in, env);
      for (std::int64_t& m : mask.i) m = 1;
      agree(g, made, in, env);
    }
  }
}

// A value that the mask hides is multiplied by zero all the same: 0 * inf is NaN.
TEST_P(AttentionOnGpu, NanAndInfinity) {
  const Bindings many{{"seq", 40}, {"past", 90}}, one{{"seq", 1}, {"past", 150}}, split{{"seq", 1}, {"past", 600}};
  for (const auto& [m, stored] :
       {std::pair{Masked::No, DType::BF16}, {Masked::Window, DType::F32}, {Masked::Both, DType::I8}}) {
    const Graph g = cached({.depth = 8, .width = 20, .context = 1000}, m, stored), made = compiled(g);
    for (const char* where : {"q", "k", "v"})
      for (const double odd : {kNaN, kInf, 0x1p100})
        for (const Bindings& env : {many, one, split}) {
          SCOPED_TRACE(str_cat(where, " ", odd, " masked ", static_cast<int>(m), " seq ", env.at("seq")));
          Inputs in = draw(g, 6, env);
          Value& v = in.at(stored == DType::I8 && *where != 'q' ? str_cat(where, ".scale") : where);
          for (const std::size_t k : {std::size_t{3}, v.size() / 2, v.size() - 1}) v.f[k] = odd;
          agree(g, made, in, env);
        }
  }
}

// An infinity beyond the diagonal, in a tile that no row of a block may see.
TEST_P(AttentionOnGpu, ValuesBehindTheDiagonal) {
  const Bindings env{{"seq", 192}, {"past", 0}};
  const Graph g = cached({.kv = 1, .group = 1, .depth = 8, .width = 20}, Masked::Causal), made = compiled(g);
  for (const std::size_t key : {20u, 100u, 191u})
    for (const double odd : {kNaN, kInf}) {
      Inputs in = draw(g, 28, env);
      in.at("v").f[key * 20 + 7] = odd;
      agree(g, made, in, env);
    }
}

TEST_P(AttentionOnGpu, HugeScores) {
  const Graph g = cached({.depth = 4, .width = 8}, Masked::Causal), made = compiled(g);
  for (const int seq : {9, 60}) {
    const Bindings env{{"seq", seq}, {"past", 130}};
    Inputs in = draw(g, 7, env);
    for (double& x : in.at("q").f) x = std::ldexp(std::round(x * 4), 60);  // f32 holds their products exactly
    for (double& x : in.at("k").f) x = std::round(x * 4);
    agree(g, made, in, env);
  }
}

TEST_P(AttentionOnGpu, OrdinaryFunction) {
  Graph g;
  const Tensor q = g.input("q", {2, 8, 45, 32}), k = g.input("k", {2, 2, 45, 32}), v = g.input("v", {2, 2, 45, 32});
  g.output("plain", scaled_dot_product_attention(q, k, v));
  agree(g, draw(g, 8));
  Graph c;
  c.output("causal", scaled_dot_product_attention(c.input("q", {3, 4, 50, 16}), c.input("k", {3, 4, 70, 16}),
                                                  c.input("v", {3, 4, 70, 16}), {.is_causal = true}));
  agree(c, draw(c, 9));
  for (const DType t : {DType::Bool, DType::F32}) {
    Graph m;
    m.output("masked", scaled_dot_product_attention(m.input("q", {2, 3, 33, 8}), m.input("k", {2, 3, 65, 8}),
                                                    m.input("v", {2, 3, 65, 8}), m.input("mask", {2, 1, 33, 65}, t)));
    agree(m, draw(m, 10));
  }
}

// Masks that are read for 16, 8, 4 keys or one at a time, per head or for all heads, with few rows and many, and with
// rows that hide all keys.
TEST_P(AttentionOnGpu, MasksAreReadSideBySide) {
  for (const auto& [queries, keys, heads] :
       {std::tuple{70, 96, 1}, {70, 88, 3}, {65, 68, 3}, {65, 70, 1}, {5, 144, 3}, {1, 600, 1}}) {
    SCOPED_TRACE(str_cat(queries, " queries, ", keys, " keys, masks of ", heads, " heads"));
    Graph g;
    const Tensor q = g.input("q", {2, 3, queries, 16}), k = g.input("k", {2, 3, keys, 16}),
                 v = g.input("v", {2, 3, keys, 16}), mask = g.input("mask", {1, heads, queries, keys}, DType::Bool);
    g.output("y", scaled_dot_product_attention(q, k, v, mask));
    Inputs in = draw(g, 14);
    const Graph made = compiled(g);
    agree(g, made, in);
    for (std::int64_t j = 0; j < keys; ++j) in.at("mask").i[static_cast<std::size_t>(j)] = 0;
    agree(g, made, in);
  }
}

// Keys are stored transposed, values are every second element, and one scale applies to all values.
TEST_P(AttentionOnGpu, OddViews) {
  for (const auto& [t, queries] : {std::pair{DType::F32, 4}, {DType::F32, 70}, {DType::F16, 70}, {DType::I8, 4}}) {
    Graph g;
    const Tensor q = g.input("q", {2, 3, 24, queries}).transpose(2, 3);
    Tensor k = prim::cast(g.input("k", {2, 1, 24, 90}, t), DType::F32).transpose(2, 3);
    Tensor v = prim::cast(g.input("v", {2, 1, 90, 40}, t), DType::F32).slice(3, 1, 39, 2);
    if (t == DType::I8) k = k * g.input("k.scale", {2, 1, 90, 1}), v = v * g.input("v.scale", {1, 1, 90, 1});
    g.output("y", matmul(softmax(matmul(q, k.transpose(2, 3)), -1), v));
    agree(g, draw(g, 13));
  }
}

// At medium precision, many rows use tensor cores where the device has them: heads of any size, all types and masks,
// rows that see no key, NaN and infinities.
TEST_P(AttentionOnGpu, OfManyRowsByTensorCores) {
  precision = Precision::Medium;
  const auto by_cores = [&](const Graph& made) {
    for (NodeId id = 0; id < made.size(); ++id)
      if (made[id].kernel && made[id].kernel->name() == "attention")
        return made[id].kernel->source().find("lc_core_weighted(sum") != std::string::npos;
    return false;
  };
  int k = 0;
  for (const auto& [depth, width] : {std::pair{64, 64}, {128, 128}, {40, 33}, {5, 16}, {256, 256}, {100, 130}}) {
    const Masked m = static_cast<Masked>(k % 6);
    const Graph g = cached({.kv = 1, .depth = depth, .width = width}, m, kStored[k++ % 4]), made = compiled(g);
    if (GetParam().name == "cuda") {
      EXPECT_EQ(by_cores(made), backends::gpu::capability(device->limits()) >= 80)
          << "heads of " << depth << " and " << width;
    }
    for (const auto& [seq, past] : {std::pair{1, 90}, {33, 0}, {70, 75}, {129, 300}}) {
      SCOPED_TRACE(str_cat(depth, " by ", width, ", masked ", static_cast<int>(m), ", seq ", seq));
      const Bindings env{{"seq", seq}, {"past", past}};
      agree(g, made, halves(draw(g, 30, env)), env);
    }
  }
  const Bindings many{{"seq", 70}, {"past", 100}};
  const Graph nothing = cached({.depth = 16, .width = 16}, Masked::Bool, DType::BF16), rows = compiled(nothing);
  Inputs in = halves(draw(nothing, 31, many));
  Value& mask = in.at("mask");
  for (int row : {0, 7, 19, 69})
    for (std::int64_t j = 0; j < mask.shape[1]; ++j) mask.i[static_cast<std::size_t>(row * mask.shape[1] + j)] = 1;
  agree(nothing, rows, in, many);
  for (const auto& [m, stored] :
       {std::pair{Masked::No, DType::BF16}, {Masked::Window, DType::F32}, {Masked::Both, DType::F16}}) {
    const Graph g = cached({.depth = 8, .width = 20, .context = 1000}, m, stored), made = compiled(g);
    for (const char* where : {"q", "k", "v"})
      for (const double odd : {kNaN, kInf}) {
        SCOPED_TRACE(str_cat(where, " ", odd, " masked ", static_cast<int>(m)));
        Inputs wild = halves(draw(g, 32, many));
        Value& v = wild.at(where);
        for (const std::size_t at : {std::size_t{3}, v.size() / 2, v.size() - 1}) v.f[at] = odd;
        agree(g, made, wild, many);
      }
  }
}

// Random shapes, types and masks.
TEST_P(AttentionOnGpu, RandomShapes) {
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](std::int64_t lo, std::int64_t hi) {
      return lo + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(hi - lo + 1));
    };
    const test::CacheSizes z{
        .kv = pick(1, 3), .group = pick(1, 9), .depth = pick(1, 90), .width = pick(1, 90), .context = pick(301, 1200)};
    const Graph g = cached(z, static_cast<Masked>(pick(0, 5)), kStored[pick(0, 3)], pick(0, 2) ? -kInf : -1e9);
    const Graph made = compiled(g);
    for (int run = 0; run < 3; ++run) {
      const Bindings env{{"seq", run == 0 ? 1 : pick(1, run == 1 ? 12 : 90)}, {"past", pick(0, z.context - 300)}};
      SCOPED_TRACE(str_cat("seed ", seed, " seq ", env.at("seq"), " past ", env.at("past")));
      agree(g, made, random_inputs(g, env, seed, seed % 3 == 0), env);
      if (HasFatalFailure()) return;
    }
  }
}

// The graph stays as it was if the kernel does not apply: scores are also a result, or heads are too large.
TEST_P(AttentionOnGpu, WhatItIsNotFor) {
  for (const bool keep : {true, false}) {
    Graph g;
    const std::int64_t depth = keep ? 8 : 257;
    const Tensor p = softmax(matmul(g.input("q", {2, 20, depth}), g.input("k", {2, depth, 30})), -1);
    if (keep) g.output("weights", p);
    g.output("y", matmul(p, g.input("v", {2, 30, 8})));
    agree(g, compiled(g, 0), draw(g, 14));
  }
}

TEST_P(AttentionOnGpu, EveryLayerOfLlama) {
  LlamaConfig c{.vocab = 50,
                .hidden = 32,
                .intermediate = 40,
                .layers = 3,
                .heads = 4,
                .kv_heads = 2,
                .head_dim = 8,
                .context = 64,
                .rope_frequencies = {1, 0.5, 0.25, 0.125}};
  const Graph g = llama_graph(c, {.context = 64, .chunk = 16, .cache = DType::F16},
                              [](Graph& graph, const std::string& path, Shape s) -> nn::Parameter {
                                if (path.ends_with(".bias") || path.ends_with("_norm.weight")) return {};
                                return nn::parameter(graph, path, s, DType::F32, std::nullopt);
                              });
  compiled(g, 3);
  for (const auto& [seq, past] : {std::pair{1, 40}, {16, 3}}) {
    const VerifyReport r = verify(g, generic() | compiler({.fallback = cpu({.threads = 1})}),
                                  {.trials = 1, .wild = false, .sizes = {{"seq", seq}, {"past", past}}});
    EXPECT_TRUE(r.ok()) << r.str();
  }
}
