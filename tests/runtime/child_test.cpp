// After fork() the parent's programs run in the child, on threads of its own, and end there.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/base/error.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

// ThreadSanitizer ends a child that creates threads.
#if defined(__SANITIZE_THREAD__)
#define NEEDS_THREADS_IN_A_CHILD() GTEST_SKIP() << "ThreadSanitizer allows no threads in a child"
#else
#define NEEDS_THREADS_IN_A_CHILD()
#endif

namespace {

// Returns the exit status of a child that runs `work`, or nullopt if it does not end within twenty seconds.
std::optional<int> in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    try {
      status = work();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "in the child: %s\n", e.what());
    }
    ::_exit(status);
  }
  for (int waited = 0; waited < 2000; ++waited) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return std::nullopt;
}

int count_tasks(Parallel& p, int tasks) {
  std::atomic<int> done{0};
  p.run(
      tasks, [](void* arg, int, int) { ++*static_cast<std::atomic<int>*>(arg); }, &done);
  return done;
}

std::vector<float> ramp(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t k = 0; k < n; ++k) v[k] = static_cast<float>(k % 13) * 0.25f;
  return v;
}

}  // namespace

TEST(Child, MayEndAPool) {
  for (int threads : {1, 2, 4}) {
    auto pool = backends::cpu::threads(threads);
    count_tasks(*pool, 100);
    EXPECT_EQ(in_child([&] { return pool.reset(), 0; }), 0) << threads;
    EXPECT_EQ(count_tasks(*pool, 100), 100);  // the parent's pool is unaffected
  }
}

TEST(Child, RunsOnThreadsOfItsOwn) {
  NEEDS_THREADS_IN_A_CHILD();
  const auto pool = backends::cpu::threads(3);
  count_tasks(*pool, 100);
  for (int round = 0; round < 3; ++round)
    EXPECT_EQ(in_child([&] {
                for (int k = 0; k < 50; ++k)
                  if (count_tasks(*pool, 64) != 64) return 1;
                // a grandchild works, too
                const auto status = in_child([&] { return count_tasks(*pool, 64) == 64 ? 0 : 1; });
                return status == 0 ? 0 : 2;
              }),
              0);
  EXPECT_EQ(count_tasks(*pool, 100), 100);
}

// The fork may happen while other threads run and hold locks.
TEST(Child, MayBeMadeWhileOthersRun) {
  NEEDS_THREADS_IN_A_CHILD();
  const auto pool = backends::cpu::threads(3);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) count_tasks(*pool, 32);
  });
  for (int round = 0; round < 20; ++round)
    EXPECT_EQ(in_child([&] { return count_tasks(*pool, 64) == 64 ? 0 : 1; }), 0) << round;
  stop = true;
  busy.join();
}

TEST(Child, RunsAProgramOfItsParent) {
  NEEDS_THREADS_IN_A_CHILD();
  Graph g;
  const Tensor x = g.input("x", {64, 96}), w = g.input("w", {96, 80});
  g.output("y", softmax(matmul(x, w), 1));
  auto p = std::make_unique<Program>(compile(g, generic() | cpu({.threads = 2})));
  auto c = std::make_unique<Context>(*p);
  c->set("x", ramp(64 * 96)).set("w", ramp(96 * 80)).run();
  const std::vector<float> want = c->get("y");
  EXPECT_EQ(in_child([&] {
              c->run();
              if (c->get("y") != want) return 1;
              Context other(*p);
              other.set("x", ramp(64 * 96)).set("w", ramp(96 * 80)).run();
              if (other.get("y") != want) return 2;
              c.reset(), p.reset();
              return 0;
            }),
            0);
  EXPECT_EQ(c->run().get("y"), want);
}

// Two threads of the child discover the old pool at the same time.
TEST(Child, MayHaveThreadsItself) {
  NEEDS_THREADS_IN_A_CHILD();
  const auto pool = backends::cpu::threads(2);
  count_tasks(*pool, 10);
  EXPECT_EQ(in_child([&] {
              std::atomic<int> done{0};
              std::vector<std::thread> callers;
              for (int k = 0; k < 4; ++k) callers.emplace_back([&] { done += count_tasks(*pool, 50); });
              for (std::thread& t : callers) t.join();
              return done == 200 ? 0 : 1;
            }),
            0);
}
