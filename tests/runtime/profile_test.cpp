// Profiles report the right bytes, operations and lines, traces load, and no two values of the memory timeline overlap.
#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/target/limits.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/composites/composites.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/profile/timeline.h"
#include "lightcone/runtime/program.h"
#include "paths.h"

using namespace lc;

namespace {

Profile profiled(const Program& p, int runs, const std::function<void(Context&)>& ready) {
  Context c(p);
  c.profile(true);
  ready(c);
  for (int i = 0; i < runs; ++i) c.run();
  return c.profile();
}

const KernelProfile& only(const Profile& p, std::string_view name) {
  const KernelProfile* found = nullptr;
  for (const KernelProfile& k : p.kernels)
    if (k.name.starts_with(name)) {
      EXPECT_EQ(found, nullptr) << "two kernels " << name;
      found = &k;
    }
  if (!found) throw Error("test", str_cat("no kernel ", name));
  return *found;
}

Llama story(int threads) {
  return Llama::load(std::string(paths::kSource) + "/models/story/story.gguf", {.threads = threads});
}

}  // namespace

TEST(Profile, AMatrixProductInNumbers) {
  Graph g;
  g.output("y", matmul(g.input("a", {64, 16}), g.input("b", {16, 32})));
  const Program p = compile(g, generic() | cpu({.threads = 2}));
  const Profile found =
      profiled(p, 3, [](Context& c) { c.set("a", std::vector<float>(64 * 16)).set("b", std::vector<float>(16 * 32)); });
  EXPECT_EQ(found.runs, 3);
  const KernelProfile& k = only(found, "matmul_f32");
  EXPECT_EQ(k.calls, 3);
  EXPECT_EQ(k.flops, 3 * 2.0 * 64 * 32 * 16);
  EXPECT_EQ(k.bytes_read, 3 * 4.0 * (64 * 16 + 16 * 32));
  EXPECT_EQ(k.bytes_written, 3 * 4.0 * 64 * 32);
  EXPECT_EQ(k.what, "matmul (mul, sum)");
  EXPECT_EQ(k.shape, "f32[64, 32]");
  EXPECT_EQ(k.pass, "cpu: matmul");
  EXPECT_TRUE(k.where.starts_with("profile_test.cpp:")) << k.where;
  EXPECT_GT(k.seconds, 0);
  EXPECT_LE(k.seconds, found.seconds);
}

TEST(Profile, AFusedKernelNamesWhatItFused) {
  Graph g;
  const auto line = str_cat("profile_test.cpp:", __LINE__ + 1);
  g.output("y", softmax(g.input("x", {128, 256}), -1));
  const Program p = compile(g, generic() | cpu({.threads = 1}));
  const Profile found = profiled(p, 2, [](Context& c) { c.set("x", std::vector<float>(128 * 256)); });
  const KernelProfile& k = only(found, "k_");
  EXPECT_TRUE(k.what.starts_with("softmax (")) << k.what;
  for (const char* op : {"max", "exp2", "sum"}) EXPECT_NE(k.what.find(op), std::string::npos) << k.what;
  EXPECT_EQ(k.where, line);
  EXPECT_EQ(k.pass, "cpu: loop");
  EXPECT_EQ(k.bytes_read, 2 * 4.0 * 128 * 256);  // three passes over a row, but one transfer from memory
  EXPECT_EQ(k.bytes_written, 2 * 4.0 * 128 * 256);
  EXPECT_GE(k.flops, 2 * 5.0 * 128 * 256);
  EXPECT_NE(p.source(k.name).find("lc_exp2"), std::string::npos);
  EXPECT_EQ(p.source("no such kernel"), "");
}

TEST(Profile, OnlyWhatIsTouchedCounts) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 64);
  const Tensor cache = g.input("cache", {1000, 8}), x = g.input("x", {n, 8});
  g.assign(cache, prim::slice_scatter(cache, x * 2.0, 0, Dim(0)));
  const Tensor table = g.input("table", {5000, 8}), ids = g.input("ids", {4}, DType::I64);
  g.output("rows", embedding(ids, table));
  const Program p = compile(g, generic() | cpu({.threads = 1}));
  Context c(p);
  c.set("table", std::vector<float>(5000 * 8)).set("ids", std::vector<std::int64_t>{1, 2, 3, 4});
  c.profile(true);
  for (int rows : {3, 5}) c.bind("n", rows).set("x", std::vector<float>(static_cast<std::size_t>(rows) * 8)).run();
  double written = 0, read = 0;
  const Profile found = c.profile();
  for (const KernelProfile& k : found.kernels)
    (k.what.find("slice_scatter") != std::string::npos ? written : read) +=
        k.what.find("slice_scatter") != std::string::npos ? k.bytes_written : k.bytes_read;
  EXPECT_EQ(written, 4.0 * 8 * (3 + 5));               // not the cache of 32 kB
  EXPECT_LE(read, 2 * (4.0 * 8 * 4 * 2 + 8 * 4 * 8));  // not the table of 160 kB
  EXPECT_GE(read, 2 * (4.0 * 8 * 4 + 8 * 4));
}

