// How long something takes, whatever else runs on the machine.
#pragma once

#include <ctime>
#include <functional>

namespace lc::test {

// Seconds of this thread's processor time.
inline double seconds(const std::function<void()>& f) {
  const auto now = [] {
    timespec t = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  };
  const double begin = now();
  f();
  return now() - begin;
}

}  // namespace lc::test
