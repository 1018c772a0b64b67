// Limits of the machine, measured in the same minute as the results that are compared with them: bytes read and copied,
// and the products of each arithmetic unit. A limit is the best of a few variants, chosen when it is loaded.
#include <algorithm>
#include <atomic>
#include <limits>

#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "workload.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#define LC_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LC_CLONES
#endif

namespace lc::bench {
namespace {

struct Job {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0;  // bytes of one task
  std::atomic<std::uint64_t> sink{0};
};
using Task = void (*)(Job& job, std::size_t task);
struct Way {
  Task task;
  double work;  // bytes or operations of one task
};

template <std::size_t kStreams, std::size_t kAhead>
inline __attribute__((always_inline)) std::uint64_t sum_streams(const std::uint64_t* p, std::size_t words) {
  const std::size_t each = words / kStreams / 8 * 8;
  std::uint64_t sum[8] = {};
  for (std::size_t i = 0; i < each; i += 8)
    for (std::size_t s = 0; s < kStreams; ++s) {
      const std::uint64_t* q = p + s * each + i;
      if (kAhead) __builtin_prefetch(reinterpret_cast<const char*>(q) + kAhead);
      for (std::size_t k = 0; k < 8; ++k) sum[k] += q[k];
    }
  std::uint64_t total = 0;
  for (const std::uint64_t v : sum) total += v;
  return total;
}
// Macros, because clang makes no clones of a template.
#define LC_READ(STREAMS, AHEAD)                                                                                      \
  LC_CLONES std::uint64_t sum_##STREAMS##_##AHEAD(const std::uint64_t* p, std::size_t words) {                       \
    return sum_streams<STREAMS, AHEAD>(p, words);                                                                    \
  }                                                                                                                  \
  void read_##STREAMS##_##AHEAD(Job& j, std::size_t task) {                                                          \
    j.sink += sum_##STREAMS##_##AHEAD(reinterpret_cast<const std::uint64_t*>(j.from + task * j.bytes), j.bytes / 8); \
  }
LC_READ(1, 0)
LC_READ(4, 0)
LC_READ(4, 2048)
LC_READ(8, 1024)
LC_READ(8, 4096)
#undef LC_READ

void copy_task(Job& j, std::size_t task) { std::memcpy(j.to + task * j.bytes, j.from + task * j.bytes, j.bytes); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) void copy_past_the_cache(Job& j, std::size_t task) {
  const auto* from = reinterpret_cast<const __m256i*>(j.from + task * j.bytes);
  auto* to = reinterpret_cast<__m256i*>(j.to + task * j.bytes);
  for (std::size_t i = 0; i < j.bytes / 32; i += 2) {
    _mm_prefetch(reinterpret_cast<const char*>(from + i) + 2048, _MM_HINT_T0);
    _mm256_stream_si256(to + i, _mm256_load_si256(from + i));
    _mm256_stream_si256(to + i + 1, _mm256_load_si256(from + i + 1));
  }
  _mm_sfence();
}

// Twelve chains hide the latency of a product with two units; the barrier keeps the compiler from computing the sum
// itself.
constexpr int kChains = 12, kSteps = 20000;
#define LC_CHAINS(type, zero, step)             \
  type a[kChains], x = zero;                    \
  for (type & v : a) v = zero;                  \
  for (int i = 0; i < kSteps; ++i) {            \
    asm volatile("" : "+v"(x));                 \
    for (type & v : a) v = step;                \
  }                                             \
  for (type & v : a) asm volatile("" ::"v"(v)); \
  static_cast<void>(j)

__attribute__((target("avx512f"))) void fma512(Job& j, std::size_t) {
  LC_CHAINS(__m512, _mm512_setzero_ps(), _mm512_fmadd_ps(x, x, v));
}
__attribute__((target("avx2,fma"))) void fma256(Job& j, std::size_t) {
  LC_CHAINS(__m256, _mm256_setzero_ps(), _mm256_fmadd_ps(x, x, v));
}
__attribute__((target("avx512vnni"))) void vnni512(Job& j, std::size_t) {
  LC_CHAINS(__m512i, _mm512_setzero_si512(), _mm512_dpbusd_epi32(v, x, x));
}
__attribute__((target("avxvnni"))) void vnni256(Job& j, std::size_t) {
  LC_CHAINS(__m256i, _mm256_setzero_si256(), _mm256_dpbusd_avx_epi32(v, x, x));
}
__attribute__((target("avx512bf16"))) void bf16_512(Job& j, std::size_t) {
  LC_CHAINS(__m512, _mm512_setzero_ps(), _mm512_dpbf16_ps(v, (__m512bh)x, (__m512bh)x));
}

bool amx_granted() {
  static const bool granted = [] {
    constexpr long kRequest = 0x1023, kTileData = 18;
    return ::syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  }();
  return granted;
}
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
#define LC_TILES(product)                     \
  const TileConfig config;                    \
  asm volatile("ldtilecfg %0" ::"m"(config)); \
  _tile_zero(0);                              \
  _tile_zero(1);                              \
  _tile_zero(2);                              \
  _tile_zero(3);                              \
  _tile_zero(4);                              \
  _tile_zero(5);                              \
  _tile_zero(6);                              \
  _tile_zero(7);                              \
  for (int i = 0; i < kSteps / 4; ++i) {      \
    product(0, 4, 6);                         \
    product(1, 4, 7);                         \
    product(2, 5, 6);                         \
    product(3, 5, 7);                         \
  }                                           \
  _tile_release();                            \
  static_cast<void>(j)
