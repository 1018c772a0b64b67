// Loops in shard(): recurrences whose batch or channels are divided stay divided, and so do their derivatives.
#include <cmath>
#include <mutex>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/ops/loop.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "ranks.h"

namespace lc {
namespace {

using Floats = std::vector<float>;
using test::run_ranks;

Value cut(const Mesh& mesh, int rank, const ShardSpecs& specs, const std::string& name, const Value& v) {
  Value wide = v;
  if (is_float(v.dtype)) wide.dtype = DType::F64;
  std::vector<std::byte> bytes(wide.size() * size_of(wide.dtype));
  write_value(wide, bytes.data());
  const ArrayPart part = part_of(mesh, rank, specs, name, ArrayView{wide.dtype, wide.shape, bytes});
  Value out = read_value(part.bytes.data(), wide.dtype, part.shape);
  out.dtype = v.dtype;
  return out;
}

void expect_close(const Value& got, const Value& want, double room, const std::string& what) {
  ASSERT_EQ(got.shape, want.shape) << what;
  for (std::size_t k = 0; k < got.size(); ++k)
    ASSERT_LE(std::abs(got.at(k) - want.at(k)), room * (1 + std::abs(want.at(k))))
        << what << ": element " << k << " is " << got.at(k) << ", not " << want.at(k);
}

// Compares all ranks' outputs with those of the whole graph: by the reference, and on the CPU. Returns the log of rank
// 0.
PassLog expect_as_whole(const Graph& g, const Mesh& mesh, const ShardSpecs& specs, std::uint64_t seed,
                        const std::string& what, bool on_cpu = true) {
  const auto inputs = random_inputs(g, {}, seed, false);
  const Results want = interpret(g, inputs);
  PassLog log;
  std::mutex mutex;
  std::set<std::string> parameters;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].parameter) parameters.insert(g[id].name);
  const auto thrown = run_ranks(mesh, [&](const Collectives& c) {
    std::map<std::string, Value> parts;
    for (const auto& [name, v] : inputs) parts[name] = cut(mesh, c.rank(), specs, name, v);
    const Compiled made = transform(g, shard(c, specs));
    const Results got = interpret(made.graph, parts);
    std::map<std::string, Floats> ran;
    if (on_cpu) {
      Program p = compile(g, shard(c, specs) | generic() | cpu({.threads = 1, .compiler = false}));
      std::map<std::string, Floats> narrow;
      for (const auto& [name, v] : parts) narrow[name] = Floats(v.f.begin(), v.f.end());
      for (const std::string& name : parameters) p.load(name, narrow[name].data(), narrow[name].size() * sizeof(float));
      Context run(p);
      for (const auto& [name, v] : narrow)
        if (!parameters.contains(name)) run.set(name, v);
      run.run();
      for (const auto& [name, v] : want.outputs) ran[name] = run.get(name);
    }
    const std::lock_guard lock(mutex);
    if (c.rank() == 0) log = made.log[0];
    for (const auto& [name, v] : want.outputs) {
      const std::string at = str_cat(what, " on ", mesh, ", rank ", c.rank(), ", ", name);
      expect_close(got.outputs.at(name), v, 1e-10, at);
      if (!on_cpu) continue;
      Value f32 = v;
      f32.f.assign(ran[name].begin(), ran[name].end());
      if (is_float(v.dtype)) expect_close(f32, v, 1e-4, at + " on the CPU");
    }
  });
  for (const std::string& t : thrown) EXPECT_EQ(t, "") << what;
  return log;
}

constexpr std::int64_t kSteps = 6, kBatch = 4, kIn = 3, kHidden = 4;

void train(Graph& g, const Tensor& loss, const std::vector<Tensor>& wrt) {
  g.output("loss", loss);
  const auto d = gradients(loss, wrt);
  for (std::size_t k = 0; k < d.size(); ++k) g.output(str_cat("d", k), d[k]);
}

