#include "lightcone/backends/cpu/target/limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "lightcone/device/memory.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
// target_clones resolves at load time, before ThreadSanitizer is initialized.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define LC_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LC_CLONES
#endif

namespace lc::backends::cpu {
namespace {

// Reads in several parallel streams with software prefetch: a single stream leaves half of some processors' bandwidth
// unused, but is the fastest on others.
LC_CLONES std::uint64_t read_all(const std::uint64_t* p, std::size_t words, std::size_t streams, std::size_t ahead) {
  const std::size_t each = words / streams / 8 * 8;
  std::uint64_t sum[8] = {};
  for (std::size_t i = 0; i < each; i += 8)
    for (std::size_t s = 0; s < streams; ++s) {
      const std::uint64_t* q = p + s * each + i;
      __builtin_prefetch(reinterpret_cast<const char*>(q) + ahead);
      for (std::size_t k = 0; k < 8; ++k) sum[k] += q[k];
    }
  std::uint64_t total = 0;
  for (std::uint64_t v : sum) total += v;
  return total;
}

constexpr int kChains = 12;  // independent sums: exceeds latency times throughput of any known FMA unit
constexpr int kRounds = 200000;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) double multiply_add_512() {
  __m512 sum[kChains];
  for (int c = 0; c < kChains; ++c) sum[c] = _mm512_set1_ps(static_cast<float>(c));
  const __m512 x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(0.25f);
  for (int r = 0; r < kRounds; ++r)
    for (int c = 0; c < kChains; ++c) sum[c] = _mm512_fmadd_ps(sum[c], x, y);
  double all = 0;
  for (int c = 0; c < kChains; ++c) all += static_cast<double>(_mm512_cvtss_f32(sum[c]));
  return all;
}
__attribute__((target("avx2,fma"))) double multiply_add_256() {
  __m256 sum[kChains];
  for (int c = 0; c < kChains; ++c) sum[c] = _mm256_set1_ps(static_cast<float>(c));
  const __m256 x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(0.25f);
  for (int r = 0; r < kRounds; ++r)
    for (int c = 0; c < kChains; ++c) sum[c] = _mm256_fmadd_ps(sum[c], x, y);
  double all = 0;
  for (int c = 0; c < kChains; ++c) all += static_cast<double>(_mm256_cvtss_f32(sum[c]));
  return all;
}
#elif defined(__aarch64__)
double multiply_add_neon() {  // twice the chains: some cores have four FMA units
  float32x4_t sum[2 * kChains];
  for (int c = 0; c < 2 * kChains; ++c) sum[c] = vdupq_n_f32(static_cast<float>(c));
  const float32x4_t x = vdupq_n_f32(0.5f), y = vdupq_n_f32(0.25f);
  for (int r = 0; r < kRounds; ++r)
#pragma GCC unroll 24
    for (int c = 0; c < 2 * kChains; ++c) sum[c] = vfmaq_f32(sum[c], x, y);
  double all = 0;
#pragma GCC unroll 24
  for (int c = 0; c < 2 * kChains; ++c) all += static_cast<double>(vgetq_lane_f32(sum[c], 0));
  return all;
}
#endif
double multiply_add() {  // as wide as the compiler's baseline allows
  float sum[kChains][4] = {};
  for (int r = 0; r < kRounds; ++r)
    for (auto& chain : sum)
      for (float& v : chain) v = v * 0.5f + 0.25f;
  double all = 0;
  for (const auto& chain : sum) all += static_cast<double>(chain[0]);
  return all;
}

struct Unit {
  double (*run)();
  int lanes;
};
Unit widest_unit() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {multiply_add_256, 8};
#elif defined(__aarch64__)
  return {multiply_add_neon, 8};
#endif
  return {multiply_add, 4};
}

#if defined(__x86_64__)
void* copy_past_caches(void* to, const void* from, std::size_t bytes) {
  const auto* f = static_cast<const float*>(from);
  auto* t = static_cast<float*>(to);
  for (std::size_t i = 0; i < bytes / sizeof(float); i += 16) {
    _mm_prefetch(reinterpret_cast<const char*>(f + i) + 2048, _MM_HINT_T0);
    for (std::size_t k = i; k < i + 16; k += 4) _mm_stream_ps(t + k, _mm_load_ps(f + k));
  }
  _mm_sfence();
  return to;
}
#endif

// Memory divided into equal pieces, one per task.
struct Job {
  Job(const Parallel& parallel, std::byte* from_, std::byte* to_, std::size_t all)
      : from(from_), to(to_), bytes(all / static_cast<std::size_t>(parallel.workers()) / 4096 * 4096) {}
  void read(int task, std::size_t streams, std::size_t ahead) {
    sink += read_all(reinterpret_cast<const std::uint64_t*>(from + at(task)), bytes / 8, streams, ahead);
  }
  void copy(int task, void* (*how)(void*, const void*, std::size_t)) const {
    how(to + at(task), from + at(task), bytes);
  }
  std::size_t at(int task) const { return static_cast<std::size_t>(task) * bytes; }

  std::byte *from, *to;
  std::size_t bytes;
  std::atomic<std::uint64_t> sink{0};
};

double best_rate(Parallel& parallel, void* job, double moved, double seconds, void (*task)(void*, int, int)) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  const auto begin = Clock::now();
  for (int pass = 0; pass < 3 || std::chrono::duration<double>(Clock::now() - begin).count() < seconds; ++pass) {
    const auto t = Clock::now();
    parallel.run(parallel.workers(), task, job);
    best = std::max(best, moved / std::chrono::duration<double>(Clock::now() - t).count());
  }
  return best;
}

}  // namespace

double read_bandwidth(Parallel& parallel, std::size_t bytes, double seconds) {
  Memory memory(bytes);
  std::memset(memory.data(), 1, bytes);
  Job job(parallel, memory.data(), nullptr, bytes);
  const auto with = [&](void (*task)(void*, int, int)) {
    return best_rate(parallel, &job, static_cast<double>(job.bytes) * parallel.workers(), seconds / 2, task);
  };
  return std::max(with([](void* job, int task, int) { static_cast<Job*>(job)->read(task, 1, 4096); }),
                  with([](void* job, int task, int) { static_cast<Job*>(job)->read(task, 8, 1024); }));
}

double copy_bandwidth(Parallel& parallel, std::size_t bytes, double seconds) {
  Memory from(bytes), to(bytes);
  std::memset(from.data(), 1, bytes);
  std::memset(to.data(), 1, bytes);
  Job job(parallel, from.data(), to.data(), bytes);
  const auto with = [&](void (*task)(void*, int, int)) {
    return best_rate(parallel, &job, 2.0 * static_cast<double>(job.bytes) * parallel.workers(), seconds / 2, task);
  };
  const double plain = with([](void* job, int task, int) { static_cast<Job*>(job)->copy(task, std::memcpy); });
#if defined(__x86_64__)
  // memcpy() uses non-temporal stores only above three quarters of the last-level cache, which on large servers exceeds
  // this size.
  return std::max(plain, with([](void* job, int task, int) { static_cast<Job*>(job)->copy(task, copy_past_caches); }));
#else
  return plain;
#endif
}

double fma_rate(Parallel& parallel, double seconds) {
  struct Work {
    Unit unit = widest_unit();
    std::atomic<double> sink{0};
  } work;
  return best_rate(parallel, &work, 2.0 * kRounds * kChains * work.unit.lanes * parallel.workers(), seconds,
                   [](void* arg, int, int) {
                     auto& w = *static_cast<Work*>(arg);
                     w.sink = w.unit.run();
                   });
}

}  // namespace lc::backends::cpu