__attribute__((target("amx-tile,amx-bf16"))) void amx_bf16(Job& j, std::size_t) { LC_TILES(_tile_dpbf16ps); }
__attribute__((target("amx-tile,amx-int8"))) void amx_int8(Job& j, std::size_t) { LC_TILES(_tile_dpbssd); }

// GCC 12 has no name for the newer of these flags in __builtin_cpu_supports; the kernel's list has all of them.
bool cpu_has(const char* flag) {
  static const std::string flags = [] {
    std::string text;
    char line[8192];
    if (FILE* f = std::fopen("/proc/cpuinfo", "r")) {
      while (std::fgets(line, sizeof line, f))
        if (std::string_view(line).starts_with("flags")) {
          text = line;
          text.back() = ' ';
          break;
        }
      std::fclose(f);
    }
    return text;
  }();
  return flags.find(std::string(" ") + flag + " ") != std::string::npos;
}
#endif

std::vector<Way> ways(const std::string& what, std::size_t bytes) {
  const double b = static_cast<double>(bytes);
  if (what == "read") return {{read_1_0, b}, {read_4_0, b}, {read_4_2048, b}, {read_8_1024, b}, {read_8_4096, b}};
  std::vector<Way> w;
  if (what == "copy") w.push_back({copy_task, 2 * b});
#if defined(__x86_64__)
  constexpr double kOps = 2.0 * kChains * kSteps, kTileOps = 2.0 * kSteps * 16 * 16;
  if (what == "copy" && cpu_has("avx2")) w.push_back({copy_past_the_cache, 2 * b});
  if (what == "f32" && cpu_has("avx512f")) w.push_back({fma512, kOps * 16});
  if (what == "f32" && cpu_has("fma")) w.push_back({fma256, kOps * 8});
  if (what == "int8" && cpu_has("avx512_vnni")) w.push_back({vnni512, kOps * 64});
  if (what == "int8" && cpu_has("avx_vnni")) w.push_back({vnni256, kOps * 32});
  if (what == "bf16" && cpu_has("avx512_bf16")) w.push_back({bf16_512, kOps * 32});
  if (what == "bf16" && cpu_has("amx_bf16") && amx_granted()) w.push_back({amx_bf16, kTileOps * 32});
  if (what == "int8" && cpu_has("amx_int8") && amx_granted()) w.push_back({amx_int8, kTileOps * 64});
#endif
  if (w.empty()) throw Error("bench", "this processor has no unit for " + what);
  return w;
}

// A call of the chosen variant on all threads.
class Limit final : public Workload {
 public:
  // Takes any memory to read and copy; limits of arithmetic need none.
  Limit(const std::string& what, const std::byte* from, std::byte* to, std::size_t bytes,
        std::shared_ptr<Parallel> pool)
      : pool_(std::move(pool)) {
    job_.from = from, job_.to = to;
    job_.bytes = bytes / static_cast<std::size_t>(pool_->workers()) / 4096 * 4096;
    double best = 0;
    for (const Way& way : ways(what, job_.bytes)) {
      way_ = way;
      double fastest = std::numeric_limits<double>::max();
      for (int i = 0; i < 6; ++i) fastest = std::min(fastest, timed_call());
      const double rate = way.work / fastest;
      if (rate > best) best = rate, picked_ = way;
    }
    way_ = picked_;
  }
  void call() override {
    struct Call {
      Limit* limit;
    } c{this};
    pool_->run(
        pool_->workers(),
        [](void* arg, int task, int) {
          Limit& l = *static_cast<Call*>(arg)->limit;
          l.way_.task(l.job_, static_cast<std::size_t>(task));
        },
        &c);
  }
  Json facts() override { return {{"work", way_.work * pool_->workers()}}; }
  void keep(Memory m) { kept_.push_back(std::move(m)); }

 private:
  std::shared_ptr<Parallel> pool_;
  std::vector<Memory> kept_;
  Job job_;
  Way way_{}, picked_{};
};

}  // namespace

std::unique_ptr<Workload> make_limit(const Json& w) {
  const auto what = w.at("what").get<std::string>();
  const auto pool = backends::cpu::threads(w.at("threads").get<int>());
  if (what != "read" && what != "copy") return std::make_unique<Limit>(what, nullptr, nullptr, 0, pool);
  constexpr std::size_t kBytes = 512u << 20;
  Memory from(kBytes), to(what == "copy" ? kBytes : 0);
  for (Memory* m : {&from, &to})
    if (m->size()) std::memset(m->data(), 1, m->size());
  auto limit = std::make_unique<Limit>(what, from.data(), to.data(), kBytes, pool);
  limit->keep(std::move(from)), limit->keep(std::move(to));
  return limit;
}

std::unique_ptr<Workload> limit_of(const std::byte* from, std::byte* to, std::size_t bytes, int threads) {
  return std::make_unique<Limit>(to ? "copy" : "read", from, to, bytes, backends::cpu::threads(threads));
}

}  // namespace lc::bench
