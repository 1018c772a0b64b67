// Fused attention is found in a graph by its structure and agrees with the f64 reference on every instruction set, with
// masks, NaN, infinities and rows that attend to nothing.
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "attention_graphs.h"
#include "guarded.h"
#include "lightcone/backends/cpu/attention/attention.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/device/host_device.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

using namespace lc;
using namespace lc::backends::cpu;
using test::cached;
using test::Masked;

namespace {

using Inputs = std::map<std::string, Value>;

bool same_bits(const Results& a, const Results& b) {
  for (const auto& [name, v] : a.outputs) {
    const Value& w = b.outputs.at(name);
    for (std::size_t k = 0; k < v.size(); ++k)
      if (std::memcmp(&v.f[k], &w.f[k], 8) != 0) return false;
  }
  return true;
}

Graph fuse_attention(const Graph& g, const std::shared_ptr<Parallel>& parallel, PassLog& log, Isa isa = detect_isa(),
                     Precision precision = Precision::Highest) {
  const auto kernels = [&](const Graph&, NodeId, lowering::Attention match) {
    auto kernel = attention_kernel(std::move(match), isa, precision);
    kernel->device = host_device(parallel);
    return lowering::NamedKernel{kernel, "attention"};
  };
  return lowering::fuse_matched_attention(lowering::fuse_attention(g, log, kernels), log, kernels);
}

// Fuses the attention of a graph for every instruction set and runs it with one and two threads. Inputs are guarded
// against reads outside them.
void agree(const Graph& g, const Inputs& inputs, const Bindings& env = {}) {
  static const auto one = threads(1), two = threads(2);
  const Results want = interpret(g, inputs, env, Rounding::Wide, true);
  const Graph tidy = transform(g, generic()).graph;
  for (const Isa isa : isas()) {
    PassLog log;
    const Results a = test::run_guarded(fuse_attention(tidy, one, log, isa), inputs, env, test::Against::Front),
                  b = test::run_guarded(fuse_attention(tidy, two, log, isa), inputs, env, test::Against::Back);
    EXPECT_EQ(log.fired["attention"], 2) << "is not recognised";
    const auto d = compare(want, a, 4);
    ASSERT_FALSE(d) << name(isa) << ": " << d->str();
    ASSERT_TRUE(same_bits(a, b)) << name(isa) << ": threads change bits";
  }
}
Inputs draw(const Graph& g, std::uint64_t seed, const Bindings& env = {}) { return random_inputs(g, env, seed, false); }

int fired(const Graph& g, const char* what) {
  int n = 0;
  for (const PassLog& l : transform(g, generic() | cpu({.threads = 1, .compiler = false})).log)
    if (const auto it = l.fired.find(what); it != l.fired.end()) n += it->second;
  return n;
}

// Returns the types of the keys and values that the fused kernel reads.
std::pair<DType, DType> read_from(const Graph& g) {
  PassLog log;
  const Graph fused = fuse_attention(transform(g, generic()).graph, threads(1), log);
  for (NodeId id = 0; id < fused.size(); ++id)
    if (const Node& n = fused[id]; n.op == Op::Kernel && n.in.size() > 2)
      return {fused[n.in[1].node].dtype, fused[n.in[2].node].dtype};
  return {DType::Bool, DType::Bool};
}

}  // namespace

TEST(Attention, HeadSizes) {
  for (const std::int64_t depth : {1, 8, 64, 80, 100, 128})
    for (const std::int64_t width : {depth, std::int64_t{5}}) {
      const Graph g = cached({.depth = depth, .width = width}, Masked::Causal);
      for (const auto& [seq, past] : {std::pair{1, 0}, {1, 77}, {3, 20}, {40, 9}}) {
        const Bindings env{{"seq", seq}, {"past", past}};
        agree(g, draw(g, 1, env), env);
      }
    }
}

