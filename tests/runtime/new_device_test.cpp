// The device of docs/adding-a-device.md runs random graphs, gradients, a training step and a language model.
#include "examples/new_device.h"

#include <cmath>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"
#include "small_training.h"

using namespace lc;

namespace {

Compiler device() { return example::new_device(std::make_shared<example::NewDevice>()); }

std::vector<float> waves(std::size_t n, float step) {
  std::vector<float> v(n);
  for (std::size_t k = 0; k < n; ++k) v[k] = std::sin(step * static_cast<float>(k));
  return v;
}

}  // namespace

TEST(NewDevice, RandomGraphsAgreeWithTheReference) {
  const Compiler compiler = generic() | device();
  VerifyReport::Checked seen;
  int failures = 0;
  std::size_t kernels = 0, interpreted = 0;
  for (std::uint64_t i = 8000000; i < 8002000 && failures < 5; ++i) {
    const Graph g = random_graph(i, {.nodes = 4 + static_cast<int>(i % 14), .elements = 200});
    const Bindings env = random_bindings(g, i);
    const auto inputs = random_inputs(g, env, i, i % 3 == 0);
    std::optional<Difference> d;
    try {
      const Graph done = transform(g, compiler).graph;
      const Program p = compile(done);
      kernels += p.kernels(), interpreted += p.interpreted();
      d = compare(interpret(g, inputs, env, Rounding::Wide, true), run_values(done, inputs, env), 4, &seen);
    } catch (const std::exception& e) {
      d.emplace().problem = e.what();
    }
    if (!d) continue;
    ++failures;
    ADD_FAILURE() << "graph " << i << ": " << d->str() << "\n" << g.str();
  }
  EXPECT_GT(kernels, 2000u);
  EXPECT_EQ(interpreted, 0u) << "a loop nest says everything";
  EXPECT_GT(seen.elements, 20 * seen.undecided);
}

TEST(NewDevice, Gradients) {
  Graph g;
  const Tensor x = g.input("x", {6, 5}), w = g.input("w", {5, 4});
  const Tensor loss = mean(softplus(matmul(layer_norm(x, {5}), w)));
  const std::vector<Tensor> d = gradients(loss, {x, w});
  g.output("dx", d[0]);
  g.output("dw", d[1]);
  const Program here = compile(g, generic() | cpu({.threads = 1})), there = compile(g, generic() | device());
  EXPECT_EQ(there.interpreted(), 0u);
  Context a(here), b(there);
  for (Context* c : {&a, &b}) c->set("x", waves(30, 1)).set("w", waves(20, 2)).run();
  for (const char* name : {"dx", "dw"}) {
    const auto want = a.get(name), got = b.get(name);
    for (std::size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-6) << name << " " << k;
  }
}

TEST(NewDevice, TrainsWithTheLossesOfTheCpu) {
  test::SmallTraining here(3), there(3, false, device());
  const std::vector<float> want = here.run(10), got = there.run(10);
  for (std::size_t k = 0; k < want.size(); ++k)
    EXPECT_NEAR(got[k], want[k], 2e-5 * (1 + std::abs(want[k]))) << "step " << k;
  EXPECT_LT(got.back(), got.front());
}

// A prompt, and then one token at a time, with a cache of keys and values.
TEST(NewDevice, RunsALlama) {
  const LlamaConfig config{.vocab = 50,
                           .hidden = 16,
                           .intermediate = 24,
                           .layers = 2,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_dim = 4,
                           .context = 12,
                           .rope_frequencies = {1, 0.1}};
  std::map<std::string, std::vector<float>> weights;
  const Graph g = llama_graph(config, {.context = 12, .chunk = 5}, [&](Graph& graph, const std::string& path, Shape s) {
    if (path.ends_with(".bias") || path.ends_with("_norm.weight")) return nn::Parameter();
    weights[path] = waves(static_cast<std::size_t>(*product(s).constant()), 0.37f + static_cast<float>(weights.size()));
    return nn::parameter(graph, path, std::move(s), DType::F32);
  });
  Program here = compile(g, generic() | cpu({.threads = 1})), there = compile(g, generic() | device());
  EXPECT_EQ(there.interpreted(), 0u);
  for (Program* p : {&here, &there}) {
    for (const auto& [name, w] : weights) p->load(name, w.data(), w.size() * sizeof(float));
    p->load("rope.frequencies", config.rope_frequencies.data(), config.rope_frequencies.size() * sizeof(double));
  }
  Context a(here), b(there);
  std::int64_t past = 0;
  for (const std::vector<std::int64_t>& tokens : {std::vector<std::int64_t>{7, 3, 49, 0, 12}, {5}, {31}}) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    for (Context* c : {&a, &b}) c->bind("seq", count).bind("past", past).set("tokens", tokens).run();
    const auto want = a.get("logits"), got = b.get("logits");
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t k = 0; k < want.size(); ++k) ASSERT_NEAR(got[k], want[k], 1e-4) << k << " behind " << past;
    past += count;
  }
}

TEST(NewDevice, RefusesTheKernelsOfOthers) {
  Graph g;
  g.output("y", exp(g.input("x", {8})));
  const Program p = compile(g, generic() | cpu({.threads = 1}));
  example::NewDevice d;
  const auto& kernel = *p.graph()[p.graph().roots()[0].edge.node].kernel;
  try {
    d.launch({.kernel = &kernel, .in = {}, .out = {}, .sizes = {}, .scratch = {}});
    ADD_FAILURE() << "it ran";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("is not for the new device"), std::string::npos) << e.what();
  }
}
