// Counts the system calls a function makes, all threads of it, without privileges: a child process puts
// itself under a seccomp filter that traps every call but those from one instruction. The handler of the
// trap counts the call and makes it from that instruction.
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
  std::map<int, long> caller, others;  // number -> how often, by the calling thread and by the rest
  std::string text;                    // for people; or why it is not possible
};

// `ready` runs once uncounted and its result is given to `f`, which is counted.
SystemCalls count_system_calls(const std::function<void()>& ready, const std::function<void()>& f);

template <class Ready, class F>
SystemCalls count_system_calls(Ready ready, F f) {
  decltype(ready()) made;  // in the child
  return count_system_calls(std::function<void()>([&] { made = ready(); }), std::function<void()>([&] { f(*made); }));
}