TEST(Attention, LengthsGroupsAndMasks) {
  for (const std::int64_t group : {1, 3, 8})
    for (const Masked m : {Masked::No, Masked::Causal, Masked::Window, Masked::Bool, Masked::Bias, Masked::Both}) {
      const Graph g = cached({.kv = 2, .group = group, .depth = 16, .width = 24}, m);
      for (const auto& [seq, past] : {std::pair{1, 0}, {1, 63}, {1, 64}, {2, 390}, {64, 0}, {70, 75}}) {
        const Bindings env{{"seq", seq}, {"past", past}};
        agree(g, draw(g, 2, env), env);
      }
    }
}

// The context is long enough for the keys to be split among tasks.
TEST(Attention, SplitKeys) {
  for (const Masked m : {Masked::No, Masked::Window, Masked::Bool}) {
    const Graph g = cached({.kv = 1, .group = 2, .depth = 32, .width = 32, .context = 3000}, m);
    for (const auto& [seq, past] : {std::pair{1, 2699}, {5, 1900}}) {
      const Bindings env{{"seq", seq}, {"past", past}};
      agree(g, draw(g, 3, env), env);
    }
  }
}

constexpr DType kNarrow[] = {DType::F16, DType::BF16, DType::I8};

TEST(Attention, NarrowKeysAndValues) {
  for (const DType t : kNarrow)
    for (const auto& [depth, width, group, m] : {std::tuple{40, 33, 2, Masked::Causal},
                                                 {64, 64, 8, Masked::Both},
                                                 {128, 128, 4, Masked::Causal},
                                                 {5, 16, 1, Masked::Both},
                                                 {16, 3, 3, Masked::Causal},
                                                 {100, 80, 7, Masked::No}}) {
      const Graph g = cached({.group = group, .depth = depth, .width = width, .context = 400}, m, t);
      EXPECT_EQ(read_from(g), std::pair(t, t)) << "is widened in memory first";
      for (const auto& [seq, past] : {std::pair{1, 99}, {1, 0}, {3, 66}, {20, 30}}) {
        const Bindings env{{"seq", seq}, {"past", past}};
        agree(g, draw(g, 4, env), env);
      }
    }
}

TEST(Attention, NarrowSplitKeys) {
  for (const DType t : kNarrow)
    for (const Masked m : {Masked::No, Masked::Window}) {
      const Graph g = cached({.kv = 1, .group = 4, .depth = 64, .width = 64, .context = 1500}, m, t);
      for (const auto& [seq, past] : {std::pair{1, 1199}, {9, 700}}) {
        const Bindings env{{"seq", seq}, {"past", past}};
        agree(g, draw(g, 12, env), env);
      }
    }
}

// Keys are stored transposed; values are every second element.
TEST(Attention, NarrowOddViews) {
  for (const DType t : kNarrow) {
    Graph g;
    const Tensor q = g.input("q", {2, 3, 4, 24});
    Tensor k = prim::cast(g.input("k", {2, 1, 24, 90}, t), DType::F32).transpose(2, 3);
    Tensor v = prim::cast(g.input("v", {2, 1, 90, 40}, t), DType::F32).slice(3, 1, 39, 2);
    if (t == DType::I8) k = k * g.input("k.scale", {2, 1, 90, 1}), v = v * g.input("v.scale", {1, 1, 90, 1});
    g.output("y", matmul(softmax(matmul(q, k.transpose(2, 3)), -1), v));
    EXPECT_EQ(read_from(g), std::pair(t, t));
    agree(g, draw(g, 13));
  }
}

