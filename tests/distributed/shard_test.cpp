// shard(): the ranks' graphs compute what the whole graph does, on random graphs and in training.
#include "lightcone/distributed/sharding/shard.h"

#include <cmath>
#include <cstdlib>
#include <mutex>
#include <random>

#include <gtest/gtest.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"
#include "ranks.h"

namespace lc {
namespace {

using Floats = std::vector<float>;
using test::run_ranks;

// Divides axes of the inputs at random wherever an extent allows it.
ShardSpecs random_specs(const Graph& g, const Mesh& mesh, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  ShardSpecs specs;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input) continue;
    ShardSpec s{n.name, std::vector<std::string>(n.shape.size())};
    for (const MeshAxis& a : mesh.axes()) {
      std::vector<std::size_t> fits;
      for (std::size_t i = 0; i < n.shape.size(); ++i)
        if (s.axes[i].empty() && n.shape[i].is_constant() && *n.shape[i].constant() % a.size == 0) fits.push_back(i);
      if (!fits.empty() && random() % 4 != 0) s.axes[fits[random() % fits.size()]] = a.name;
    }
    specs.push_back(std::move(s));
  }
  return specs;
}

Value part_of_value(const Mesh& mesh, int rank, const ShardSpecs& specs, const std::string& name, const Value& v) {
  std::vector<std::byte> bytes(v.size() * size_of(v.dtype));
  write_value(v, bytes.data());
  const ArrayPart part = part_of(mesh, rank, specs, name, ArrayView{v.dtype, v.shape, bytes});
  return read_value(part.bytes.data(), v.dtype, part.shape);
}

struct Decided {
  std::size_t values = 0, all = 0;
} decided;  // comparisons, and those with a bound

void expect_close(const Value& got, const Value& want, const std::string& what) {
  ASSERT_EQ(got.shape, want.shape) << what;
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double x = got.at(k), y = want.at(k), room = 4 * want.error_at(k);
    ++decided.all;
    decided.values += !std::isinf(room);
    const bool both_nan = std::isnan(x) && std::isnan(y);
    const double tiny = is_float(want.dtype) ? std::abs(y) * 1e-6 + 1e-38 : 0;
    ASSERT_TRUE(std::isinf(room) || both_nan || x == y || std::abs(x - y) <= room + tiny)
        << what << ": element " << k << " is " << x << ", not " << y << " within " << room;
  }
}

// Axes of ranks, and axes whose parts one graph computes.
struct Split {
  Mesh ranks;
  std::vector<MeshAxis> serial = {};
  Mesh all() const {
    std::vector<MeshAxis> axes(ranks.axes().begin(), ranks.axes().end());
    axes.insert(axes.end(), serial.begin(), serial.end());
    return Mesh(std::move(axes));
  }
};

std::uint64_t first_seed() {
  const char* given = std::getenv("LIGHTCONE_SEED");
  return given ? std::strtoull(given, nullptr, 10) * 10000 : 0;
}

// Compares the ranks' graphs of a random graph, divided at random, with the whole one, by the reference. Returns
// whether anything was divided.
bool expect_sharded(std::uint64_t k, const Split& split, std::map<std::string, int>& fired) {
  std::mutex mutex;
  const Graph g = random_graph(k, {.nodes = 3 + static_cast<int>(k % 14), .elements = 400});
  const Bindings sizes = random_bindings(g, k);
  const auto inputs = random_inputs(g, sizes, k, k % 3 == 0);
  const ShardSpecs specs = random_specs(g, split.all(), k), of_ranks = without_serial(specs, split.serial);
  const Results want = interpret(g, inputs, sizes, Rounding::Wide, true);
  const auto thrown = run_ranks(split.ranks, [&](const Collectives& c) {
    const Compiled made = transform(g, shard(c, specs, {.serial = split.serial}));
    const auto part = [&](const std::string& name, const Value& v) {
      return part_of_value(split.ranks, c.rank(), of_ranks, name, v);
    };
    std::map<std::string, Value> mine;
    for (const auto& [name, v] : inputs) mine[name] = part(name, v);
    const Results got = interpret(made.graph, mine, sizes);
    const std::lock_guard lock(mutex);
    const std::string at = str_cat("random graph ", k, " on ", split.all(), ", rank ", c.rank(), ", ");
    for (const auto& [name, v] : want.outputs) expect_close(got.outputs.at(name), v, at + name);
    for (const auto& [name, v] : want.states) {
      Value mine_of_v = part(name, v);
      Value error = v;  // the bounds are cut as the values are
      if (!v.error.empty() && is_float(v.dtype)) {
        error.dtype = DType::F64, error.f = v.error;
        mine_of_v.error = part(name, error).f;
      }
      if (is_float(v.dtype) || v.error.empty()) expect_close(got.states.at(name), mine_of_v, at + "state " + name);
    }
    for (const auto& [name, n] : made.log[0].fired) fired[name] += n;
  });
  for (std::size_t r = 0; r < thrown.size(); ++r) EXPECT_EQ(thrown[r], "") << "random graph " << k << ", rank " << r;
  return std::ranges::any_of(specs, [](const ShardSpec& s) {
    return std::ranges::any_of(s.axes, [](const std::string& a) { return !a.empty(); });
  });
}

