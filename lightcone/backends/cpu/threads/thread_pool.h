// A fork-join thread pool. The calling thread works too, so a pool of one creates no thread. Idle workers sleep.
#pragma once

#include <atomic>
#include <memory>

#include "lightcone/device/parallel.h"

namespace lc::backends::cpu {

// Fork-join pool of `threads` workers, the caller included. It survives fork(): the child process creates new threads
// at its first run(), or works on the calling thread alone if the system provides none. Results are the same.
class ThreadPool final : public Parallel {
 public:
  // Throws Error if the system provides fewer threads.
  explicit ThreadPool(int threads);
  ~ThreadPool() override;
  int workers() const override { return workers_; }
  // Runs task(arg, k, worker) for all k in [0, tasks) and returns when all are done. Tasks must not throw. Concurrent
  // callers are serialized.
  void run(int tasks, void (*task)(void* arg, int task, int worker), void* arg) override;

 private:
  class Team;  // the threads of one process
  Team& team();
  const int workers_;
  std::atomic<Team*> team_{nullptr};
};

// Number of cores this process may use.
int available_cores();
// A pool of `n` workers. 0: one per available core; 1: the calling thread alone.
std::shared_ptr<Parallel> threads(int n);

}  // namespace lc::backends::cpu
