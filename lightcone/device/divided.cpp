#include "lightcone/device/divided.h"

#include <algorithm>
#include <limits>

namespace lc {
namespace {

constexpr double kTaskWork = 60000;  // work that is worth handing to a thread, in rough operations

struct Job {
  std::span<const Divided> kernels;
  double work;
  int tasks;
};

// Returns the number of iterations that this many operations correspond to. The end of a task and the begin of the next
// one must agree: both are computed from the same numbers, which is exact because the library is compiled without
// contracting products and sums.
std::int64_t reached(const Iterations& i, double work) {
  const double n = work / std::max(i.work, 1.0);
  if (!(n > 0)) return 0;
  if (n >= static_cast<double>(i.count)) return i.count;
  return static_cast<std::int64_t>(n) / i.multiple * i.multiple;
}

void task(void* arg, int t, int) {
  const Job& j = *static_cast<const Job*>(arg);
  const double each = j.work / j.tasks, begin = each * t;
  const double end = t + 1 == j.tasks ? std::numeric_limits<double>::infinity() : each * (t + 1);
  double before = 0;
  for (const Divided& d : j.kernels) {
    const std::int64_t first = reached(d.iterations, begin - before), last = reached(d.iterations, end - before);
    if (first < last) d.kernel->run_iterations(d.launch, first, last);
    before += static_cast<double>(d.iterations.count) * std::max(d.iterations.work, 1.0);
  }
}

}  // namespace

void run_divided(std::span<const Divided> kernels, Parallel& parallel) {
  Job j{kernels, 0, 1};
  for (const Divided& d : kernels) j.work += static_cast<double>(d.iterations.count) * std::max(d.iterations.work, 1.0);
  // Each worker gets a few long ranges: short alternating ones would break the streams that the prefetcher follows.
  const int workers = parallel.workers();
  if (workers > 1) j.tasks = static_cast<int>(std::clamp(j.work / kTaskWork, 1.0, 4.0 * workers));
  parallel.run(j.tasks, task, &j);
}

}  // namespace lc