TEST(Profile, TracesAndTablesOfAModel) {
  const Llama m = story(2);
  const Profile found = profiled(m.program(), 4, [](Context& c) {
    const std::vector<std::int64_t> prompt(40, 301);
    c.bind("seq", 40).bind("past", 0).set("tokens", prompt);
  });
  const MachineLimits limits{20e9, 100e9};
  for (const KernelProfile& k : found.kernels) {
    EXPECT_FALSE(k.what.empty()) << k.name;
    EXPECT_FALSE(k.where.empty()) << k.name << ": " << k.what;
    EXPECT_EQ(k.calls, 4);
  }
  const auto trace = nlohmann::json::parse(found.trace());
  std::map<int, double> until;  // events of a row do not overlap
  std::size_t whole = 0, parts = 0;
  for (const auto& e : trace["traceEvents"]) {
    if (e["ph"] != "X") continue;
    const int row = e["tid"];
    (row == 0 ? whole : parts) += 1;
    EXPECT_GE(e["ts"].get<double>() + 0.002, until[row]);
    until[row] = e["ts"].get<double>() + e["dur"].get<double>();
  }
  EXPECT_EQ(whole, 4 * found.kernels.size());
  EXPECT_GT(parts, whole / 2);
  const auto json = nlohmann::json::parse(found.json(limits));
  EXPECT_EQ(json["kernels"].size(), found.kernels.size());
  const std::string table = found.table(limits), all = found.table(limits, false);
  EXPECT_NE(table.find("matmul_"), std::string::npos);
  EXPECT_NE(table.find("llama_graph.cpp:"), std::string::npos);
  EXPECT_LT(std::count(table.begin(), table.end(), '\n'), std::count(all.begin(), all.end(), '\n'));
}

TEST(Profile, AskingWithoutMeasuringIsAnError) {
  Graph g;
  g.output("y", g.input("x", {3}) + 1.0);
  const Program p = compile(g, generic() | cpu({.threads = 1}));
  Context c(p);
  EXPECT_THROW(c.profile(), Error);
}

TEST(Profile, TheInterpreterIsMeasuredToo) {
  Graph g;
  g.output("y", g.input("x", {3}) + 1.0);
  const Program p = compile(g, generic());
  const Profile found = profiled(p, 2, [](Context& c) { c.set("x", std::vector<float>(3)); });
  ASSERT_FALSE(found.kernels.empty());
  EXPECT_EQ(found.kernels.back().pass, "interpreter");
}

TEST(Limits, AreMeasured) {
  const auto pool = backends::cpu::threads(1);
  EXPECT_GT(backends::cpu::fma_rate(*pool, 0.02), 1e9);
  EXPECT_LT(backends::cpu::fma_rate(*pool, 0.02), 1e13);
}

TEST(Timeline, NoTwoValuesOverlapAndThePeakIsThePlan) {
  const Llama m = story(2);
  const MemoryPlan& plan = m.program().plan();
  const MemoryTimeline t = memory_timeline(m.program().graph(), plan);
  ASSERT_EQ(t.in_use.size(), t.steps.size());
  std::size_t end = 0;
  for (std::size_t a = 0; a < t.spans.size(); ++a) {
    const MemorySpan& x = t.spans[a];
    EXPECT_LE(x.first, x.last);
    end = std::max(end, x.offset + x.bytes);
    for (std::size_t b = a + 1; b < t.spans.size(); ++b) {
      const MemorySpan& y = t.spans[b];
      const bool in_time = x.first <= y.last && y.first <= x.last;
      const bool in_place = x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
      EXPECT_FALSE(in_time && in_place) << x.node << " and " << y.node;
    }
  }
  EXPECT_LE(end, plan.arena_bytes);
  EXPECT_GT(end + 64, plan.arena_bytes);
  EXPECT_LE(t.in_use[t.peak()], plan.arena_bytes);
  EXPECT_GT(t.in_use[t.peak()], plan.arena_bytes / 2);
  EXPECT_NE(t.text().find("most in use"), std::string::npos);
  EXPECT_EQ(t.html("story").find("href="), std::string::npos);
  EXPECT_NE(t.html("story").find("<svg"), std::string::npos);
}
