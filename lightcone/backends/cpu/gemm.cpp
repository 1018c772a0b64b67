#include "lightcone/backends/cpu/gemm.h"

#include <algorithm>
#include <cstring>

#include "lightcone/backends/cpu/dense_unit.h"
#include "lightcone/backends/cpu/packed_weights.h"

namespace lc::host {
namespace {

using i64 = std::int64_t;
constexpr i64 kRows = 168;         // MC, a multiple of most tiles' heights
constexpr i64 kPackedA = 4 << 20;  // bytes
constexpr i64 kShared = 1 << 20;   // bytes of scratch of a product that one worker does alone, at most
constexpr i64 kPanel = 1024;       // columns of B packed at a time
constexpr i64 kColumns = 128;      // columns of one task, at least
constexpr i64 kBlock = 1024;       // and at most, so that its part of C stays in the cache
constexpr i64 kFewRows = 4;        // up to here B is streamed, not packed
constexpr i64 kLeast = 16 << 10;   // bytes of B that one streaming task reads, at least
constexpr i64 kCached = 1 << 20;   // bytes of B that stay in a worker's second-level cache from run to run
constexpr i64 kGroup = PackedLayout::rows;

i64 up(i64 v, i64 to) { return (v + to - 1) / to * to; }
const GemmTable& table(Isa isa) {
  switch (isa) {
    case Isa::Avx512: return kGemmAvx512;
    case Isa::Avx2: return kGemmAvx2;
    case Isa::Neon: return kGemmNeon;
    default: return kGemmGeneric;
  }
}
const DenseUnit& unit(const Gemm& g, Isa isa) { return g.unit ? *g.unit : *dense_unit(Arithmetic::F32, isa); }

// B is read as it lies in memory. (A step of bf16 tiles is longer than that of packed weights: k must be whole.)
bool ready(const Gemm& g, const DenseUnit& u) {
  const bool same = (g.type == WeightType::F32 && u.arithmetic == Arithmetic::F32) ||
                    (g.type == WeightType::BF16 && u.arithmetic == Arithmetic::Bf16);
  return g.packed && same && packed_layout(g.type).group_bytes(g.k) == u.b_bytes(g.k);
}
i64 panel_bytes(const Gemm& g, const DenseUnit& u) {
  return ready(g, u) ? 0 : up(std::min(g.n, kPanel), kGroup) / kGroup * u.b_bytes(g.k);
}
// Rows of A packed at a time, once for all columns.
i64 packed_rows(const Gemm& g, const DenseUnit& u) {
  return std::min(up(g.m, u.mr), u.mr * std::max(kRows / u.mr, kPackedA / std::max<i64>(u.a_bytes(g.k), 1)));
}
i64 a_bytes(const Gemm& g, const DenseUnit& u) { return up(packed_rows(g, u) / u.mr * u.a_bytes(g.k), 64); }
// Rows of A in another order, or sums of them, when they are few.
i64 few_bytes(const Gemm& g) { return up(std::min(g.m, kFewRows) * g.k * 4, 64); }
i64 scratch_bytes(const Gemm& g, const DenseUnit& u) {
  return std::max(a_bytes(g, u) + panel_bytes(g, u), few_bytes(g));
}

// Streaming tasks, in groups of sixteen rows: each a share of what is left, so that most is read in long runs
// and all workers end at about the same time.
struct Shares {
  i64 groups, least;
  int workers;
  i64 next(i64 begin) const {
    const i64 left = groups - begin;
    return begin + std::min(left, std::max(least, left / (2 * workers)));
  }
  i64 begin(int task) const {
    i64 at = 0;
    while (task-- > 0) at = next(at);
    return at;
  }
  int count() const {
    int n = 0;
    for (i64 at = 0; at < groups; at = next(at)) ++n;
    return n;
  }
};
i64 groups_of(const Gemm& g) { return up(g.n, kGroup) / kGroup; }
// Several products share their groups side by side when they have equally many, else one behind the other.
bool side_by_side(const Gemm& g) {
  for (const Gemm* p = g.also; p; p = p->also)
    if (p->n != g.n) return false;
  return true;
}
Shares shares(const Gemm& g, int workers) {
  const i64 one = g.packed ? packed_layout(g.type).group_bytes(g.k) : kGroup * g.b_n * unit_bytes(g.type);
  const bool wide = side_by_side(g);
  i64 bytes = one, groups = groups_of(g);
  for (const Gemm* p = g.also; p; p = p->also) (wide ? bytes : groups) += wide ? one : groups_of(*p);
  const i64 least = std::max<i64>(1, kLeast / std::max<i64>(bytes, 1));
  // What the workers' own caches hold is read from there in the next run, if the same worker reads it again: one
  // share for each, begun in the same order.
  const i64 even = groups * bytes <= workers * kCached ? (groups + workers - 1) / workers : 0;
  return {groups, std::max(least, even), workers};
}

struct Job {
  const Gemm* g;
  const GemmTable* t;
  const DenseUnit* u;
  std::byte* panel = nullptr;
  std::byte* a = nullptr;        // rows [i0, i0 + m) packed: strips of a depth of k side by side, then the next depth
  const std::byte* b = nullptr;  // groups of 16 columns as the unit wants them, all of k
  i64 i0 = 0, m = 0, j0 = 0, columns = 0;
  i64 rows = 0, across = 0;  // of one task
  i64 groups = 0;            // to be packed into the panel
  Shares shares = {};        // of a stream
};

void finish(const Gemm& g, i64 i0, i64 rows, i64 begin, i64 end) {
  if (g.finish)
    for (i64 i = i0; i < i0 + rows; ++i) g.finish(g.finish_self, g.c + i * g.c_m, begin, end);
}

// Groups [first, last) of one product.
void stream_groups(const Job& j, const Gemm& g, i64 first, i64 last) {
  if (first >= last) return;
  const i64 begin = first * kGroup, end = std::min(g.n, last * kGroup);
  if (j.u) j.u->gemv(g, j.panel, first, last);
  else if (g.packed) j.t->gemv_packed(g, reinterpret_cast<const float*>(j.panel), first, last);
  else j.t->gemv(g, begin, end);
  finish(g, 0, g.m, begin, end);
}
void stream(void* arg, int task, int) {
  const Job& j = *static_cast<Job*>(arg);
  const i64 first = j.shares.begin(task), last = j.shares.next(first);
  const bool wide = side_by_side(*j.g);
  i64 before = 0;  // groups of earlier products
  for (const Gemm* p = j.g; p; p = p->also) {
    const i64 groups = groups_of(*p);
    stream_groups(j, *p, std::clamp(first - before, i64{0}, groups), std::clamp(last - before, i64{0}, groups));
    if (!wide) before += groups;
  }
}
void stream_columns(void* arg, int task, int) {
  const Job& j = *static_cast<Job*>(arg);
  const i64 begin = task * kColumns, end = std::min(j.g->n, begin + kColumns);
  j.t->axpy(*j.g, begin, end);
  finish(*j.g, 0, j.g->m, begin, end);
}

// A group of columns of B, or a strip of rows of A.
void pack(void* arg, int task, int) {
  const Job& j = *static_cast<Job*>(arg);
  const Gemm& g = *j.g;
  const DenseUnit& u = *j.u;
  if (task < j.groups) {
    const i64 first = task * kGroup, bytes = u.b_bytes(g.k);
    return u.pack_b(g, j.j0 + first, std::min(kGroup, j.columns - first), 0, g.k, j.panel + task * bytes, bytes);
  }
  const i64 strip = task - j.groups, i = strip * u.mr, strips = (j.m + u.mr - 1) / u.mr;
  for (i64 k = 0; k < g.k; k += kTileDepth) {
    const i64 depth = std::min(kTileDepth, g.k - k);
    u.pack_a(g.a + (j.i0 + i) * g.a_m + k * g.a_k, g.a_m, g.a_k, std::min<i64>(u.mr, j.m - i), depth, g.zero,
             j.a + strips * u.a_bytes(k) + strip * u.a_bytes(depth));
  }
}

void compute_block(void* arg, int task, int) {
  const Job& j = *static_cast<Job*>(arg);
  const Gemm& g = *j.g;
  const DenseUnit& u = *j.u;
  const i64 side = (j.columns + j.across - 1) / j.across, strips = (j.m + u.mr - 1) / u.mr;
  const i64 i0 = task / side * j.rows, c0 = task % side * j.across;
  const i64 rows = std::min(j.rows, j.m - i0), columns = std::min(j.across, j.columns - c0);
  if (u.begin) u.begin();
  for (i64 k = 0; k < g.k; k += kTileDepth) {
    const i64 depth = std::min(kTileDepth, g.k - k), strip = u.a_bytes(depth), group = u.b_bytes(g.k);
    const std::byte* a = j.a + strips * u.a_bytes(k) + i0 / u.mr * strip;
    for (i64 c = c0; c < c0 + columns; c += u.nr)
      for (i64 r = 0; r < rows; r += u.mr)
        u.tile(a + r / u.mr * strip, j.b + c / kGroup * group + u.b_bytes(k), group, depth,
               g.c + (j.i0 + i0 + r) * g.c_m + j.j0 + c, g.c_m, std::min<i64>(u.mr, rows - r),
               std::min<i64>(u.nr, c0 + columns - c), k > 0);
  }
  if (u.end) u.end();
  finish(g, j.i0 + i0, rows, j.j0 + c0, j.j0 + c0 + columns);
}

// Columns [j0, j0 + columns): B as it lies in memory, or a panel of it.
void columns(Job& j, Parallel& parallel, bool first) {
  const Gemm& g = *j.g;
  const i64 mr = j.u->mr, step = packed_rows(g, *j.u);
  for (j.i0 = 0; j.i0 < g.m; j.i0 += step) {
    j.m = std::min(step, g.m - j.i0);
    j.groups = j.panel && j.i0 == 0 ? (j.columns + kGroup - 1) / kGroup : 0;
    const i64 strips = first || step < g.m ? (j.m + mr - 1) / mr : 0;  // else they lie there since the first panel
    parallel.run(static_cast<int>(j.groups + strips), pack, &j);
    // rows in even blocks; columns in parts, so many that all workers are busy to the end
    const i64 blocks = (j.m + kRows - 1) / kRows;
    j.rows = up((j.m + blocks - 1) / blocks, mr);
    const i64 wanted = parallel.workers() == 1 ? 1 : std::max<i64>(1, (4 * parallel.workers() + blocks - 1) / blocks);
    j.across = std::clamp(up((j.columns + wanted - 1) / wanted, j.u->nr), kColumns, kBlock);
    parallel.run(static_cast<int>(blocks * ((j.columns + j.across - 1) / j.across)), compute_block, &j);
  }
}

void few_rows(const Gemm& g, Parallel& parallel, std::byte* scratch, const GemmTable& t, const DenseUnit& u) {
  const bool own = g.packed && u.gemv;  // else in f32, whatever the unit
  Job j{.g = &g, .t = &t, .u = own ? &u : nullptr, .panel = scratch, .shares = shares(g, parallel.workers())};
  Gemm arranged = g;
  float* to = reinterpret_cast<float*>(scratch);
  if (own) u.arrange(g, scratch);
  else if (g.packed && packed_has_minima(g.type)) t.step_sums(g, to);
  else if (!g.packed && t.arrange(g, to)) arranged.a = to, arranged.a_m = g.k, j.g = &arranged;
  parallel.run(j.shares.count(), stream, &j);
}

void zeros(const Gemm& g) {
  for (i64 i = 0; i < g.m; ++i) std::fill(g.c + i * g.c_m, g.c + i * g.c_m + g.n, 0.0f);
  finish(g, 0, g.m, 0, g.n);
}

// All columns of one product; `first` of those that share A.
void many_rows(Job& j, Parallel& parallel, std::byte* scratch, bool first) {
  const Gemm& g = *j.g;
  if (ready(g, *j.u)) {
    j.b = static_cast<const std::byte*>(g.b);
    j.columns = g.n;
    return columns(j, parallel, first);
  }
  j.b = j.panel = scratch + a_bytes(g, *j.u);
  for (j.j0 = 0; j.j0 < g.n; j.j0 += kPanel) {
    j.columns = std::min(kPanel, g.n - j.j0);
    columns(j, parallel, first && j.j0 == 0);
  }
}

void product(const Gemm& g, Parallel& parallel, std::byte* scratch, const GemmTable& t, const DenseUnit& u) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0) {
    for (const Gemm* p = &g; p; p = p->also) zeros(*p);
    return;
  }
  Job j{.g = &g, .t = &t, .u = &u};
  if (g.m <= kFewRows && g.a_k == 1 && (g.packed || g.type != WeightType::F32 || g.b_k == 1))
    return few_rows(g, parallel, scratch, t, u);
  if (g.m <= kFewRows && g.b_n == 1 && !g.packed)
    return parallel.run(static_cast<int>((g.n + kColumns - 1) / kColumns), stream_columns, &j);
  j.a = scratch;
  for (j.g = &g; j.g; j.g = j.g->also) {
    j.j0 = 0;
    many_rows(j, parallel, scratch, j.g == &g);
  }
}

