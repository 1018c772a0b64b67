// One program runs in many threads at once with exact memory plans, and a run allocates nothing.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "counted_calls.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/backends/cpu/threads/work_stealing.h"
#include "lightcone/base/error.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "paths.h"

using namespace lc;
using test::allocations;

namespace {
std::string story() { return std::string(paths::kSource) + "/models/story/story.gguf"; }
}  // namespace

TEST(Runtime, RunAllocatesNothing) {
  const Llama m = Llama::load(story(), {.threads = 2});
  Context c(m.program());
  const std::vector<std::int64_t> prompt{1, 300, 301, 302}, one{303};
  c.bind("seq", 4).bind("past", 0).set("tokens", prompt).run();
  c.bind("seq", 1).bind("past", 4).set("tokens", one).run();
  c.bind("past", 5);
  c.set("tokens", one).run();  // computes the sizes for this binding
  const long before = allocations();
  for (int i = 0; i < 20; ++i) c.run();
  EXPECT_EQ(allocations() - before, 0);
  for (int past = 6; past < 20; ++past) c.bind("past", past).run();  // for every other position, too
  EXPECT_EQ(allocations() - before, 0);
}

TEST(Runtime, FeedingATokenAllocatesNothing) {
  for (int threads : {1, 2}) {
    const Llama m = Llama::load(story(), {.threads = threads});
    LlamaSession s(m);
    s.feed(std::vector<int>{1, 300, 301, 302});
    s.feed(303);
    const long before = allocations();
    for (int i = 0; i < 100; ++i) s.feed(304 + i);
    EXPECT_EQ(allocations() - before, 0);
  }
}

// Larger sizes than before commit pages of reserved addresses.
TEST(Runtime, LargerSizesAllocateNothing) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 4096);
  const Tensor x = g.input("x", {1 << 14}), y = exp(x.unsqueeze(0).expand({n, 1 << 14}) * 0.5);
  g.output("y", y);
  g.output("sum", sum(y, {1}));
  const Program p = compile(g, generic() | cpu({.threads = 1}));
  ASSERT_GT(p.plan().arena_bytes, std::size_t{100} << 20);
  Context c(p);
  c.set("x", std::vector<float>(1 << 14, 0.5f)).bind("n", 1).run();
  const long before = allocations();
  for (int k = 2; k < 200; k += 7) c.bind("n", k).run();
  EXPECT_EQ(allocations() - before, 0);
  EXPECT_NEAR(c.get("sum")[190], (1 << 14) * std::exp(0.25), 1);
}

TEST(Runtime, SharedForksAllocateNothing) {
  Graph g;
  for (int k = 0; k < 8; ++k) g.output(str_cat("y", k), exp(g.input(str_cat("x", k), {20000})));
  const Program p = compile(g, generic() | cpu({.threads = 2}));
  const auto& fork = p.plan().fork;
  bool shared = false;
  for (NodeId id = 0; id < fork.size(); ++id) shared = shared || fork[id] != id;
  EXPECT_TRUE(shared);
  Context c(p);
  for (int k = 0; k < 8; ++k) c.set(str_cat("x", k), std::vector<float>(20000, 0.25f));
  c.run();
  const long before = allocations();
  for (int i = 0; i < 20; ++i) c.run();
  EXPECT_EQ(allocations() - before, 0);
  EXPECT_NEAR(c.get("y7")[19999], std::exp(0.25f), 1e-6);
}

TEST(Runtime, ManyContextsOfOneProgram) {
  const Llama m = Llama::load(story(), {.threads = 2});
  std::vector<std::vector<float>> results(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < results.size(); ++t)
      threads.emplace_back([&, t] {
        LlamaSession s(m);  // all sessions share the program's two workers
        for (int id : {1, 300, 310, 320, 330}) {
          const auto logits = s.feed(id);
          results[t].assign(logits.begin(), logits.end());
        }
      });
  }
  for (const auto& r : results) EXPECT_EQ(r, results[0]);
}

TEST(Runtime, ContextsMayBringTheirOwnThreads) {
  const Llama m = Llama::load(story(), {.threads = 1});
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2, 3}) {
    Context c(m.program(), backends::cpu::threads(threads));
    const std::vector<std::int64_t> prompt(40, 301);
    c.bind("seq", 40).bind("past", 0).set("tokens", prompt).run();
    results.push_back(c.get("logits"));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Runtime, HandlesSurviveMovesAndEveryCompile) {
  Graph first;
  const Tensor x = first.input("x", {3});
  const Tensor y = (x * 2.0).retrieve("y");
  const Program early = compile(first, generic());
  Graph moved = std::move(first);
  const Tensor z = (y + x).retrieve("z");
  for (int i = 0; i < 3; ++i) {
    const Program p = compile(moved, repeat(generic()) | cpu({.threads = 1}));
    Context c(p);
    c.set(x, {1, 2, 3}).run();
    EXPECT_EQ(c.get(y), (std::vector<float>{2, 4, 6}));
    EXPECT_EQ(c.get(z), (std::vector<float>{3, 6, 9}));
  }
  Context c(early);
  c.set(x, {1, 2, 3}).run();
  EXPECT_EQ(c.get(y), (std::vector<float>{2, 4, 6}));
  EXPECT_THROW(c.get(z), Error);
}

