#include "lightcone/backends/cpu/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lightcone/backends/cpu/packed_weights.h"
#include "lightcone/core/error.h"

namespace lc::host {
namespace {

using i64 = std::int64_t;
constexpr i64 kDepth = 256;       // KC: a strip of B and a tile of A fit the first-level cache
constexpr i64 kRows = 168;        // MC, a multiple of every MR
constexpr i64 kPanel = 1024;      // columns of B packed at a time
constexpr i64 kColumns = 128;     // columns of one task, at least
constexpr i64 kFewRows = 4;       // up to here B is streamed, not packed
constexpr i64 kStreamRows = 512;  // weight rows of one streaming task, at most

i64 up(i64 v, i64 to) { return (v + to - 1) / to * to; }
const GemmTable& table(Isa isa) {
  return isa == Isa::Avx512 ? kGemmAvx512 : isa == Isa::Avx2 ? kGemmAvx2 : kGemmGeneric;
}
i64 panel_floats(i64 n, i64 k) { return up(std::min(n, kPanel), 64) * k; }
constexpr i64 kAFloats = kRows * kDepth;

// Long runs of rows stream best, but every worker wants some: an even number of sixteens.
i64 stream_rows(i64 n, int workers) { return std::clamp<i64>(up(n / (8 * workers), 32), 32, kStreamRows); }

struct Job {
  const Gemm* g;
  const GemmTable* t;
  float* panel;
  float* a_blocks;  // one a worker
  i64 j0, columns;
  i64 rows, across;  // of one task: rows, columns
};

void stream(void* arg, int task, int) {
  const Job& j = *static_cast<Job*>(arg);
  const i64 begin = task * j.rows;
  (j.g->b_k == 1 || j.g->type != WeightType::F32 ? j.t->gemv : j.t->axpy)(*j.g, begin,
                                                                          std::min(j.g->n, begin + j.rows));
}
void stream_packed(void* arg, int task, int) {
  const Job& j = *static_cast<Job*>(arg);
  const i64 begin = task * j.rows;
  j.t->gemv_packed(*j.g, j.panel, begin / PackedLayout::rows,
                   up(std::min(j.g->n, begin + j.rows), PackedLayout::rows) / PackedLayout::rows);
}
void stream_columns(void* arg, int task, int) {
  const Job& j = *static_cast<Job*>(arg);
  const i64 begin = task * kColumns;
  j.t->axpy(*j.g, begin, std::min(j.g->n, begin + kColumns));
}

// One strip of nr columns of the panel, all of K, packed depth block by depth block.
void pack_strip(void* arg, int task, int) {
  const Job& j = *static_cast<Job*>(arg);
  const i64 nr = j.t->nr, first = task * nr, width = std::min(nr, j.columns - first);
  for (i64 k = 0; k < j.g->k; k += kDepth) {
    const i64 depth = std::min(kDepth, j.g->k - k);
    j.t->pack_b(*j.g, j.j0 + first, width, k, depth, j.panel + up(j.columns, nr) * k + first * depth);
  }
}

void compute_block(void* arg, int task, int worker) {
  const Job& j = *static_cast<Job*>(arg);
  const Gemm& g = *j.g;
  const i64 nr = j.t->nr, mr = j.t->mr;
  const i64 side = (j.columns + j.across - 1) / j.across;
  const i64 i0 = task / side * j.rows, c0 = task % side * j.across;
  const i64 rows = std::min(j.rows, g.m - i0), columns = std::min(j.across, j.columns - c0);
  float* a = j.a_blocks + worker * kAFloats;
  for (i64 k = 0; k < g.k; k += kDepth) {
    const i64 depth = std::min(kDepth, g.k - k);
    j.t->pack_a(g, i0, rows, k, depth, a);
    for (i64 c = 0; c < columns; c += nr) {
      const float* b = j.panel + up(j.columns, nr) * k + (c0 + c) * depth;
      for (i64 r = 0; r < rows; r += mr)
        j.t->tile(a + r * depth, b, depth, g.c + (i0 + r) * g.c_m + j.j0 + c0 + c, g.c_m, std::min(mr, rows - r),
                  std::min(nr, columns - c), k > 0);
    }
  }
}

void product(const Gemm& g, Parallel& parallel, float* scratch, const GemmTable& t) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0) {
    for (i64 i = 0; i < g.m; ++i) std::fill(g.c + i * g.c_m, g.c + i * g.c_m + g.n, 0.0f);
    return;
  }
  Job j{&g, &t, nullptr, nullptr, 0, 0, 0, 0};
  if (g.m <= kFewRows && (g.packed || g.type != WeightType::F32 || g.b_k == 1)) {
    if (g.a_k == 1) {
      Gemm arranged = g;
      if (g.packed) t.step_sums(g, j.panel = scratch);
      else if (t.arrange(g, scratch)) arranged.a = scratch, arranged.a_m = g.k, j.g = &arranged;
      j.rows = stream_rows(g.n, parallel.workers());
      return parallel.run(static_cast<int>((g.n + j.rows - 1) / j.rows), g.packed ? stream_packed : stream, &j);
    }
  } else if (g.m <= kFewRows && g.b_n == 1) {
    return parallel.run(static_cast<int>((g.n + kColumns - 1) / kColumns), stream_columns, &j);
  }
  j.a_blocks = scratch;
  j.panel = scratch + parallel.workers() * kAFloats;
  for (j.j0 = 0; j.j0 < g.n; j.j0 += kPanel) {
    j.columns = std::min(kPanel, g.n - j.j0);
    parallel.run(static_cast<int>((j.columns + t.nr - 1) / t.nr), pack_strip, &j);
    // rows in even blocks; all columns in one task, so that a block of A is packed once, unless
    // that leaves workers idle
    const i64 blocks = (g.m + kRows - 1) / kRows;
    j.rows = up((g.m + blocks - 1) / blocks, t.mr);
    const i64 wanted = std::max<i64>(1, (4 * parallel.workers() + blocks - 1) / blocks);
    j.across = parallel.workers() == 1 ? j.columns : std::max(kColumns, up((j.columns + wanted - 1) / wanted, t.nr));
    parallel.run(static_cast<int>(blocks * ((j.columns + j.across - 1) / j.across)), compute_block, &j);
  }
}

