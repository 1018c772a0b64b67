// verify() decides nearly every value of whole networks, in time proportional to the graph, and finds each sabotage of
// a committed list.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/composites/composites.h"
#include "lightcone/device/plan.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/llm/checkpoint.h"
#include "lightcone/passes/composites.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"
#include "nets.h"
#include "paths.h"
#include "processor_time.h"
#include "sabotage.h"

using namespace lc;
using namespace lc::test;

namespace {

const Bindings kPrompt = {{"seq", 7}, {"past", 5}};

struct Network {
  std::string name;
  Graph (*make)();
  Bindings sizes = {};
};
const std::vector<Network>& networks() {
  static const std::vector<Network> all = {
      {"seed", seed_example},
      {"custom pass", custom_pass_example},
      {"typed mlp", typed_mlp_example, {{"batch", 5}}},
      {"mlp", [] { return mlp(); }},
      {"tanh mlp", tanh_mlp},
      {"attention", attention_alone},
      {"bert", [] { return bert(); }},
      {"gpt", [] { return gpt(); }},
      {"vgg", vgg},
      {"resnet", resnet},
      {"mobilenet", mobilenet},
      {"llama", [] { return llama(); }, kPrompt},
      {"llama, bf16 cache", [] { return llama(DType::BF16); }, kPrompt},
      {"llama, Q8_0", [] { return llama(DType::F32, QuantFormat::Q8_0); }, kPrompt},
  };
  return all;
}
const Network& network(const std::string& name) {
  for (const Network& n : networks())
    if (n.name == name) return n;
  throw std::runtime_error("no network is called " + name);
}

VerifyOptions plain(const Bindings& sizes, int trials = 2) {
  return {.trials = trials, .wild = false, .sizes = sizes, .shrink = false};
}

}  // namespace

TEST(VerifyNets, NearlyEveryValueIsDecided) {
  for (const Network& n : networks()) {
    const VerifyReport r = verify(n.make(), generic() | cpu({.threads = 2}), plain(n.sizes));
    EXPECT_TRUE(r.ok()) << n.name << "\n" << r.str();
    EXPECT_GE(r.decided(), 0.99) << n.name << "\n" << r.str();
    EXPECT_EQ(r.passes.back().wild_elements, 0u);
    std::printf("%-20s %7zu values, %.3f %% decided, worst error %.1f %% of what is allowed\n", n.name.c_str(),
                r.passes.back().elements + r.passes.back().undecided, r.decided() * 100, r.passes.back().worst * 100);
  }
}

// Inputs with NaN, infinities and zeros are a second kind of trial, which is counted separately.
TEST(VerifyNets, WildInputsAreCountedApart) {
  for (const char* name : {"tanh mlp", "attention", "gpt", "vgg"}) {
    const VerifyReport r = verify(network(name).make(), generic() | cpu({.threads = 2}), {.trials = 2});
    EXPECT_TRUE(r.ok()) << name << "\n" << r.str();
    EXPECT_GE(r.decided(), 0.99) << name << "\n" << r.str();
    EXPECT_GT(r.passes.back().wild_elements + r.passes.back().wild_undecided, 0u);
    EXPECT_NE(r.str().find("with NaN, infinities and zeros among the inputs"), std::string::npos) << r.str();
  }
}

// The story model with its own weights.
TEST(VerifyNets, TheUsersOwnWeights) {
  const Weights file = Weights::open(std::string(paths::kSource) + "/models/story/story.gguf");
  const LlamaConfig c = LlamaConfig::from(file);
  const Graph g =
      llama_graph(c, {.context = 32, .chunk = 8}, [&](Graph& graph, const std::string& path, Shape s) -> nn::Parameter {
        const StoredTensor* t = file.find(llm::name_in_file(file, path));
        if (!t) return {};
        return nn::parameter(graph, path, std::move(s), t->dtype.value_or(DType::U8), t->quant);
      });
  Value frequencies = make_value(DType::F64, {c.head_dim / 2}), tokens = make_value(DType::I64, {6});
  frequencies.f = c.rope_frequencies;
  tokens.i = {1, 5, 17, 40, 3, 99};
  int loaded = 0;
  const auto load = [&](const Node& input, const std::vector<std::int64_t>& shape) -> std::optional<Value> {
    const StoredTensor* t = file.find(llm::name_in_file(file, input.name));
    if (!t) return std::nullopt;
    ++loaded;
    return read_value(t->bytes.data(), input.dtype, shape);
  };
  const VerifyReport r = verify(g, generic() | cpu({.threads = 2}),
                                {.trials = 1,
                                 .wild = false,
                                 .sizes = {{"seq", 6}, {"past", 3}},
                                 .shrink = false,
                                 .values = {{"rope.frequencies", frequencies}, {"tokens", tokens}},
                                 .load = load});
  EXPECT_TRUE(r.ok()) << r.str();
  EXPECT_GE(r.decided(), 0.99) << r.str();
  EXPECT_GT(loaded, 10);
}