TEST(Runtime, ThePlanIsExactAndReusesMemory) {
  const auto plan = [](int layers) {
    Graph g;
    Tensor t = g.input("x", {1000, 10});
    for (int i = 0; i < layers; ++i) t = matmul(relu(t), g.input(str_cat("w", i), {10, 10}));
    g.output("y", t);
    return compile(g, generic() | cpu({.threads = 1})).plan();
  };
  const MemoryPlan three = plan(3), ten = plan(10);
  EXPECT_EQ(ten.input_bytes, 40000u + 10 * 400u);
  EXPECT_EQ(ten.state_bytes, 0u);
  // values of 40 kB, of which at most two live at once, and the scratch of one product, however many layers there are
  EXPECT_GE(ten.arena_bytes, 80000u);
  EXPECT_LE(ten.arena_bytes, 300000u);
  EXPECT_EQ(ten.arena_bytes, three.arena_bytes);
}

// Far more threads than cores take turns, and no task is lost.
TEST(Threads, ManyMoreThanCores) {
  const auto pool = backends::cpu::threads(backends::cpu::available_cores() * 16);
  for (int tasks : {2, 7, 1000})
    for (int i = 0; i < 50; ++i) {
      std::vector<std::atomic<int>> hits(static_cast<std::size_t>(tasks));
      pool->run(
          tasks,
          [](void* arg, int task, int) {
            ++(*static_cast<std::vector<std::atomic<int>>*>(arg))[static_cast<std::size_t>(task)];
          },
          &hits);
      for (const auto& h : hits) ASSERT_EQ(h, 1);
    }
}

// All items are taken exactly once, and each worker begins with its own share.
TEST(StealingRanges, AreTakenOnce) {
  for (const std::int64_t count : {1, 2, 3, 5, 16, 33, 704, 2000})
    for (const std::int64_t least : {1, 2, 17, 5000})
      for (const int workers : {1, 2, 3, 100}) {
        struct Job {
          backends::cpu::StealingRanges shares;
          std::vector<std::atomic<int>> hits;
        } job{{count, least, workers}, std::vector<std::atomic<int>>(static_cast<std::size_t>(count))};
        const int parts = job.shares.parts();
        ASSERT_TRUE(parts >= 1 && parts <= std::min<std::int64_t>(workers, count));
        std::int64_t first = 0, last = 0;
        ASSERT_TRUE(job.shares.take(parts - 1, first, last));
        ASSERT_EQ(first, count * (parts - 1) / parts);
        for (std::int64_t i = first; i < last; ++i) ++job.hits[static_cast<std::size_t>(i)];
        backends::cpu::threads(4)->run(
            4,
            [](void* arg, int, int worker) {
              Job& j = *static_cast<Job*>(arg);
              for (std::int64_t begin = 0, end = 0; j.shares.take(worker, begin, end);)
                for (std::int64_t i = begin; i < end; ++i) ++j.hits[static_cast<std::size_t>(i)];
            },
            &job);
        for (const auto& h : job.hits) ASSERT_EQ(h, 1) << count << " " << least << " " << workers;
      }
}

// Single items come from the front of a worker's own share, then from the ends of the others'.
TEST(StealingRanges, OneByOne) {
  backends::cpu::StealingRanges shares;
  for (int round = 0; round < 2; ++round) {
    shares.share_out(7, 1, 2);  // 0 to 2, and 3 to 6
    std::vector<std::int64_t> taken;
    for (std::int64_t item = 0; shares.take(1, item);) taken.push_back(item);
    EXPECT_EQ(taken, (std::vector<std::int64_t>{3, 4, 5, 6, 2, 1, 0}));
  }
}

// Two workers often steal from each other at the same time.
TEST(StealingRanges, AreTakenOnceInARace) {
  struct Job {
    backends::cpu::StealingRanges shares;
    std::atomic<std::int64_t> taken{0};
  };
  const auto pool = backends::cpu::threads(2);
  for (int round = 0; round < 100000; ++round) {
    Job job{{1000, 1, 2}};
    pool->run(
        2,
        [](void* arg, int, int worker) {
          Job& j = *static_cast<Job*>(arg);
          for (std::int64_t first = 0, last = 0; j.shares.take(worker, first, last);) {
            j.taken += last - first;
            if (std::int64_t one = 0; j.shares.take(worker, one)) ++j.taken;
          }
        },
        &job);
    ASSERT_EQ(job.taken, 1000);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers end the process themselves
TEST(Threads, ThatCannotBeMadeAreAnError) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit old;
  getrlimit(RLIMIT_AS, &old);
  const rlimit tight{pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (100u << 20), old.rlim_max};
  setrlimit(RLIMIT_AS, &tight);
  std::string said;
  try {
    backends::cpu::threads(1000);
  } catch (const Error& e) {
    said = e.what();
  }
  setrlimit(RLIMIT_AS, &old);
  EXPECT_NE(said.find("not 999"), std::string::npos) << said;
}
#endif

TEST(Threads, OneMakesNoThread) {
  EXPECT_EQ(backends::cpu::threads(1)->workers(), 1);
  const auto pool = backends::cpu::threads(3);
  EXPECT_EQ(pool->workers(), 3);
  std::vector<std::atomic<int>> hits(1000);
  pool->run(
      1000,
      [](void* arg, int task, int) {
        ++(*static_cast<std::vector<std::atomic<int>>*>(arg))[static_cast<std::size_t>(task)];
      },
      &hits);
  for (const auto& h : hits) EXPECT_EQ(h, 1);
}
