// Small independent kernels that share a fork run each iteration once and give the bits of one kernel after the other.
#include "lightcone/device/fork.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/device/divided.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "random_inputs.h"

using namespace lc;
using lc::test::normals;

namespace {

// Counts how often each iteration is run, and where ranges begin.
class Counting final : public HostKernel {
 public:
  explicit Counting(Iterations i) : all(i), times(static_cast<std::size_t>(i.count)) {}
  std::string name() const override { return "counting"; }
  void run(const HostLaunch&) const override {}
  bool divisible() const override { return true; }
  void run_iterations(const HostLaunch&, std::int64_t begin, std::int64_t end) const override {
    EXPECT_LT(begin, end);
    EXPECT_EQ(begin % all.multiple, 0);
    EXPECT_TRUE(end % all.multiple == 0 || end == all.count);
    for (std::int64_t i = begin; i < end; ++i) ++times[static_cast<std::size_t>(i)];
  }
  Iterations all;
  mutable std::vector<std::atomic<int>> times;
};

// Adam's step for many parameters (Kingma & Ba 2015, without bias correction).
constexpr std::int64_t kSize = 3000;
Graph adam(int parameters) {
  Graph g;
  for (int k = 0; k < parameters; ++k) {
    const auto state = [&](const char* name) { return g.input(str_cat(name, k), {kSize}); };
    const Tensor p = state("p"), m = state("m"), v = state("v"), grad = g.input(str_cat("g", k), {kSize});
    const Tensor m1 = 0.9 * m + 0.1 * grad, v1 = 0.99 * v + 0.01 * (grad * grad);
    g.assign(m, m1);
    g.assign(v, v1);
    g.assign(p, p - 0.01 * m1 / (sqrt(v1) + 1e-6));
  }
  return g;
}

std::size_t forks(const Program& p) {  // counts forks with more than one kernel
  std::set<NodeId> last;
  for (NodeId id = 0; id < p.graph().size(); ++id)
    if (p.plan().fork[id] != id) last.insert(p.plan().fork[id]);
  return last.size();
}

// Checks that no kernel of a fork reads or writes memory that another one writes.
void nothing_is_shared(const Program& p) {
  const Graph& g = p.graph();
  const MemoryPlan& plan = p.plan();
  const auto overlap = [&](NodeId a, NodeId b) {
    const Placement &x = plan.nodes[a], &y = plan.nodes[b];
    if (x.where != y.where) return false;
    return x.where == Placement::Where::Input ? x.input == y.input
                                              : x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
  };
  const auto live = g.live();
  for (NodeId a = 0; a < g.size(); ++a)
    for (NodeId b = 0; b < g.size(); ++b) {
      if (a == b || !live[a] || !live[b] || g[a].op == Op::Input || plan.fork[a] != plan.fork[b]) continue;
      EXPECT_FALSE(overlap(a, b)) << a << " " << b;
      for (const Edge& e : g[b].in) EXPECT_FALSE(overlap(a, e.node)) << a << " writes what " << b << " reads";
    }
}

}  // namespace

TEST(Fork, EachIterationIsRunOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const auto workers = std::uniform_int_distribution<>(1, 4)(random);
    const auto parallel = backends::cpu::threads(workers);
    std::vector<std::unique_ptr<Counting>> kernels;
    std::vector<Divided> divided;
    const int n = std::uniform_int_distribution<>(1, static_cast<int>(kMostTogether))(random);
    for (int k = 0; k < n; ++k) {
      const Iterations i{std::uniform_int_distribution<>(0, 1 << (round % 12))(random), k % 3 ? 1 : 64,
                         std::exp2(std::uniform_real_distribution<>(0, 16)(random))};
      kernels.push_back(std::make_unique<Counting>(i));
      divided.push_back({kernels.back().get(), {{}, nullptr, {}, nullptr, *parallel}, i});
    }
    run_divided(divided, *parallel);
    for (const auto& k : kernels)
      EXPECT_TRUE(std::all_of(k->times.begin(), k->times.end(), [](const auto& t) { return t == 1; })) << round;
  }
}

