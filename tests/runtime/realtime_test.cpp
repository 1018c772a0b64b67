// A run on one thread allocates nothing, takes no lock and makes no system call, and idle threads sleep.
//
// malloc and the locks of pthreads are interposed (counted_calls.h); a seccomp filter in a child process counts system
// calls and needs no privileges.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include <gtest/gtest.h>

#include "counted_calls.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "paths.h"
#include "syscalls.h"

using namespace lc;
using test::allocations, test::locks;

namespace {

// A decoding Llama with states, matrix products and fused loops.
struct Decoder {
  Llama model;
  Context context;
  explicit Decoder(int threads)
      : model(Llama::load(std::string(paths::kSource) + "/models/story/story.gguf", {.threads = threads})),
        context(model.program()) {
    const std::vector<std::int64_t> prompt{1, 300, 301, 302}, one{303};
    context.bind("seq", 4).bind("past", 0).set("tokens", prompt).run();
    context.bind("seq", 1).bind("past", 4).set("tokens", one).run();
  }
  void run(int times) {
    for (int i = 0; i < times; ++i) context.bind("past", 5 + i).run();
  }
};

void expect_quiet(int times, Decoder& d) {
  d.run(1);
  const long allocated = allocations(), locked = locks();
  d.run(times);
  EXPECT_EQ(allocations() - allocated, 0);
  EXPECT_EQ(locks() - locked, 0);
}

}  // namespace

TEST(RealTime, TheCountersCount) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer has malloc already";
  const long allocated = allocations(), locked = locks();
  void* volatile p = std::malloc(100);
  std::free(p);
  delete new std::atomic<int>(0);
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&m);
  pthread_mutex_unlock(&m);
  EXPECT_GE(allocations() - allocated, 1);
  EXPECT_GE(locks() - locked, 1);
}

TEST(RealTime, OneThreadAllocatesNothingAndLocksNothing) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer has malloc already";
  Decoder d(1);
  expect_quiet(50, d);
}

TEST(RealTime, NorDoesItWhileItIsProfiled) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer has malloc already";
  Decoder d(1);
  d.context.profile(true);
  expect_quiet(50, d);
  EXPECT_EQ(d.context.profile().runs, 51);
}

TEST(RealTime, TwoThreadsAllocateNothing) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer has malloc already";
  Decoder d(2);
  d.run(1);
  const long before = allocations();
  d.run(50);
  EXPECT_EQ(allocations() - before, 0);
}

TEST(RealTime, OneThreadCallsTheSystemForNothing) {
  const SystemCalls found =
      count_system_calls([] { return std::make_unique<Decoder>(1); }, [](Decoder& d) { d.run(50); });
  if (!found.possible) GTEST_SKIP() << found.text;
  EXPECT_TRUE(found.caller.empty()) << found.text;
  EXPECT_TRUE(found.others.empty()) << found.text;
}

TEST(RealTime, TwoThreadsOnlyWakeAndSleep) {
  const SystemCalls found =
      count_system_calls([] { return std::make_unique<Decoder>(2); }, [](Decoder& d) { d.run(50); });
  if (!found.possible) GTEST_SKIP() << found.text;
  std::printf("two threads, 50 tokens: %s\n", found.text.c_str());
  for (const auto& calls : {found.caller, found.others})
    for (const auto& [number, times] : calls)
      EXPECT_TRUE(number == SYS_futex || number == SYS_sched_yield) << found.text;
}

TEST(RealTime, TheFilterSeesSystemCalls) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers make calls of their own";
  const SystemCalls found = count_system_calls([] { return std::make_unique<int>(0); }, [](int&) { ::getppid(); });
  if (!found.possible) GTEST_SKIP() << found.text;
  EXPECT_EQ(found.caller, (std::map<int, long>{{SYS_getppid, 1}})) << found.text;
}

TEST(RealTime, IdleThreadsUseNoProcessor) {
  Decoder d(2);
  d.run(10);
  const auto used = [] {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double before = used();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_LT(used() - before, 0.02);
}
