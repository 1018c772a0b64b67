// Measures time independently of other load on the machine.
#pragma once

#include <algorithm>
#include <ctime>
#include <functional>

namespace lc::test {

// The factor by which sanitizers may slow a program: they fill allocated memory and check each access.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kSanitizersTake = 5;
#else
inline constexpr double kSanitizersTake = 1;
#endif

// Returns seconds of this thread's processor time, or of another clock.
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

// Returns the least processor time, of all threads, of up to three runs, and stops at the first within `limit`. Load on
// a shared processor sometimes makes a run several times as long, and never shorter.
inline double least_seconds(double limit, const std::function<void()>& f) {
  double least = seconds(f, CLOCK_PROCESS_CPUTIME_ID);
  for (int again = 0; again < 2 && least > limit; ++again)
    least = std::min(least, seconds(f, CLOCK_PROCESS_CPUTIME_ID));
  return least;
}

}  // namespace lc::test