// An LSTM over x [steps, batch, in].
Graph lstm() {
  Graph g;
  const Tensor x = g.input("x", {kSteps, kBatch, kIn}), target = g.input("target", {kSteps, kBatch, kHidden});
  const Tensor ih = g.parameter("ih", {4 * kHidden, kIn}), hh = g.parameter("hh", {4 * kHidden, kHidden});
  const Tensor zero = full(g, {kBatch, kHidden}, 0);
  const Scanned r = scan(
      [&](const std::vector<Tensor>& s, const std::vector<Tensor>& now) {
        const auto a = chunk(now[0] + linear(s[0], hh), 4, -1);
        const Tensor c = sigmoid(a[1]) * s[1] + sigmoid(a[0]) * tanh(a[2]), h = sigmoid(a[3]) * tanh(c);
        return Scanned{{h, c}, {h}};
      },
      {zero, zero}, {linear(x, ih)});
  train(g, mean(square(r.ys[0] - target)) + mean(r.state[1]), {ih, hh});
  return g;
}

// h = exp(a) h + x b, y = sum(h c): a state space as Mamba's, of which each channel is independent.
Graph state_space() {
  Graph g;
  constexpr std::int64_t kStates = 2;
  const Tensor x = g.input("x", {kSteps, kBatch, kHidden}), b = g.input("b", {kSteps, kBatch, kStates}),
               c = g.input("c", {kSteps, kBatch, kStates}), target = g.input("target", {kSteps, kBatch, kHidden});
  const Tensor a = g.parameter("a", {kHidden, kStates});
  const Scanned r = scan(
      [&](const std::vector<Tensor>& s, const std::vector<Tensor>& now) {
        const Tensor h = exp(-exp(a)) * s[0] + now[0].unsqueeze(2) * now[1].unsqueeze(1);
        return Scanned{{h}, {sum(h * now[2].unsqueeze(1), 2)}};
      },
      {full(g, {kBatch, kHidden, kStates}, 0)}, {x, b, c});
  train(g, mean(square(r.ys[0] - target)), {a});
  return g;
}

int count(const PassLog& log, const std::string& what) {
  const auto at = log.fired.find(what);
  return at == log.fired.end() ? 0 : at->second;
}
std::string notes(const PassLog& log) {
  std::string all;
  for (const std::string& n : log.notes) all += n + "\n";
  return all;
}

// A loop gathers nothing and exchanges nothing in a step, and gradients of what the batch shares are added up once.
TEST(DistributedLoops, BatchIsDivided) {
  for (const int n : {2, 4}) {
    const Mesh mesh({{"data", n}});
    const PassLog log = expect_as_whole(lstm(), mesh, {{"x", {"", "data"}}, {"target", {"", "data"}}}, 1, "an LSTM");
    EXPECT_EQ(count(log, "all_gather"), 0);
    EXPECT_EQ(count(log, "all_reduce"), 3 + 1);  // two means and two gradients
    EXPECT_EQ(notes(log), "");
    const PassLog space = expect_as_whole(
        state_space(), mesh, {{"x", {"", "data"}}, {"b", {"", "data"}}, {"c", {"", "data"}}, {"target", {"", "data"}}},
        2, "a state space");
    EXPECT_EQ(count(space, "all_gather"), 0);
    EXPECT_EQ(count(space, "all_reduce"), 2);
    EXPECT_EQ(notes(space), "");
  }
}

TEST(DistributedLoops, ChannelsAreDivided) {
  const ShardSpecs channels{{"x", {"", "", "model"}}, {"a", {"model"}}, {"target", {"", "", "model"}}};
  const PassLog log = expect_as_whole(state_space(), Mesh({{"model", 2}}), channels, 3, "a state space");
  EXPECT_EQ(count(log, "all_gather"), 1);  // the gradient of a, as an output
  EXPECT_EQ(notes(log), "");
  const ShardSpecs both{{"x", {"", "data", "model"}},
                        {"b", {"", "data"}},
                        {"c", {"", "data"}},
                        {"a", {"model"}},
                        {"target", {"", "data", "model"}}};
  const PassLog mixed = expect_as_whole(state_space(), Mesh({{"data", 2}, {"model", 2}}), both, 4, "a state space");
  EXPECT_EQ(count(mixed, "all_gather"), 1);
  EXPECT_EQ(notes(mixed), "");
}