struct BatchJob {
  Gemm g;
  GemmBatch step;
  const GemmTable* t;
  const DenseUnit* u;
  std::byte* scratch;
  i64 bytes;  // scratch of one worker
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
  product(at(j, task), *alone, j.scratch + worker * j.bytes, *j.t, *j.u);
}

}  // namespace

std::string_view name(WeightType t) {
  static constexpr std::string_view plain[] = {"f32", "f16", "bf16"};
  const QuantInfo* format = block_format(t);
  return format ? format->name : plain[static_cast<int>(t)];
}

std::size_t gemm_scratch_bytes(const Gemm& g, int workers) {
  i64 most = 0;
  for (const Isa isa : {Isa::Generic, Isa::Avx2, Isa::Avx512, Isa::Neon})
    most = std::max(most, scratch_bytes(g, unit(g, isa)));
  return static_cast<std::size_t>(std::max(most, workers * std::min(most, kShared)));
}

void gemm(const Gemm& g, const GemmBatch& batch, Parallel& parallel, std::byte* scratch, Isa isa) {
  const DenseUnit& u = unit(g, isa);
  BatchJob j{g, batch, &table(isa), &u, scratch, scratch_bytes(g, u)};
  // small products are shared out whole, each worker with scratch of its own
  if (batch.count > 1 && g.m * g.n * g.k < (i64{1} << 22) && j.bytes <= kShared)
    return parallel.run(static_cast<int>(batch.count), one_of_batch, &j);
  for (i64 b = 0; b < batch.count; ++b) product(at(j, b), parallel, j.scratch, *j.t, u);
}

}  // namespace lc::host