// The kernel cannot take scales that change along a key, or with the query: another kernel multiplies first.
TEST(Attention, ScalesTheKernelCannotTake) {
  const auto make = [](const Shape& of_k, const Shape& of_v) {
    Graph g;
    const Tensor q = g.input("q", {2, 3, 20, 16});
    const Tensor k = prim::cast(g.input("k", {2, 1, 70, 16}, DType::I8), DType::F32) * g.input("k.scale", of_k);
    const Tensor v = prim::cast(g.input("v", {2, 1, 70, 16}, DType::I8), DType::F32) * g.input("v.scale", of_v);
    g.output("y", matmul(softmax(matmul(q, k.transpose(2, 3)), -1), v));
    return g;
  };
  EXPECT_EQ(read_from(make({2, 1, 70, 1}, {2, 1, 70, 1})), std::pair(DType::I8, DType::I8));
  for (const auto& [of_k, of_v] : {std::pair<Shape, Shape>{{1, 1, 1, 16}, {2, 1, 70, 1}},
                                   {{2, 1, 70, 1}, {1, 1, 1, 16}},
                                   {{2, 1, 70, 16}, {2, 1, 70, 16}}}) {
    const Graph g = make(of_k, of_v);
    EXPECT_NE(read_from(g), std::pair(DType::I8, DType::I8));
    agree(g, draw(g, 14));
  }
}

TEST(Attention, NarrowNanAndInfinity) {
  const Bindings many{{"seq", 40}, {"past", 90}}, one{{"seq", 1}, {"past", 150}};
  for (const DType t : kNarrow)
    for (const Masked m : {Masked::No, Masked::Window, Masked::Both})
      for (const char* where : {"k", "v"})
        for (const double odd : {kNaN, kInf, -kInf, 0.0, -0.0}) {
          const Graph g = cached({.depth = 32, .width = 32}, m, t);
          for (const Bindings& env : {many, one}) {
            Inputs in = draw(g, 15, env);
            Value& v = in.at(t == DType::I8 ? str_cat(where, ".scale") : where);
            for (const std::size_t k : {std::size_t{3}, v.size() / 2, v.size() - 1}) v.f[k] = odd;
            agree(g, in, env);
          }
        }
}

TEST(Attention, RowsThatSeeNothing) {
  const Bindings env{{"seq", 20}, {"past", 100}};
  for (const double fill : {-kInf, -1e9, -3e38, 0.0}) {
    const Graph g = cached({.depth = 16, .width = 16}, Masked::Bool, DType::F32, fill);
    Inputs in = draw(g, 5, env);
    Value& mask = in.at("mask");
    for (int row : {0, 7, 19})
      for (std::int64_t j = 0; j < mask.shape[1]; ++j) mask.i[static_cast<std::size_t>(row * mask.shape[1] + j)] = 1;
    agree(g, in, env);
    for (std::int64_t& m : mask.i) m = 1;
    agree(g, in, env);
  }
}

// A value that the mask hides is multiplied by zero all the same: 0 * inf is NaN.
TEST(Attention, NanAndInfinity) {
  const Bindings env{{"seq", 40}, {"past", 90}}, one{{"seq", 1}, {"past", 150}};
  for (const Masked m : {Masked::No, Masked::Causal, Masked::Window, Masked::Both})
    for (const char* where : {"q", "k", "v"})
      for (const double odd : {kNaN, kInf, -kInf, 1e30, -1e30}) {
        const Graph g = cached({.depth = 8, .width = 20}, m);
        for (const Bindings& e : {env, one}) {
          Inputs in = draw(g, 6, e);
          Value& v = in.at(where);
          for (const std::size_t k : {std::size_t{3}, v.size() / 2, v.size() - 1}) v.f[k] = odd;
          for (std::size_t k = 0; k < v.size(); k += 1013) v.f[k] = odd;
          agree(g, in, e);
        }
      }
}

TEST(Attention, HugeScores) {
  const Bindings env{{"seq", 9}, {"past", 130}};
  const Graph g = cached({.depth = 4, .width = 8}, Masked::Causal);
  Inputs in = draw(g, 7, env);
  for (double& x : in.at("q").f) x = std::ldexp(std::round(x * 4), 60);  // f32 holds their products exactly
  for (double& x : in.at("k").f) x = std::round(x * 4);
  agree(g, in, env);
}

