#include "lightcone/backends/cpu/threads/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "lightcone/backends/cpu/threads/work_stealing.h"
#include "lightcone/base/error.h"

namespace lc::backends::cpu {
namespace {

// Spin counts that cover the usual gap between two kernels of a program, some microseconds. With more threads than
// cores nobody spins, because a spinning worker only takes the core from one that has work.
constexpr int kSpins = 4000, kCallerSpins = 20000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How many forks lie between this process and the first pool. A counter is used because getpid() would be a system call
// in every run.
std::atomic<unsigned> forks{0};
void count_forks() {
  static const bool watched = [] {  // the next pool retries if this throws
    if (::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); }) != 0)
      throw Error("threads", "the system has no memory to watch for fork()");
    return true;
  }();
  static_cast<void>(watched);
}

}  // namespace

class ThreadPool::Team {
 public:
  // Starts workers - 1 threads. Throws Error if the system provides fewer.
  explicit Team(int workers);
  // Joins the threads. Must be called before destruction, in the process that created them.
  void stop();
  void run(int tasks, void (*task)(void*, int, int), void* arg);
  // Returns whether fork() separated this process from the team's threads.
  bool lost() const { return process_ != forks.load(std::memory_order_relaxed); }
  void abandon();

 private:
  void work(int worker);
  void take(int worker);

  // The job as one word: its number in the upper half, a bit that is set while workers may still join it, and the count
  // of workers that have joined. A late worker finds the job closed and is not waited for, so a worker that the system
  // has descheduled costs nothing.
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 31, kJoined = kOpen - 1;
  bool join(std::uint64_t& seen);

  const unsigned process_ = forks.load(std::memory_order_relaxed);
  std::mutex caller_, lock_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> job_{0};
  std::atomic<bool> stop_{false};
  const bool crowded_;  // more threads than cores
  // Neighbouring tasks go to one worker, and the same ones in every run: what a layer wrote is then mostly in the
  // caches of the core that reads it.
  StealingRanges tasks_;
  void (*task_)(void*, int, int) = nullptr;
  void* arg_ = nullptr;
  int sleeping_ = 0;
  std::vector<std::thread> threads_;
  Team* next_abandoned_ = nullptr;
};

ThreadPool::Team::Team(int workers) : crowded_(workers > available_cores()) {
  try {
    for (int w = 1; w < workers; ++w) threads_.emplace_back([this, w] { work(w); });
  } catch (const std::exception& e) {
    const std::size_t made = threads_.size();
    stop();
    throw Error("threads", str_cat("the system gave ", made, " threads beside the caller's, not ", workers - 1, " (",
                                   e.what(), "): ask for fewer"));
  }
}

void ThreadPool::Team::stop() {
  {
    const std::lock_guard hold(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

// The threads cannot be joined, and one of them may hold the locks, so the team is kept in a list, where leak checkers
// see it as reachable.
void ThreadPool::Team::abandon() {
  static std::atomic<Team*> all{nullptr};
  next_abandoned_ = all.load();
  while (!all.compare_exchange_weak(next_abandoned_, this)) {
  }
}

void ThreadPool::Team::take(int worker) {
  for (std::int64_t t; tasks_.take(worker, t);) task_(arg_, static_cast<int>(t), worker);
}

bool ThreadPool::Team::join(std::uint64_t& seen) {
  std::uint64_t j = job_.load(std::memory_order_acquire);
  while ((j & kOpen) && j >> 32 != seen)
    if (job_.compare_exchange_weak(j, j + 1, std::memory_order_acq_rel)) {
      seen = j >> 32;
      return true;
    }
  seen = j >> 32;
  return false;
}

void ThreadPool::Team::work(int worker) {
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

void ThreadPool::Team::run(int tasks, void (*task)(void*, int, int), void* arg) {
  if (threads_.empty() || tasks <= 1) {
    for (int t = 0; t < tasks; ++t) task(arg, t, 0);
    return;
  }
  const std::lock_guard turn(caller_);
  tasks_.share_out(tasks, 1, static_cast<int>(threads_.size()) + 1);
  task_ = task;
  arg_ = arg;
  int asleep;
  {
    const std::lock_guard hold(lock_);
    job_.store(((job_.load(std::memory_order_relaxed) >> 32) + 1) << 32 | kOpen, std::memory_order_release);
    asleep = sleeping_;
  }
  if (asleep >= tasks) {  // fewer tasks than sleeping workers: the others may sleep on
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

ThreadPool::ThreadPool(int threads) : workers_(std::max(threads, 1)) {
  count_forks();
  team_ = new Team(workers_);
}

ThreadPool::~ThreadPool() {
  Team* const t = team_;
  if (t->lost()) {
    t->abandon();
  } else {
    t->stop();
    delete t;
  }
}

ThreadPool::Team& ThreadPool::team() {
  Team* t = team_.load(std::memory_order_acquire);
  while (t->lost()) {
    std::unique_ptr<Team> fresh;
    try {
      fresh = std::make_unique<Team>(workers_);
    } catch (const Error&) {
      fresh = std::make_unique<Team>(1);
    }
    if (team_.compare_exchange_strong(t, fresh.get(), std::memory_order_acq_rel)) {
      t->abandon();
      return *fresh.release();
    }
    fresh->stop();  // another thread was faster
  }
  return *t;
}

void ThreadPool::run(int tasks, void (*task)(void*, int, int), void* arg) { team().run(tasks, task, arg); }

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

}  // namespace lc::backends::cpu
