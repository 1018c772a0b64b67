// While kernels run: memory faults and arithmetic traps of theirs become faults of the grid.
#pragma once
#include <signal.h>

#include "scheduler/context_switch.h"

namespace fibers {

class SignalGuard {
 public:
  // `recover` is called within the signal handler with the address that was touched, and says where to go on.
  using Recover = Suspended (*)(int signal, void* address);
  explicit SignalGuard(Recover recover);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  static constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  struct sigaction before_[4];
  stack_t stack_before_;
};

}  // namespace fibers