TEST(Attention, OrdinaryFunction) {
  Graph g;
  const Tensor q = g.input("q", {2, 8, 45, 32}), k = g.input("k", {2, 2, 45, 32}), v = g.input("v", {2, 2, 45, 32});
  g.output("plain", scaled_dot_product_attention(q, k, v));
  EXPECT_EQ(fired(g, "attention"), 1);
  EXPECT_EQ(fired(g, "operand copied for a contraction"), 0) << "grouped heads are read in place";
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

// Keys are stored transposed, values are strided, there is no batch.
TEST(Attention, OddViews) {
  Graph g;
  const Tensor q = g.input("q", {16, 21}).permute({1, 0}), k = g.input("k", {16, 90}), v = g.input("v", {90, 24});
  g.output("y", matmul(softmax(matmul(q, k), -1), v.slice(1, 1, 23, 2)));
  agree(g, draw(g, 11));
}

// The graph stays as it was if the kernel does not apply: scores are also a result, or other functions intervene.
TEST(Attention, Fallback) {
  const auto make = [](bool keep, bool square) {
    Graph g;
    const Tensor s = matmul(g.input("q", {2, 20, 8}), g.input("k", {2, 8, 30}));
    const Tensor p = softmax(square ? s * s : s, -1);
    if (keep) g.output("weights", p);
    g.output("y", matmul(p, g.input("v", {2, 30, 8})));
    return g;
  };
  for (const auto& [keep, square] : {std::pair{true, false}, {false, true}}) {
    const Graph g = make(keep, square);
    EXPECT_EQ(fired(g, "attention"), 0);
    EXPECT_EQ(fired(g, "matmul"), 2);
    const VerifyReport r = verify(g, generic() | cpu({.threads = 2}));
    EXPECT_TRUE(r.ok()) << r.str();
  }
  EXPECT_EQ(fired(make(false, false), "attention"), 1);
}

TEST(Attention, EveryLayerOfLlama) {
  for (const std::int64_t window : {0, 5}) {
    LlamaConfig c{.vocab = 50,
                  .hidden = 32,
                  .intermediate = 40,
                  .layers = 3,
                  .heads = 4,
                  .kv_heads = 2,
                  .head_dim = 8,
                  .context = 64,
                  .rope_frequencies = {1, 0.5, 0.25, 0.125}};
    c.window = window;
    const auto make = [&](DType cache) {
      return llama_graph(c, {.context = 64, .chunk = 16, .cache = cache},
                         [](Graph& graph, const std::string& path, Shape s) -> nn::Parameter {
                           if (path.ends_with(".bias") || path.ends_with("_norm.weight")) return {};
                           return nn::parameter(graph, path, s, DType::F32, std::nullopt);
                         });
    };
    for (const DType t : kNarrow) {
      EXPECT_EQ(fired(make(t), "attention"), 3);
      EXPECT_EQ(read_from(make(t)), std::pair(t, t));
    }
    const Graph g = make(DType::F32);
    EXPECT_EQ(fired(g, "attention"), 3);
    EXPECT_EQ(fired(g, "matmul"), 7 * 3 + 1) << "scores are still in memory";
    for (const auto& [seq, past] : {std::pair{1, 0}, {1, 40}, {16, 3}}) {
      const VerifyReport r = verify(g, generic() | cpu({.threads = 2}),
                                    {.trials = 1, .wild = false, .sizes = {{"seq", seq}, {"past", past}}});
      EXPECT_TRUE(r.ok()) << r.str();
    }
  }
}

// ---- in bf16, at Precision::Medium -------------------------------------------------------------------

namespace {

double to_bf16(double x) { return static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(x)))); }
bool in_bf16() { return bf16_is_fast(detect_isa()); }