// If products may round their factors, they are checked with that tolerance, and no smaller one.
TEST(VerifyNets, ProductsOfRoundedFactors) {
  for (const char* name : {"mlp", "bert", "llama, Q8_0"}) {
    const Network& n = network(name);
    VerifyOptions o = plain(n.sizes, 1);
    o.products = 0x1p-8;
    const VerifyReport r = verify(n.make(), generic() | cpu({.threads = 2, .precision = Precision::Medium}), o);
    EXPECT_TRUE(r.ok()) << name << "\n" << r.str();
    EXPECT_GE(r.decided(), 0.7) << name << "\n" << r.str();
    const auto first_half = [](const Node& sum, Tensor t) {
      const Dim all = t.extent(sum.axis), half = all / 2;
      return t.slice(sum.axis, 0, half).pad(sum.axis, 0, all - half);
    };
    EXPECT_TRUE(verify(n.make(), generic() | wrong_operand(Op::SumReduce, 0, first_half), o).fault) << name;
  }
}

// If all values are given, nothing is random: there is one trial, however many were requested.
TEST(VerifyNets, GivenValuesAreTriedOnce) {
  const Graph g = seed_example();
  Value a = make_value(DType::F32, {3, 1}), b = make_value(DType::F32, {1, 4});
  a.f = {1, 2, 3}, b.f = {1, 2, 3, 4};
  const VerifyReport r = verify(g, generic(), {.trials = 5, .values = {{"a", a}, {"b", b}}});
  EXPECT_EQ(r.passes[0].results, 1u);
  EXPECT_TRUE(r.ok()) << r.str();
}

// The reference's time and memory are proportional to the graph's: an encoder layer of BERT's width takes seconds,
// although its materialized products would take gigabytes.
TEST(VerifyNets, AnEncoderLayerInSeconds) {
  const auto start = std::chrono::steady_clock::now();
  const VerifyReport r = verify(bert(32, 768, 12), generic() | cpu({.threads = 2}), plain({}, 1));
  EXPECT_TRUE(r.ok()) << r.str();
  EXPECT_GE(r.decided(), 0.99) << r.str();
  std::printf("%.1f s\n%s", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
              r.str().c_str());
}

// ---- sabotage ------------------------------------------------------------------------------------------------

