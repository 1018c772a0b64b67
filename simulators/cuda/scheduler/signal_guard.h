// RAII: while it exists, memory faults and arithmetic traps of kernels become faults of the grid.
#pragma once
#include <signal.h>

#include "scheduler/context_switch.h"

namespace fibers {

class SignalGuard {
 public:
  // `recover` is called in the signal handler with the accessed address, and returns the context to resume.
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