// Divided weights are gathered once before the loop, and states on whose sums a step depends are exchanged in it.
TEST(DistributedLoops, StepsThatNeedMore) {
  const Mesh mesh({{"data", 2}});
  expect_as_whole(lstm(), mesh, {{"x", {"", "data"}}, {"target", {"", "data"}}, {"ih", {"data"}}, {"hh", {"data"}}}, 5,
                  "fully sharded");
  expect_as_whole(lstm(), Mesh({{"model", 2}}), {{"hh", {"model"}}}, 6, "rows of the weight");
  expect_as_whole(lstm(), Mesh({{"model", 2}}), {{"hh", {"", "model"}}}, 7, "columns of the weight");
  expect_as_whole(lstm(), Mesh({{"model", 2}}), {{"x", {"model"}}}, 8, "steps");
  Graph g;  // it stops when no state changes: on all ranks at once
  const Tensor x = g.input("x", {4}), k = g.input("k", {});
  const auto last =
      while_loop([](const std::vector<Tensor>& s) { return lt(sum(s[0]), 20.0); },
                 [&](const std::vector<Tensor>& s) { return std::vector{s[0] + abs(k) + 0.1}; }, {x}, 100);
  g.output("y", last[0]);
  expect_as_whole(g, mesh, {{"x", {"data"}}}, 9, "a loop with a condition");
}

// Bodies of random operations, with states, slices and captures that are divided at random.
Graph random_loop(std::mt19937_64& random) {
  Graph g;
  const Tensor slices = g.input("slices", {3, 4, 4}), start = g.input("start", {4, 4}),
               other = g.input("other", {4, 4});
  const bool zero = random() % 2 == 0;
  std::vector<Tensor> state{zero ? full(g, {4, 4}, 0) : start, full(g, {4}, 0)};
  const ScanOptions o{.reverse = random() % 2 == 0, .keep_states = random() % 2 == 0};
  const Scanned r = scan(
      [&](const std::vector<Tensor>& s, const std::vector<Tensor>& now) {
        std::vector<Tensor> known{s[0], now[0], other};
        const auto any = [&] { return known[random() % known.size()]; };
        for (int k = 0; k < 4; ++k) {
          const Tensor a = any(), b = any();
          switch (random() % 7) {
            case 0: known.push_back(a + b); break;
            case 1: known.push_back(a * b * 0.5); break;
            case 2: known.push_back(tanh(matmul(a, b))); break;
            case 3: known.push_back(matmul(a, b.transpose(0, 1)) * 0.25); break;
            case 4: known.push_back(a + sum(b, 0)); break;
            case 5: known.push_back(a - amax(b, 1).unsqueeze(1)); break;
            case 6: known.push_back(a.transpose(0, 1)); break;
          }
        }
        const Tensor next = random() % 4 == 0 ? s[0] + any() : tanh(any()), sums = s[1] + sum(any(), 0);
        return Scanned{{next, sums}, {any() + 0.0}};
      },
      state, {slices}, o);
  g.output("state", r.state[0]), g.output("sums", r.state[1]), g.output("ys", r.ys[0]);
  const auto d = gradients(mean(square(r.ys[0])) + mean(r.state[0]) + mean(tanh(r.state[1])), {slices, start, other},
                           {.allow_unused = true});
  for (std::size_t k = 0; k < d.size(); ++k) g.output(str_cat("d", k), d[k]);
  return g;
}

TEST(DistributedLoops, RandomBodies) {
  std::mt19937_64 random(11);
  const Mesh meshes[] = {Mesh({{"a", 2}}), Mesh({{"a", 4}}), Mesh({{"a", 2}, {"b", 2}})};
  int notes_of_steps = 0;
  for (int k = 0; k < 120 && !::testing::Test::HasFailure(); ++k) {
    const Graph g = random_loop(random);
    const Mesh& mesh = meshes[k % std::size(meshes)];
    ShardSpecs specs;
    for (const char* name : {"slices", "start", "other"}) {
      ShardSpec s{name, std::vector<std::string>(name == std::string("slices") ? 3 : 2)};
      for (const MeshAxis& a : mesh.axes()) {
        std::string& axis = s.axes[random() % s.axes.size()];
        const bool steps = &axis == s.axes.data() && s.axes.size() == 3;  // there are three
        if (random() % 3 && !steps && axis.empty()) axis = a.name;
      }
      specs.push_back(s);
    }
    const PassLog log = expect_as_whole(g, mesh, specs, static_cast<std::uint64_t>(k), str_cat("loop ", k), k % 8 == 0);
    notes_of_steps += notes(log).find("steps of the loop") != std::string::npos;
  }
  EXPECT_GT(notes_of_steps, 5);
}

}  // namespace
}  // namespace lc