namespace {

struct Sabotage {
  std::string what, found_on;
  Compiler compiler;
  bool kernels = false;  // applied after cpu()
  bool wild = false;     // only NaN and infinities reveal it
};

Edge same(Graph& g, Node n) {
  const NodeId id = g.add(std::move(n));
  return {id, View(g[id].shape)};
}
Tensor lose_last(const Node& n, Tensor x) {  // drops the last element of the reduced axis
  const Dim last = x.extent(n.axis);
  return x.slice(n.axis, 0, last - 1).pad(n.axis, 0, 1);
}
Tensor through(DType t, Tensor x) { return prim::cast(prim::cast(x, t), x.dtype()); }

std::vector<Sabotage> wrong_rules() {
  const Pat x = any(), y = any();
  const auto rule = [](const char* name, Pat from, Pat to) { return rewrite("sabotage", {{name, from, to}}); };
  const auto index = [](DType t, const std::function<Dim(const Node&)>& f) {
    return wrong_pass([=](Graph& g, const Node& n) -> std::optional<Edge> {
      if (n.op != Op::Index || n.dtype != t || n.shape.empty()) return std::nullopt;
      Node m = n;
      m.index = f(n);
      return same(g, std::move(m));
    });
  };
  const auto slice_scatter = [](const std::function<Edge(Graph&, const Node&)>& f) {
    return wrong_pass([=](Graph& g, const Node& n) -> std::optional<Edge> {
      return is(n, builtin::slice_scatter()) ? std::optional(f(g, n)) : std::nullopt;
    });
  };
  return {
      {"softmax without its division", "attention", wrong_pass([](Graph& g, const Node& n) -> std::optional<Edge> {
         return n.op == Op::Recip ? std::optional(full_like(Tensor(g, n.in[0]), 1).edge()) : std::nullopt;
       })},
      {"log2(e) wrong in the fourth digit", "attention", wrong_constant(std::numbers::log2e, 1.4429)},
      {"the scale of attention 1 % wrong", "bert", wrong_constant(1 / std::sqrt(24.0), 1.01 / std::sqrt(24.0))},
      {"a lost sign", "tanh mlp", rule("lost", x * -1.0, x)},
      {"a root's reciprocal as a root", "resnet", rule("lost", recip(sqrt(x)), sqrt(x))},
      {"a norm's epsilon a hundred times too large", "llama", wrong_constant(1e-5, 1e-3)},
      {"gelu's tail at 2 wrong in the fourth digit", "gpt", wrong_constant(0.15083145, 0.1506)},
      {"relu forgotten", "mlp", rule("lost", maximum(x, 0.0), x)},
      {"relu that drops NaN", "mlp", rule("lost", maximum(x, 0.0), where(Pat(0.0) < x, x, 0.0)), false, true},
      {"relu6 that saturates at 6.001", "mobilenet", wrong_constant(6, 6.001)},
      {"a sum without its last term", "mlp", wrong_operand(Op::SumReduce, 0, lose_last)},
      {"a maximum without its last element", "vgg", wrong_operand(Op::MaxReduce, 0, lose_last)},
      {"terms of sums in bf16", "bert",
       wrong_operand(Op::SumReduce, 0, [](const Node&, Tensor t) { return through(DType::BF16, t); })},
      {"terms of sums in f16", "resnet",
       wrong_operand(Op::SumReduce, 0, [](const Node&, Tensor t) { return through(DType::F16, t); })},
      {"exponentials of f16", "attention",
       wrong_operand(Op::Exp2, 0, [](const Node&, Tensor t) { return through(DType::F16, t); })},
      {"a bias added twice", "vgg", rule("twice", x + y, x + y + y)},
      {"a causal mask that sees one key more", "gpt",
       index(DType::Bool,
             [](const Node& n) {
               const int row = static_cast<int>(n.shape.size()) - 2;
               const std::string name = str_cat("i", row);
               return n.index.substitute([&](const std::string& s) -> std::optional<Dim> {
                 if (s != name) return std::nullopt;
                 return Dim::index(row, n.shape[static_cast<std::size_t>(row)]) + 1;
               });
             })},
      {"rotary angles of the next position", "llama", index(DType::F64, [](const Node& n) { return n.index + 1; })},
      {"the embedding of the next token", "llama", wrong_pass([](Graph& g, const Node& n) -> std::optional<Edge> {
         if (!is(n, builtin::gather())) return std::nullopt;
         Node m = n;
         const Tensor i(g, n.in[1]);
         m.in[1] = prim::add(i, full_like(i, 1)).edge();
         return same(g, std::move(m));
       })},
      {"a cache that is never written", "llama", slice_scatter([](Graph&, const Node& n) { return n.in[0]; })},
      {"a cache written one position late", "llama", slice_scatter([](Graph& g, const Node& n) {
         Node m = n;
         m.attributes = {{"axis", n.attributes.integer("axis")}, {"start", n.attributes.dim("start") + 1}};
         return same(g, std::move(m));
       })},
      {"heads in the wrong order", "gpt",
       wrong_operand(Op::Exp2, 0, [](const Node&, Tensor t) { return t.rank() == 4 ? t.flip(1) : t; })},
  };
}

std::vector<Sabotage> wrong_kernels() {
  const auto spoil = [](std::string what, std::string where, const char* kernel, Spoil s, bool wild = false) {
    return Sabotage{std::move(what), std::move(where), wrong_kernel(kernel, s), true, wild};
  };
  const Spoil nudge = [](float* y, std::size_t n, std::size_t) { y[n / 2] *= 1.001f; };
  const Spoil swap_rows = [](float* y, std::size_t n, std::size_t columns) {
    if (n >= 2 * columns) std::swap_ranges(y, y + columns, y + columns);
  };
  const Spoil lose_column = [](float* y, std::size_t n, std::size_t columns) {
    for (std::size_t i = columns - 1; i < n; i += columns) y[i] = 0;
  };
  const Spoil half = [](float* y, std::size_t n, std::size_t) { std::fill(y + n / 2, y + n, 0.0f); };
  const Spoil shift = [](float* y, std::size_t n, std::size_t) { std::memmove(y + 1, y, (n - 1) * sizeof(float)); };
  const Spoil bf16s = [](float* y, std::size_t n, std::size_t) {
    for (std::size_t i = 0; i < n; ++i) y[i] = bf16_to_f32(f32_to_bf16(y[i]));
  };
  const Spoil tail = [](float* y, std::size_t n, std::size_t) { y[n - 1] += 1e-3f * (1 + std::fabs(y[n - 1])); };
  const Spoil numbers_only = [](float* y, std::size_t n, std::size_t) {
    for (std::size_t i = 0; i < n; ++i) y[i] = std::isnan(y[i]) ? 0 : y[i];
  };
  return {
      spoil("one number of a norm 1e-3 off", "bert", "", nudge),
      spoil("one number of a product 1e-3 off", "mlp", "", nudge),
      spoil("two rows swapped", "tanh mlp", "", swap_rows),
      spoil("two rows of an attention swapped", "gpt", "attention", swap_rows),
      spoil("the last column of an attention skipped", "bert", "attention", lose_column),
      spoil("the last column of a product skipped", "llama", "", lose_column),
      spoil("half of a convolution not written", "vgg", "conv", half),
      spoil("a convolution's rows one element late", "resnet", "conv", shift),
      spoil("a depthwise convolution in bf16", "mobilenet", "conv", bf16s),
      spoil("an attention in bf16", "bert", "attention", bf16s),
      spoil("the last element of a convolution off", "vgg", "conv", tail),
      spoil("an attention that makes NaN a number", "gpt", "attention", numbers_only, true),
  };
}

}  // namespace

