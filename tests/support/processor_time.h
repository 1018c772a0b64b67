// How long something takes, whatever else runs on the machine.
#pragma once

#include <algorithm>
#include <ctime>
#include <functional>

namespace lc::test {

// How many times as long something may take with sanitizers, which fill memory that is given and look at each access.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kSanitizersTake = 5;
#else
inline constexpr double kSanitizersTake = 1;
#endif

// Seconds of this thread's processor time, or of another clock.
inline double seconds(const std::function<void()>& f, clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  const auto now = [clock] {
    timespec t = {};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  };
  const double begin = now();
  f();
  return now() - begin;
}

// The least processor time of up to three runs, all threads' together; the first within `limit` is the last. What a
// processor is shared with makes a run several times as long now and then, and never shorter.
inline double least_seconds(double limit, const std::function<void()>& f) {
  double least = seconds(f, CLOCK_PROCESS_CPUTIME_ID);
  for (int again = 0; again < 2 && least > limit; ++again)
    least = std::min(least, seconds(f, CLOCK_PROCESS_CPUTIME_ID));
  return least;
}

}  // namespace lc::test
