#include "lightcone/backends/cpu/thread_pool.h"

#include <sched.h>

#include <algorithm>

#include "lightcone/core/error.h"

namespace lc::host {
namespace {

// Some microseconds: the usual gap between two kernels of a program. With more threads than cores a spinning
// worker only keeps the core from one that has work, so there nobody spins.
constexpr int kSpins = 4000, kCallerSpins = 20000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) : crowded_(threads > available_cores()) {
  try {
    for (int w = 1; w < threads; ++w) threads_.emplace_back([this, w] { work(w); });
  } catch (const std::exception& e) {
    const std::size_t made = threads_.size();
    stop();
    throw Error("threads", cat("the system gave ", made, " threads beside the caller's, not ", threads - 1, " (",
                               e.what(), "): ask for fewer"));
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    const std::lock_guard hold(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void ThreadPool::take(int worker) {
  for (int t = next_.fetch_add(1); t < tasks_; t = next_.fetch_add(1)) task_(arg_, t, worker);
}

bool ThreadPool::join(std::uint64_t& seen) {
  std::uint64_t j = job_.load(std::memory_order_acquire);
  while ((j & kOpen) && j >> 32 != seen)
    if (job_.compare_exchange_weak(j, j + 1, std::memory_order_acq_rel)) {
      seen = j >> 32;
      return true;
    }
  seen = j >> 32;
  return false;
}

void ThreadPool::work(int worker) {
  std::uint64_t seen = 0;
  const int patience = crowded_ ? 0 : kSpins;
  const auto news = [&] { return job_.load(std::memory_order_acquire) >> 32 != seen || stop_; };
  for (;;) {
    for (int spins = 0; !news() && spins < patience; ++spins) pause();
    if (!news()) {
      std::unique_lock hold(lock_);
      ++sleeping_;
      wake_.wait(hold, news);
      --sleeping_;
    }
    if (stop_) return;
    if (!join(seen)) continue;
    take(worker);
    job_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::run(int tasks, void (*task)(void*, int, int), void* arg) {
  if (threads_.empty() || tasks <= 1) {
    for (int t = 0; t < tasks; ++t) task(arg, t, 0);
    return;
  }
  const std::lock_guard turn(caller_);
  tasks_ = tasks;
  task_ = task;
  arg_ = arg;
  next_.store(0, std::memory_order_relaxed);
  int asleep;
  {
    const std::lock_guard hold(lock_);
    job_.store(((job_.load(std::memory_order_relaxed) >> 32) + 1) << 32 | kOpen, std::memory_order_release);
    asleep = sleeping_;
  }
  if (asleep >= tasks) {  // fewer tasks than sleepers: the others may sleep on
    for (int t = 1; t < tasks; ++t) wake_.notify_one();
  } else if (asleep > 0) {
    wake_.notify_all();
  }
  take(0);
  job_.fetch_and(~kOpen, std::memory_order_acq_rel);
  for (int spins = 0; (job_.load(std::memory_order_acquire) & kJoined) != 0;) {
    if (!crowded_ && ++spins < kCallerSpins) pause();
    else std::this_thread::yield();
  }
}

int available_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

std::shared_ptr<Parallel> threads(int n) {
  if (n <= 0) n = available_cores();
  if (n == 1) return one_thread();
  return std::make_shared<ThreadPool>(n);
}

}  // namespace lc::host