// Random graphs with random shardings, by the reference over all ranks.
TEST(Shard, RandomGraphs) {
  const std::uint64_t first = first_seed();
  const Split splits[] = {
      {Mesh({{"data", 2}})}, {Mesh({{"data", 3}})}, {Mesh({{"data", 2}, {"model", 2}})}, {Mesh({{"model", 4}})}};
  std::map<std::string, int> fired;
  int divided = 0;
  for (std::uint64_t k = first; k < first + 2000 && !::testing::Test::HasFailure(); ++k)
    divided += expect_sharded(k, splits[k % std::size(splits)], fired);
  EXPECT_GT(divided, 1000);
  EXPECT_GT(decided.values, decided.all * 6 / 10) << decided.values << " of " << decided.all;
  EXPECT_GT(fired["all_reduce"], 100);
  EXPECT_GT(fired["all_gather"], 100);
  EXPECT_GT(fired["reduce_scatter"], 2);  // training has more of them
}

// The same where a graph computes several parts itself.
TEST(Shard, RandomGraphsWithSerialAxes) {
  const std::uint64_t first = first_seed() + 5000;
  const Split splits[] = {{Mesh(), {{"micro", 2}}},
                          {Mesh(), {{"micro", 3}, {"model", 2}}},
                          {Mesh({{"data", 2}}), {{"micro", 2}}},
                          {Mesh({{"data", 2}}), {{"micro", 2}, {"model", 2}}}};
  std::map<std::string, int> fired;
  int divided = 0;
  for (std::uint64_t k = first; k < first + 600 && !::testing::Test::HasFailure(); ++k)
    divided += expect_sharded(k, splits[k % std::size(splits)], fired);
  EXPECT_GT(divided, 300);
}

// verify() runs all ranks against the whole graph, and finds what a wrong rule of sharding does.
TEST(Shard, VerifyRunsAllRanks) {
  const Mesh mesh({{"data", 2}, {"model", 2}});
  Graph g;
  const Tensor x = g.input("x", {4, 8}), up = g.parameter("up", {16, 8}), down = g.parameter("down", {8, 16});
  const Tensor y = add(x, linear(relu(linear(x, up)), down));
  g.output("y", y);
  g.output("largest", amax(y));
  const ShardSpecs specs{{"x", {"data"}}, {"up", {"model"}}, {"down", {"", "model"}}};
  const VerifyReport r = verify(g, shard_on_one_rank(mesh, specs) | generic() | cpu({.threads = 1, .compiler = false}));
  EXPECT_TRUE(r.ok()) << r.str();
  EXPECT_EQ(r.passes.front().pass, "shard");

  const Compiler wrong =
      shard_on_one_rank(mesh, specs) | Compiler({"wrong", [](const Graph& from, PassLog&) {
                                                   return copy_graph(from, [](Graph& dst, NodeId, Node n) -> Edge {
                                                     if (n.op == Op::MaxReduce) n.op = Op::SumReduce;
                                                     const NodeId made = dst.add(std::move(n));
                                                     return {made, View(dst[made].shape)};
                                                   });
                                                 }});
  EXPECT_FALSE(verify(g, wrong | generic()).ok());
}

// What a parameter alone makes is computed when it is loaded, but not what other ranks have a part in: one of them may
// load again.
TEST(Shard, GatheredParametersAreGatheredInEachRun) {
  Graph g;
  g.output("y", sum(mul(g.parameter("w", {4}), 1.0)));
  const Mesh mesh({{"model", 2}});
  const auto thrown = run_ranks(
      mesh,
      [&](const Collectives& c) {
        Program p = compile(g, shard(c, {{"w", {"model"}}}) | generic() | cpu({.threads = 1, .compiler = false}));
        const Floats first{1, 2}, second{10, 20};
        p.load("w", first.data(), 2 * sizeof(float));
        if (c.rank() == 0) p.load("w", second.data(), 2 * sizeof(float));
        EXPECT_EQ(Context(p).run().scalar("y"), 33);
      },
      5);
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
}

// At rank 1 the mask is false everywhere. A compiler that saw that would not gather w there, for which rank 0 waits.
TEST(Shard, AMaskLeavesNoExchangeOut) {
  Graph g;
  const Tensor x = g.input("x", {4, 4}), w = g.input("w", {4, 4});
  const Tensor rows = arange(g, 4).reshape({4, 1}).expand({4, 4});
  g.output("y", sum(mul(x, where(lt(rows, 2), w, 0.0))));
  const Mesh mesh({{"data", 2}});
  const auto thrown = run_ranks(
      mesh,
      [&](const Collectives& c) {
        const Program p = compile(
            g, shard(c, {{"x", {"data"}}, {"w", {"", "data"}}}) | generic() | cpu({.threads = 1, .compiler = false}));
        Context run(p);
        run.set("x", Floats(8, 1.0F)).set("w", Floats(8, 2.0F));
        EXPECT_EQ(run.run().scalar("y"), 16);
      },
      5);
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
}

TEST(Shard, SaysWhatIsWrong) {
  Graph g;
  const Tensor x = g.input("x", {6, 4});
  g.output("y", cumsum(x, 0));
  const auto problem = [&](const ShardSpecs& specs) {
    return run_ranks(Mesh({{"data", 4}}), [&](const Collectives& c) { transform(g, shard(c, specs)); })[0];
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(problem({{"w", {"data"}}}), "the spec 'w' fits no input of the graph"));
  EXPECT_TRUE(has(problem({{"x", {"data"}}}), "cannot be divided along axis 0: 6 is no multiple of 4 ranks"));
  EXPECT_TRUE(has(problem({{"x", {"", "model"}}}), "there is no axis 'model'; the mesh is data=4"));
  EXPECT_TRUE(has(problem({{"x", {"", "data+data"}}}), "is divided twice along 'data'"));
  EXPECT_TRUE(has(problem({{"x", {"", "", "data"}}}), "has fewer axes than the spec, 3"));
}

}  // namespace
}  // namespace lc