TEST(Fork, AnOptimisersStepIsTwoForksAndInPlace) {
  constexpr int kParameters = 12;
  const Graph g = adam(kParameters);
  std::vector<std::vector<float>> want;
  for (const int threads : {1, 2, 3}) {
    const Program p = compile(g, generic() | cpu({.threads = threads}));
    EXPECT_EQ(p.kernels(), 3u * kParameters);
    EXPECT_EQ(forks(p), threads == 1 ? 0u : 2u);
    EXPECT_TRUE(p.plan().copies.empty());
    EXPECT_EQ(p.plan().arena_bytes, 0u);
    nothing_is_shared(p);
    Context c(p);
    for (int k = 0; k < kParameters; ++k) {
      c.set(str_cat("p", k), normals(kSize, static_cast<unsigned>(k)));
      c.set(str_cat("g", k), normals(kSize, static_cast<unsigned>(100 + k)));
      for (const char* zero : {"m", "v"}) c.set(str_cat(zero, k), std::vector<float>(kSize));
    }
    for (int step = 0; step < 3; ++step) c.run();
    for (int k = 0; k < kParameters; ++k) {
      const auto have = c.get(str_cat("p", k));
      if (threads == 1) want.push_back(have);
      EXPECT_EQ(std::memcmp(have.data(), want[static_cast<std::size_t>(k)].data(), kSize * 4), 0) << k;
      EXPECT_NE(have, normals(kSize, static_cast<unsigned>(k)));
      EXPECT_TRUE(std::all_of(have.begin(), have.end(), [](float v) { return std::isfinite(v); })) << k;
    }
  }
}

// No reader of a state runs concurrently with the kernel that overwrites it.
TEST(Fork, AStateIsReadBeforeItIsOverwritten) {
  Graph g;
  const Tensor s = g.input("s", {kSize}), x = g.input("x", {kSize});
  g.output("before", exp(s) + x);
  g.output("other", sqrt(abs(x)));
  g.assign(s, s * 0.5 + x);
  g.output("after", sin(s));
  const Program p = compile(g, generic() | cpu({.threads = 2}));
  EXPECT_TRUE(p.plan().copies.empty());
  EXPECT_EQ(forks(p), 1u);
  nothing_is_shared(p);
  Context c(p);
  const auto x0 = normals(kSize, 1);
  auto s0 = normals(kSize, 2);
  c.set("x", x0).set("s", s0);
  for (int step = 0; step < 4; ++step) {
    c.run();
    const auto before = c.get("before"), after = c.get("after"), now = c.get("s");
    for (std::size_t i = 0; i < s0.size(); ++i) {
      EXPECT_NEAR(before[i], std::exp(s0[i]) + x0[i], 1e-5 * std::exp(std::abs(s0[i])) + 1e-5);
      EXPECT_NEAR(after[i], std::sin(s0[i]), 1e-5);
      EXPECT_NEAR(now[i], s0[i] * 0.5f + x0[i], 1e-6 * (1 + std::abs(now[i])));
    }
    s0 = now;
  }
}

// Values that die in a fork keep their memory until the fork is done, and the arena stays small.
TEST(Fork, ValuesLiveUntilTheForkIsDone) {
  const auto build = [](int chains) {
    Graph g;
    for (int k = 0; k < chains; ++k) {
      Tensor t = g.input(str_cat("x", k), {kSize});
      for (int depth = 0; depth < 3; ++depth) t = cumsum(exp(t * 0.01), 0) * 1e-4;  // one kernel each
      g.output(str_cat("y", k), t);
    }
    return g;
  };
  const Graph g = build(20);
  std::vector<std::vector<float>> want;
  std::size_t arena = 0;
  for (const int threads : {1, 2, 4}) {
    const Program p = compile(g, generic() | cpu({.threads = threads}));
    if (threads == 1) arena = p.plan().arena_bytes;
    EXPECT_LE(p.plan().arena_bytes, arena + (2 << 20));
    nothing_is_shared(p);
    Context c(p);
    for (int k = 0; k < 20; ++k) c.set(str_cat("x", k), normals(kSize, static_cast<unsigned>(k)));
    c.run();
    for (int k = 0; k < 20; ++k) {
      const auto have = c.get(str_cat("y", k));
      if (threads == 1) want.push_back(have);
      EXPECT_EQ(std::memcmp(have.data(), want[static_cast<std::size_t>(k)].data(), kSize * 4), 0) << k;
      EXPECT_TRUE(std::all_of(have.begin(), have.end(), [](float v) { return v > 0 && std::isfinite(v); })) << k;
    }
  }
}

// The last reader of a value may reuse its memory, but not while another kernel reads it.
TEST(Fork, NobodyWritesOverWhatAnotherReads) {
  Graph g;
  const Tensor t = cumsum(g.input("x", {kSize}), 0);
  Tensor a = exp(t), b = sin(t);
  for (const Tensor& other : {a, b}) g.output(str_cat("y", other.edge().node), cumsum(other, 0));
  for (const int threads : {1, 2}) {
    const Program p = compile(g, generic() | cpu({.threads = threads}));
    EXPECT_EQ(forks(p) > 0, threads > 1);
    nothing_is_shared(p);
  }
}
