// Running a compiled program allocates nothing, takes no lock and calls the system for nothing; idle
// threads sleep. malloc and the locks of pthreads are interposed; system calls are counted by a seccomp
// filter in a child process, which needs no privileges.
#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "syscalls.h"

using namespace lc;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIGHTCONE_SANITIZED 1
#else
#define LIGHTCONE_SANITIZED 0
#endif

namespace {

std::atomic<long> allocations{0}, locks{0};

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#if !LIGHTCONE_SANITIZED
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t n) { return ++allocations, __libc_malloc(n); }
void* calloc(std::size_t n, std::size_t size) { return ++allocations, __libc_calloc(n, size); }
void* realloc(void* p, std::size_t n) { return ++allocations, __libc_realloc(p, n); }
void* aligned_alloc(std::size_t align, std::size_t n) { return ++allocations, __libc_memalign(align, n); }
int posix_memalign(void** p, std::size_t align, std::size_t n) {
  ++allocations;
  *p = __libc_memalign(align, n);
  return *p ? 0 : ENOMEM;
}
int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
  static const auto real = next<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  ++locks;
  return real(m);
}
int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
  static const auto real = next<int (*)(pthread_mutex_t*)>("pthread_mutex_trylock");
  ++locks;
  return real(m);
}
}
#endif

namespace {

// A little of everything: a decoding Llama with states, matrix products and fused loops.
struct Decoder {
  Llama model;
  Context context;
  explicit Decoder(int threads)
      : model(Llama::load(std::string(LIGHTCONE_SOURCE) + "/models/story/story.gguf", {.threads = threads})),
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
  const long allocated = allocations, locked = locks;
  d.run(times);
  EXPECT_EQ(allocations - allocated, 0);
  EXPECT_EQ(locks - locked, 0);
}

}  // namespace

TEST(RealTime, TheCountersCount) {
  if (LIGHTCONE_SANITIZED) GTEST_SKIP() << "a sanitizer has malloc already";
  const long allocated = allocations, locked = locks;
  void* volatile p = std::malloc(100);
  std::free(p);
  delete new std::atomic<int>(0);
  pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&m);
  pthread_mutex_unlock(&m);
  EXPECT_GE(allocations - allocated, 1);
  EXPECT_GE(locks - locked, 1);
}

TEST(RealTime, OneThreadAllocatesNothingAndLocksNothing) {
  if (LIGHTCONE_SANITIZED) GTEST_SKIP() << "a sanitizer has malloc already";
  Decoder d(1);
  expect_quiet(50, d);
}

TEST(RealTime, NorDoesItWhileItIsProfiled) {
  if (LIGHTCONE_SANITIZED) GTEST_SKIP() << "a sanitizer has malloc already";
  Decoder d(1);
  d.context.profile(true);
  expect_quiet(50, d);
  EXPECT_EQ(d.context.profile().runs, 51);
}

TEST(RealTime, TwoThreadsAllocateNothing) {
  if (LIGHTCONE_SANITIZED) GTEST_SKIP() << "a sanitizer has malloc already";
  Decoder d(2);
  d.run(1);
  const long before = allocations;
  d.run(50);
  EXPECT_EQ(allocations - before, 0);
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
  if (LIGHTCONE_SANITIZED) GTEST_SKIP() << "sanitizers make calls of their own";
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