Results at_medium(const Graph& g, const Inputs& inputs, const Bindings& env, int workers, test::Against side) {
  PassLog log;
  const Graph fused =
      fuse_attention(transform(g, generic()).graph, threads(workers), log, detect_isa(), Precision::Medium);
  EXPECT_GT(log.fired["attention"], 0) << "is not recognised";
  return test::run_guarded(fused, inputs, env, side);
}

// Compares at medium precision. bf16 holds the operands exactly, so only the rounding of weights remains, 2^-8 of each
// weighted value.
void agree_at_medium(const Graph& g, Inputs inputs, const Bindings& env = {}) {
  for (auto& [name, v] : inputs)
    if (name.ends_with(".scale"))
      for (double& x : v.f) x = std::isfinite(x) ? 0.125 : x;
    else if (name != "bias" && v.dtype != DType::I8)
      for (double& x : v.f) x = to_bf16(x);
  const Value want = interpret(g, inputs, env, Rounding::Wide, true).outputs.at("y");
  Inputs sizes = inputs;
  for (double& x : sizes.at("v").f) x = std::abs(x);
  for (std::int64_t& x : sizes.at("v").i) x = std::abs(x);
  const Value weighed = interpret(g, sizes, env).outputs.at("y");
  const Value one = at_medium(g, inputs, env, 1, test::Against::Front).outputs.at("y");
  const Value two = at_medium(g, inputs, env, 2, test::Against::Back).outputs.at("y");
  ASSERT_EQ(one.size(), want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(std::memcmp(&one.f[k], &two.f[k], 8), 0) << "threads change bits at " << k;
    const double y = one.f[k], x = want.f[k];
    if (std::isnan(x)) ASSERT_TRUE(std::isnan(y)) << k << " got " << y;
    else if (std::isinf(x)) ASSERT_EQ(y, x) << k;
    else ASSERT_LE(std::abs(y - x), 4 * want.error_at(k) + std::ldexp(weighed.f[k], -8) + 1e-30) << k << " want " << x;
  }
}

}  // namespace

TEST(AttentionMedium, HeadSizes) {
  for (const std::int64_t depth : {1, 2, 7, 31, 33, 64, 80, 97})
    for (const std::int64_t width : {depth, std::int64_t{5}, std::int64_t{40}}) {
      const Graph g = cached({.depth = depth, .width = width}, Masked::Causal);
      for (const auto& [seq, past] : {std::pair{40, 9}, {9, 22}, {33, 64}, {3, 20}}) {
        const Bindings env{{"seq", seq}, {"past", past}};
        agree_at_medium(g, draw(g, 21, env), env);
      }
    }
}

TEST(AttentionMedium, LengthsGroupsAndMasks) {
  for (const std::int64_t group : {1, 3})
    for (const Masked m : {Masked::No, Masked::Causal, Masked::Window, Masked::Bool, Masked::Bias, Masked::Both}) {
      const Graph g = cached({.kv = 2, .group = group, .depth = 16, .width = 24, .context = 800}, m);
      for (const auto& [seq, past] : {std::pair{17, 0}, {96, 0}, {70, 75}, {13, 488}, {9, 58}}) {
        const Bindings env{{"seq", seq}, {"past", past}};
        agree_at_medium(g, draw(g, 22, env), env);
      }
    }
}

// With one worker four blocks of rows share a tile of keys and values, with eight none do.
TEST(AttentionMedium, BlocksThatShareTiles) {
  EXPECT_EQ(kAttentionEmulated.together, kAttentionBlocks);
  for (const DType t : {DType::F32, DType::F16})
    for (const Masked m : {Masked::No, Masked::Causal, Masked::Both}) {
      const Graph g = cached({.kv = 4, .group = 2, .depth = 16, .width = 24, .context = 800}, m, t);
      for (const auto& [seq, past] : {std::pair{150, 70}, {138, 0}}) {
        const Bindings env{{"seq", seq}, {"past", past}};
        const Inputs in = draw(g, 29, env);
        agree_at_medium(g, in, env);
        EXPECT_TRUE(
            same_bits(at_medium(g, in, env, 1, test::Against::Front), at_medium(g, in, env, 8, test::Against::Back)));
      }
    }
}

