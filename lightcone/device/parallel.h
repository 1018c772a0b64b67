// Parallel: the threads that the tasks of one kernel are spread over.
#pragma once

#include <memory>

namespace lc {

// Spreads the tasks of one kernel over threads. Results may not depend on which worker runs a
// task, nor on how many there are: that is how the same bits come out for any thread count.
class Parallel {
 public:
  virtual ~Parallel() = default;
  virtual int workers() const = 0;
  virtual void run(int tasks, void (*task)(void* arg, int task, int worker), void* arg) = 0;
};
std::shared_ptr<Parallel> one_thread();

}  // namespace lc
