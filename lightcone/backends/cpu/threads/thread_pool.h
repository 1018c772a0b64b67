// A fork-join pool. The caller works too, so a pool of one makes no thread; idle workers sleep.
#pragma once

#include <atomic>
#include <memory>

#include "lightcone/device/parallel.h"

namespace lc::backends::cpu {

// After fork() the child has none of the threads: at its first run() there the pool makes new ones, or works on the
// caller's alone when the system gives none. The numbers are the same.
class ThreadPool final : public Parallel {
 public:
  explicit ThreadPool(int threads);  // Error when the system gives fewer
  ~ThreadPool() override;
  int workers() const override { return workers_; }
  // Tasks must not throw. Callers from several threads take turns.
  void run(int tasks, void (*task)(void* arg, int task, int worker), void* arg) override;

 private:
  class Team;  // the threads of one process
  Team& team();
  const int workers_;
  std::atomic<Team*> team_{nullptr};
};

int available_cores();                     // that this process may use
std::shared_ptr<Parallel> threads(int n);  // 0: all cores; 1: the calling thread alone

}  // namespace lc::backends::cpu
