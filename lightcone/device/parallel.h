// Parallel: the threads that run the tasks of one kernel.
#pragma once

#include <memory>

namespace lc {

// Distributes the tasks of one kernel over threads. Results must not depend on which worker runs a task, nor on the
// number of workers: this gives the same bits for any number of threads.
class Parallel {
 public:
  virtual ~Parallel() = default;
  virtual int workers() const = 0;
  // Calls task(arg, t, worker) for t in [0, tasks) and returns when all are done.
  virtual void run(int tasks, void (*task)(void* arg, int task, int worker), void* arg) = 0;
};
// Returns a Parallel that runs all tasks on the calling thread.
std::shared_ptr<Parallel> one_thread();

}  // namespace lc
