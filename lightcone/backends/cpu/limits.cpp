#include "lightcone/backends/cpu/limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "lightcone/runtime/memory.h"

#if defined(__x86_64__)
#define LC_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LC_CLONES
#endif

namespace lc::host {
namespace {

constexpr std::size_t kStreams = 8, kPrefetch = 1024;

// Eight streams with software prefetch: one stream leaves half of the bandwidth unused.
LC_CLONES std::uint64_t read_all(const std::uint64_t* p, std::size_t words) {
  const std::size_t each = words / kStreams / 8 * 8;
  std::uint64_t sum[8] = {};
  for (std::size_t i = 0; i < each; i += 8)
    for (std::size_t s = 0; s < kStreams; ++s) {
      const std::uint64_t* q = p + s * each + i;
      __builtin_prefetch(reinterpret_cast<const char*>(q) + kPrefetch);
      for (std::size_t k = 0; k < 8; ++k) sum[k] += q[k];
    }
  std::uint64_t total = 0;
  for (std::uint64_t v : sum) total += v;
  return total;
}

struct Job {
  std::byte *from, *to;
  std::size_t bytes;  // of one task
  std::atomic<std::uint64_t> sink{0};
};

double best_rate(Parallel& parallel, Job& job, double moved, double seconds, void (*task)(void*, int, int)) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  const auto begin = Clock::now();
  for (int pass = 0; pass < 3 || std::chrono::duration<double>(Clock::now() - begin).count() < seconds; ++pass) {
    const auto t = Clock::now();
    parallel.run(parallel.workers(), task, &job);
    best = std::max(best, moved / std::chrono::duration<double>(Clock::now() - t).count());
  }
  return best;
}

}  // namespace

double read_bandwidth(Parallel& parallel, std::size_t bytes, double seconds) {
  Memory memory(bytes);
  std::memset(memory.data(), 1, bytes);
  Job job{memory.data(), nullptr, bytes / static_cast<std::size_t>(parallel.workers()) / 4096 * 4096};
  return best_rate(
      parallel, job, static_cast<double>(job.bytes) * parallel.workers(), seconds, [](void* arg, int task, int) {
        auto& j = *static_cast<Job*>(arg);
        j.sink += read_all(reinterpret_cast<const std::uint64_t*>(j.from + static_cast<std::size_t>(task) * j.bytes),
                           j.bytes / 8);
      });
}

double copy_bandwidth(Parallel& parallel, std::size_t bytes, double seconds) {
  Memory from(bytes), to(bytes);
  std::memset(from.data(), 1, bytes);
  std::memset(to.data(), 1, bytes);
  Job job{from.data(), to.data(), bytes / static_cast<std::size_t>(parallel.workers()) / 4096 * 4096};
  return best_rate(parallel, job, 2.0 * static_cast<double>(job.bytes) * parallel.workers(), seconds,
                   [](void* arg, int task, int) {
                     auto& j = *static_cast<Job*>(arg);
                     const std::size_t at = static_cast<std::size_t>(task) * j.bytes;
                     std::memcpy(j.to + at, j.from + at, j.bytes);
                   });
}

}  // namespace lc::host