TEST(AttentionMedium, NarrowKeysAndValues) {
  for (const DType t : kNarrow)
    for (const auto& [depth, width, m] :
         {std::tuple{40, 33, Masked::Causal}, {64, 64, Masked::Both}, {5, 16, Masked::No}}) {
      const Graph g = cached({.depth = depth, .width = width}, m, t);
      const Bindings env{{"seq", 37}, {"past", 66}};
      agree_at_medium(g, draw(g, 23, env), env);
    }
}

TEST(AttentionMedium, OddViews) {
  Graph g;
  const Tensor q = g.input("q", {17, 21}).permute({1, 0}), k = g.input("k", {17, 91}), v = g.input("v", {91, 24});
  g.output("y", matmul(softmax(matmul(q, k), -1), v.slice(1, 1, 23, 2)));
  agree_at_medium(g, draw(g, 24));
}

TEST(AttentionMedium, NanAndInfinity) {
  const Bindings env{{"seq", 40}, {"past", 89}};
  for (const Masked m : {Masked::No, Masked::Causal, Masked::Window, Masked::Both})
    for (const char* where : {"q", "k", "v"})
      for (const double odd : {kNaN, kInf, -kInf}) {
        const Graph g = cached({.depth = 9, .width = 21}, m);
        Inputs in = draw(g, 25, env);
        Value& v = in.at(where);
        for (const std::size_t k : {std::size_t{3}, v.size() / 2, v.size() - 1}) v.f[k] = odd;
        agree_at_medium(g, in, env);
      }
}

// An infinity beyond the diagonal that no row of a tile may see.
TEST(AttentionMedium, ValuesBehindTheDiagonal) {
  const Bindings env{{"seq", 64}, {"past", 0}};
  const Graph g = cached({.kv = 1, .group = 1, .depth = 8, .width = 20}, Masked::Causal);
  for (const std::size_t key : {20u, 40u, 63u})
    for (const double odd : {kNaN, kInf}) {
      Inputs in = draw(g, 28, env);
      in.at("v").f[key * 20 + 7] = odd;
      agree(g, in, env);
      agree_at_medium(g, in, env);
    }
}

TEST(AttentionMedium, RowsThatSeeNothing) {
  const Bindings env{{"seq", 20}, {"past", 101}};
  for (const double fill : {-kInf, -1e9, 0.0}) {
    const Graph g = cached({.depth = 16, .width = 16}, Masked::Bool, DType::F32, fill);
    Inputs in = draw(g, 26, env);
    Value& mask = in.at("mask");
    for (int row : {0, 7, 19})
      for (std::int64_t j = 0; j < mask.shape[1]; ++j) mask.i[static_cast<std::size_t>(row * mask.shape[1] + j)] = 1;
    agree_at_medium(g, in, env);
  }
}

// Many rows use bf16 products, through cpu() too; few rows have the same bits as at the highest precision.
TEST(AttentionMedium, OnlyManyRows) {
  const Graph g = cached({.depth = 32, .width = 32}, Masked::Causal);
  for (const int seq : {1, 40}) {
    const Bindings env{{"seq", seq}, {"past", 50}};
    const Inputs in = draw(g, 27, env);
    const auto run = [&](Precision p) {
      const Graph made = transform(g, generic() | cpu({.threads = 1, .compiler = false, .precision = p})).graph;
      return run_values(made, in, env);
    };
    if (seq > 1 || !tiles_emulated()) {  // emulated, few rows are added in another order
      EXPECT_EQ(same_bits(run(Precision::Highest), run(Precision::Medium)), seq == 1 || !in_bf16());
    }
    EXPECT_TRUE(same_bits(run(Precision::High), run(Precision::Highest)));
  }
}