struct BatchJob {
  Gemm g;
  GemmBatch step;
  const GemmTable* t;
  float* scratch;
  i64 floats;  // scratch of one worker
};
Gemm at(const BatchJob& j, i64 index) {
  Gemm g = j.g;
  g.a += index * j.step.a;
  g.b = static_cast<const std::byte*>(g.b) + index * j.step.b * unit_bytes(g.type);
  g.c += index * j.step.c;
  return g;
}
void one_of_batch(void* arg, int task, int worker) {
  const BatchJob& j = *static_cast<BatchJob*>(arg);
  static const std::shared_ptr<Parallel> alone = one_thread();
  product(at(j, task), *alone, j.scratch + worker * j.floats, *j.t);
}

}  // namespace

Isa detect_isa() {
  static const Isa best = [] {
#if defined(__x86_64__)
    const char* wish = std::getenv("LIGHTCONE_ISA");
    const std::string_view cap = wish ? wish : "";
    if (!cap.empty() && cap != "generic" && cap != "avx2" && cap != "avx512")
      throw Error("cpu", cat("LIGHTCONE_ISA is '", cap, "', which is none of generic, avx2 and avx512"));
    if (cap == "generic") return Isa::Generic;
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    if (cap != "avx2" && avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
      return Isa::Avx512;
    if (avx2) return Isa::Avx2;
#endif
    return Isa::Generic;
  }();
  return best;
}
const char* name(Isa isa) { return isa == Isa::Avx512 ? "avx512" : isa == Isa::Avx2 ? "avx2" : "generic"; }

std::size_t gemm_scratch_bytes(i64 n, i64 k, int workers) {
  return static_cast<std::size_t>(workers * (kAFloats + panel_floats(n, k))) * 4;
}

void gemm(const Gemm& g, const GemmBatch& batch, Parallel& parallel, std::byte* scratch, Isa isa) {
  BatchJob j{g, batch, &table(isa), reinterpret_cast<float*>(scratch), kAFloats + panel_floats(g.n, g.k)};
  if (batch.count > 1 && g.m * g.n * g.k < (i64{1} << 22))
    return parallel.run(static_cast<int>(batch.count), one_of_batch, &j);
  for (i64 b = 0; b < batch.count; ++b) product(at(j, b), parallel, j.scratch, *j.t);
}

}  // namespace lc::host
