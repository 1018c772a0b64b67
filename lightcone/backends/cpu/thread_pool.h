// A fork-join pool. The caller works too, so a pool of one makes no thread; idle workers sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "lightcone/runtime/kernel.h"

namespace lc::host {

class ThreadPool final : public Parallel {
 public:
  explicit ThreadPool(int threads);  // Error when the system gives fewer
  ~ThreadPool() override;
  int workers() const override { return static_cast<int>(threads_.size()) + 1; }
  // Tasks must not throw. Callers from several threads take turns.
  void run(int tasks, void (*task)(void* arg, int task, int worker), void* arg) override;

 private:
  void stop();
  void work(int worker);
  void take(int worker);

  // The job in one word: its number in the upper half, whether it may still be joined, and how many
  // workers have. A worker that comes late finds the job closed and is not waited for, so a worker
  // the system has put aside costs nothing.
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 31, kJoined = kOpen - 1;
  bool join(std::uint64_t& seen);

  std::mutex caller_, lock_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> job_{0};
  std::atomic<int> next_{0};
  std::atomic<bool> stop_{false};
  const bool crowded_;  // more threads than cores
  int tasks_ = 0;
  void (*task_)(void*, int, int) = nullptr;
  void* arg_ = nullptr;
  int sleeping_ = 0;
  std::vector<std::thread> threads_;
};

int available_cores();                     // that this process may use
std::shared_ptr<Parallel> threads(int n);  // 0: all cores; 1: the calling thread alone

}  // namespace lc::host