// The rules that are wrong look for the operations of attention, which is one operation of a network's graph.
Compiler attention_written_out() {
  return Compiler({"write-out-attention",
                   [](const Graph& g, PassLog& log) { return inline_transparent(g, log, builtin::attention()); }});
}

TEST(VerifyNets, EverySabotageIsFound) {
  std::vector<Sabotage> all = wrong_rules();
  for (Sabotage& s : wrong_kernels()) all.push_back(std::move(s));
  EXPECT_GE(all.size(), 30u);
  for (const Sabotage& s : all) {
    const Network& n = network(s.found_on);
    VerifyOptions o = plain(n.sizes, 1);
    if (s.wild) o.wild = true, o.trials = 12;
    const VerifyReport r = verify(
        n.make(),
        s.kernels ? generic() | cpu({.threads = 1}) | s.compiler : attention_written_out() | generic() | s.compiler, o);
    EXPECT_FALSE(r.passes.back().fired.empty()) << s.what << " never fired";
    EXPECT_TRUE(r.fault) << s.what << " is not found on " << s.found_on << "\n" << r.str();
    if (r.fault) {
      EXPECT_EQ(r.fault->pass, "sabotage") << s.what << "\n" << r.str();
    }
    std::printf("%-45s found on %s\n", s.what.c_str(), r.fault ? s.found_on.c_str() : "NOTHING");
  }
}

// At most a twentieth of a network's working memory is lost to fragmentation.
TEST(VerifyNets, PlansAreNearWhatIsAliveAtOnce) {
  for (const Network& n : networks()) {
    const Program p = compile(n.make(), generic() | cpu({.threads = 1}));
    for (const int workers : {1, 2, 8}) {
      const MemoryPlan plan = make_plan(p.graph(), workers, n.sizes);
      EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.05 * static_cast<double>(plan.alive_bytes))
          << n.name << ", " << workers;
    }
  }
}

// Without a compiler, a network takes at most 20 times as long.
TEST(VerifyNets, InterpretedKernelsAreNotThatSlow) {
  for (const Network& n : networks()) {
    const Graph g = n.make();
    const auto inputs = random_inputs(g, n.sizes, 7, false);
    std::vector<double> least;
    for (const bool compiler : {true, false}) {
      Program p = compile(g, generic() | cpu({.threads = 1, .compiler = compiler}));
      std::map<std::string, std::vector<std::byte>> bytes;
      for (const auto& [input, value] : inputs) {
        std::vector<std::byte>& of = bytes[input];
        of.resize(value.size() * size_of(value.dtype));
        write_value(value, of.data());
        if (p.is_parameter(input)) p.load(input, of.data(), of.size());
      }
      Context c(p);
      for (const auto& [symbol, value] : n.sizes) c.bind(symbol, value);
      for (const auto& [input, of] : bytes)
        if (!p.is_parameter(input)) c.set_bytes(input, of.data(), of.size());
      c.run();
      least.push_back(1);
      for (int k = 0; k < 20; ++k) least.back() = std::min(least.back(), seconds([&] { c.run(); }));
    }
    EXPECT_LE(least[1], 20 * least[0] * kSanitizersTake) << n.name;
    std::printf("%-20s %8.1f us compiled, %6.1f times that interpreted\n", n.name.c_str(), least[0] * 1e6,
                least[1] / least[0]);
  }
}
