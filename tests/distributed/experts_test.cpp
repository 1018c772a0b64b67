// A mixture of experts on several ranks: experts divided, tokens divided, or both along one axis of the mesh.
#include <cmath>
#include <mutex>
#include <random>

#include <gtest/gtest.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/composites/composites.h"
#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/random_graph.h"
#include "ranks.h"

namespace lc {
namespace {

using test::run_ranks;

constexpr std::int64_t kTokens = 8, kWidth = 4, kInner = 16, kExperts = 4, kChosen = 2;

// A layer of a Mixtral: a router chooses two experts for each token, whose gated networks are added with its weights.
// Gradients become the next values of states, as those of an optimiser do.
Graph mixture(std::int64_t tokens = kTokens) {
  Graph g;
  const Tensor x = g.input("x", {tokens, kWidth}), target = g.input("target", {tokens, kWidth});
  const std::vector<std::pair<const char*, Shape>> weights{{"router", {kExperts, kWidth}},
                                                           {"gate", {kExperts, kInner, kWidth}},
                                                           {"up", {kExperts, kInner, kWidth}},
                                                           {"down", {kExperts, kWidth, kInner}}};
  std::vector<Tensor> w;
  for (const auto& [name, shape] : weights) w.push_back(g.input(name, shape));
  const Sorted best = topk(linear(x, w[0]), kChosen);
  const Tensor share = softmax(best.values, -1);
  const Tensor rows = x.unsqueeze(1).expand({tokens, kChosen, kWidth}).reshape({tokens * kChosen, kWidth});
  const Tensor expert = best.indices.reshape({tokens * kChosen});
  const Tensor inner = silu(prim::gather_mm(rows, w[1], expert)) * prim::gather_mm(rows, w[2], expert);
  const Tensor out = prim::gather_mm(inner, w[3], expert).reshape({tokens, kChosen, kWidth});
  const Tensor loss = mean(square(sum(out * share.unsqueeze(-1), 1) - target));
  g.output("loss", loss);
  const auto d = gradients(loss, w);
  for (std::size_t k = 0; k < w.size(); ++k) g.assign(w[k], d[k]);
  return g;
}

Value cut(const Mesh& mesh, int rank, const ShardSpecs& specs, const std::string& name, const Value& v) {
  Value wide = v;
  wide.dtype = DType::F64;
  std::vector<std::byte> bytes(wide.size() * size_of(wide.dtype));
  write_value(wide, bytes.data());
  const ArrayPart part = part_of(mesh, rank, specs, name, ArrayView{wide.dtype, wide.shape, bytes});
  Value out = read_value(part.bytes.data(), wide.dtype, part.shape);
  out.dtype = v.dtype;
  return out;
}

// Compares loss and gradients of all ranks with those of the whole graph by the reference. Returns the log of rank 0.
std::map<std::string, int> expect_as_whole(const Graph& g, const Mesh& mesh, const ShardSpecs& specs) {
  const auto inputs = random_inputs(g, {}, 5, false);
  const Results want = interpret(g, inputs);
  std::map<std::string, int> fired;
  std::mutex mutex;
  const auto thrown = run_ranks(mesh, [&](const Collectives& c) {
    const Compiled made = transform(g, shard(c, specs));
    std::map<std::string, Value> parts;
    for (const auto& [name, v] : inputs) parts[name] = cut(mesh, c.rank(), specs, name, v);
    const Results got = interpret(made.graph, parts);
    const std::lock_guard lock(mutex);
    if (c.rank() == 0) fired = made.log[0].fired;
    const double loss = want.outputs.at("loss").at(0);
    EXPECT_NEAR(got.outputs.at("loss").at(0), loss, 1e-12 * loss) << mesh.str();
    for (const auto& [name, v] : want.states) {
      const Value part = cut(mesh, c.rank(), specs, name, v);
      for (std::size_t k = 0; k < part.size(); ++k)
        ASSERT_NEAR(got.states.at(name).at(k), part.at(k), 1e-11 * (loss + std::abs(part.at(k))))
            << mesh.str() << ", rank " << c.rank() << ", " << name << ", element " << k;
    }
  });
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
  return fired;
}

int count(const std::map<std::string, int>& fired, const char* what) {
  const auto at = fired.find(what);
  return at == fired.end() ? 0 : at->second;
}

ShardSpecs experts_along(const std::string& axis) { return {{"gate", {axis}}, {"up", {axis}}, {"down", {axis}}}; }

TEST(Experts, Divided) {
  for (const int n : {2, 4}) {
    const auto fired = expect_as_whole(mixture(), Mesh({{"expert", n}}), experts_along("expert"));
    EXPECT_EQ(count(fired, "all_gather"), 0) << n;  // neither of experts nor of their gradients
  }
}

TEST(Experts, DividedWithTokens) {
  ShardSpecs both = experts_along("expert");
  for (const char* name : {"x", "target"}) both.push_back({name, {"data"}});
  const auto fired = expect_as_whole(mixture(), Mesh({{"data", 2}, {"expert", 2}}), both);
  EXPECT_EQ(count(fired, "all_gather"), 0);
}

// Along one axis, what is smaller travels: rows to the experts and their results back, or experts to all ranks.
TEST(Experts, DividedAsTokensAre) {
  ShardSpecs same = experts_along("data");
  for (const char* name : {"x", "target"}) same.push_back({name, {"data"}});
  for (const int n : {2, 4}) {
    const auto few = expect_as_whole(mixture(4), Mesh({{"data", n}}), same);
    EXPECT_GE(count(few, "reduce_scatter"), 3 + 3);  // results, and gradients of experts
    const auto many = expect_as_whole(mixture(64), Mesh({{"data", n}}), same);
    EXPECT_GT(count(few, "reduce_scatter"), count(many, "reduce_scatter"));
  }
}

}  // namespace
}  // namespace lc
