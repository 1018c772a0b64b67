#include "scheduler/signal_guard.h"

#include <pthread.h>

namespace fibers {
namespace {

SignalGuard::Recover recover_fault = nullptr;
pthread_t kernel_thread;  // valid while recover_fault is set
alignas(64) char signal_stack[64 << 10];

void handle(int signal, siginfo_t* info, void* context) {
  const bool ours = recover_fault != nullptr && pthread_equal(kernel_thread, pthread_self());
  if (ours && switch_after_signal(context, recover_fault(signal, info->si_addr))) return;
  ::signal(signal, SIG_DFL);  // not caused by a kernel: the repeated signal ends the process
}

}  // namespace

SignalGuard::SignalGuard(Recover recover) {
  kernel_thread = pthread_self();
  recover_fault = recover;
  stack_t stack{};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof signal_stack;
  sigaltstack(&stack, &stack_before_);
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int i = 0; i < 4; ++i) sigaction(kSignals[i], &action, &before_[i]);
}

SignalGuard::~SignalGuard() {
  for (int i = 0; i < 4; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  sigaltstack(&stack_before_, nullptr);
  recover_fault = nullptr;
}

}  // namespace fibers
