// Counts the system calls of a function, by all its threads, without privileges. A child process installs a seccomp
// filter that traps every call except those from one instruction. The trap's handler counts the call and makes it from
// that instruction.
#pragma once

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

struct SystemCalls {
  bool possible = false;
  std::map<int, long> caller, others;  // number -> count, by the calling thread and by other threads
  std::string text;                    // a readable summary, or why counting is not possible
};

// Runs `ready` uncounted, then counts `f`. The overload below passes ready()'s result to `f`.
SystemCalls count_system_calls(const std::function<void()>& ready, const std::function<void()>& f);

template <class Ready, class F>
SystemCalls count_system_calls(Ready ready, F f) {
  decltype(ready()) made;  // constructed in the child
  return count_system_calls(std::function<void()>([&] { made = ready(); }), std::function<void()>([&] { f(*made); }));
}
