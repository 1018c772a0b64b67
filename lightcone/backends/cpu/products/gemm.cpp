#include "lightcone/backends/cpu/products/gemm.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "lightcone/backends/cpu/kernels/abi/long_sums.h"
#include "lightcone/backends/cpu/products/apart.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/products/packed_weights.h"
#include "lightcone/backends/cpu/products/rounding.h"
#include "lightcone/backends/cpu/threads/work_stealing.h"

namespace lc::backends::cpu {
namespace products {
namespace {

constexpr i64 kPanel = 1024;             // columns of B per panel
constexpr i64 kColumns = 128;            // columns per task, at least
constexpr i64 kUnpackedFor = 1024;       // rows of A that share a repacked strip of B, at most
constexpr i64 kStrip = 2 * kPanelDepth;  // bytes per strip of B, at most
constexpr i64 kLeast = 16 << 10;         // bytes of B per streaming task, at least
constexpr i64 kFarApart = 1024;          // columns from which on rows of C share sets of the caches, and pages
constexpr i64 kSide = 16;                // strips of a transposed A per packing task, at most
constexpr i64 kGroups = 8;               // groups of B per packing task, at most, unless workers are few

// Limits for one task, so that its part of C stays in the cache: rows of A and columns of B.
i64 most_rows(const Gemm& g) { return Blocking(g.caches).rows(kTileDepth); }
i64 most_columns(const Gemm& g) { return Blocking(g.caches).columns(most_rows(g)); }
i64 packed_a(const Gemm& g) { return Blocking(g.caches).llc_bytes(4); }  // in bytes
const Microkernel& unit(const Gemm& g, Isa isa) { return g.unit ? *g.unit : *microkernel(Arithmetic::F32, isa); }

// Returns whether packed B already has the microkernel's layout. The sizes are compared because the step of bf16 tiles
// is longer than that of packed weights, so the layouts agree only if k is a whole number of steps.
bool ready(const Gemm& g, const Microkernel& u) {
  if (g.for_unit) return true;
  const bool same = u.exact() || (g.type == WeightType::Q8_0 && u.q8_as_packed) ||
                    (g.type == WeightType::F32 && u.arithmetic == Arithmetic::F32) ||
                    (g.type == WeightType::BF16 && u.arithmetic == Arithmetic::Bf16);
  return g.packed && same && packed_layout(g.type).group_bytes(g.k) == u.b_bytes(g.k);
}
bool unpacks(const Gemm& g, const Microkernel& u);
i64 panel_bytes(const Gemm& g, const Microkernel& u) {
  return ready(g, u) || unpacks(g, u) ? 0 : round_up(std::min(g.n, kPanel), kGroup) / kGroup * u.b_bytes(g.k);
}
// Largest k of one `tile` call. k is divided evenly, so that the strips of A and B stay in L2, and a tile's B in L1 if
// sums are kept apart.
i64 most_depth(const Microkernel& u) {
  const i64 groups = u.together > 0 ? u.nr / kGroup : 1;
  return u.gemv ? kTileDepth : std::max<i64>(1, kPanelDepth / (groups * u.b_bytes(64))) * 64;
}
i64 tile_depth(const Gemm& g, const Microkernel& u) {
  const i64 most = most_depth(u), parts = (g.k + most - 1) / most;
  return u.gemv ? most : round_up((g.k + parts - 1) / parts, 64);
}
// Returns whether B is repacked strip by strip, because packed weights do not have the microkernel's layout. Each
// worker repacks a strip just before multiplying it; the next strip is prefetched meanwhile, and there is no barrier
// per panel.
bool unpacks(const Gemm& g, const Microkernel& u) {
  return g.packed && !ready(g, u) && u.nr / kGroup * u.b_bytes(tile_depth(g, u)) <= kStrip;
}
i64 most_strips(const Gemm& g, const Microkernel& u) { return std::max<i64>(1, most_rows(g) / u.mr); }
// Number of strips of A packed at a time, for all columns. Rows from a prologue are packed all at once, because each is
// computed only once.
i64 packed_strips(const Gemm& g, const Microkernel& u) {
  const i64 all = (g.m + u.mr - 1) / u.mr;
  return g.rows ? all : std::min(all, std::max(most_strips(g, u), packed_a(g) / std::max<i64>(u.a_bytes(g.k), 1)));
}
// Bytes for packed strips of A. They never decrease with k, so the scratch of the largest product suffices for all.
i64 a_bytes(const Gemm& g, const Microkernel& u) {
  const i64 strips = (g.m + u.mr - 1) / u.mr, strip = u.a_bytes(g.k);
  const i64 most = std::max(most_strips(g, u) * strip, packed_a(g));
  return round_up(!g.rows && strips > most / std::max<i64>(strip, 1) ? most : strips * strip, 64);
}
// Returns whether each task packs its own rows of A, one k block at a time. A task that has all columns of its rows is
// their only reader, and the packed block stays in its cache. Where sums are kept apart, two tasks may pack the same
// rows, because that costs less than to hand them over.
bool may_pack_own(const Gemm& g, const Microkernel& u, i64 workers) {
  if (g.rows || g.next_in_group) return false;
  return u.together > 0 || (!unpacks(g, u) && (g.m + u.mr - 1) / u.mr >= 2 * workers * most_strips(g, u));
}
bool packs_own(const Gemm& g, const Microkernel& u, i64 workers) {
  if (!may_pack_own(g, u, workers)) return false;
  if (u.together == 0) return g.n <= std::min(kPanel, most_columns(g));
  const bool once = ready(g, u) || unpacks(g, u) || g.n <= kPanel;
  return once && apart_grid((g.m + u.mr - 1) / u.mr, (g.n + u.nr - 1) / u.nr, workers).across <= 2;
}
i64 own_bytes(const Gemm& g, const Microkernel& u) {
  if (u.together > 0) return apart_own_bytes(g, u);
  return round_up(most_strips(g, u) * u.a_bytes(std::min(round_up(g.k, 64), most_depth(u))), 64);
}
// Bytes of all packed A: shared by all workers, or one buffer per worker.
i64 all_a_bytes(const Gemm& g, const Microkernel& u, i64 workers) {
  return std::max(a_bytes(g, u), may_pack_own(g, u, workers) ? workers * own_bytes(g, u) : 0);
}
// Bytes per worker for rows computed by a prologue.
i64 rows_bytes(const Gemm& g, const Microkernel& u) { return g.rows ? round_up(u.mr * g.k * 4, 64) : 0; }
// Bytes for few rows of A: reordered rows, or their sums per step.
i64 few_bytes(const Gemm& g) { return round_up(std::min(g.m, kFewRows) * g.k * 4, 64); }
// Returns whether the product always has few rows and streams B as it is stored.
bool streams(const Gemm& g, const Microkernel& u) {
  return g.m <= kFewRows && !u.exact() && g.a_k == 1 && g.type != WeightType::F32;
}
bool sums_are_long(const Gemm& g, const Microkernel& u) { return g.k > kLongSum && !u.exact(); }
// Returns whether sums wait for the next k beside C, whose rows are far apart.
bool sums_wait(const Gemm& g, const Microkernel& u) { return g.k > most_depth(u) && g.n >= kFarApart; }
// Bytes per worker for sums beside C: of a task's piece of it, which is at most C itself. For long sums twice that.
i64 sums_bytes(const Gemm& g, const Microkernel& u) {
  if (u.together > 0) return apart_sums_bytes(g, u);
  if (!sums_are_long(g, u) && !sums_wait(g, u)) return 0;
  const i64 piece = round_up(most_rows(g), u.mr) * round_up(most_columns(g), u.nr);
  const i64 all = std::min(round_up(g.m, u.mr) * round_up(g.n, u.nr), std::max<i64>(u.mr * u.nr, piece));
  return round_up((sums_are_long(g, u) ? 8 : 4) * all, 64);
}
i64 scratch_bytes(const Gemm& g, const Microkernel& u, i64 workers) {
  if (streams(g, u)) return few_bytes(g);
  return round_up(std::max(all_a_bytes(g, u, workers) + panel_bytes(g, u), few_bytes(g)), 64) +
         workers * sums_bytes(g, u);
}

i64 groups_of(const Gemm& g) { return round_up(g.n, kGroup) / kGroup; }
// Returns whether all products of a group have the same number of columns. Their groups of 16 columns are then
// processed together, otherwise one product after another.
bool same_width(const Gemm& g) {
  for (const Gemm* p = g.next_in_group; p; p = p->next_in_group)
    if (p->n != g.n) return false;
  return true;
}
// Distribution of groups of 16 rows of B over workers that stream them.
StealingRanges shares(const Gemm& g, int workers) {
  const i64 one = g.packed ? packed_layout(g.type).group_bytes(g.k) : kGroup * g.b_n * unit_bytes(g.type);
  const bool wide = same_width(g);
  i64 bytes = one, groups = groups_of(g);
  for (const Gemm* p = g.next_in_group; p; p = p->next_in_group) (wide ? bytes : groups) += wide ? one : groups_of(*p);
  // If the workers' L2 caches hold all of B, each worker takes its whole share at once, so it reads the same data every
  // time.
  const i64 even = groups * bytes <= workers * g.caches.l2 ? (groups + workers - 1) / workers : 1;
  return {groups, std::max(even, kLeast / std::max<i64>(bytes, 1)), workers};
}

// Streams groups [first, last) of one product.
void stream_groups(const Job& j, const Gemm& g, i64 first, i64 last) {
  if (first >= last) return;
  const i64 begin = first * kGroup, end = std::min(g.n, last * kGroup);
  if (j.u) j.u->gemv(&g, j.panel, first, last);
  else if (g.packed) j.t->gemv_packed(&g, reinterpret_cast<const float*>(j.panel), first, last);
  else j.t->gemv(&g, begin, end);
  finish(g, 0, g.m, begin, end);
}
// Streams groups [first, last) of a product and of the others in its group.
void stream_all(const Job& j, i64 first, i64 last) {
  const bool wide = same_width(*j.g);
  i64 before = 0;  // groups of earlier products
  for (const Gemm* p = j.g; p; p = p->next_in_group) {
    const i64 groups = groups_of(*p);
    stream_groups(j, *p, std::clamp(first - before, i64{0}, groups), std::clamp(last - before, i64{0}, groups));
    if (!wide) before += groups;
  }
}
void stream(void* arg, int, int worker) {
  const Job& j = *static_cast<Job*>(arg);
  for (i64 first = 0, last = 0; j.shares->take(worker, first, last);) stream_all(j, first, last);
}
void stream_columns(void* arg, int task, int) {
  const Job& j = *static_cast<Job*>(arg);
  const i64 begin = task * kColumns, end = std::min(j.g->n, begin + kColumns);
  j.t->axpy(j.g, begin, end);
  finish(*j.g, 0, j.g->m, begin, end);
}

// A packing task: some groups of columns of B, or strips of rows of A.
void pack(void* arg, int task, int worker) {
  const Job& j = *static_cast<Job*>(arg);
  const Gemm& g = *j.g;
  const Microkernel& u = *j.u;
  if (task < j.groups.parts) {
    const i64 first = j.groups.begin(task), last = j.groups.begin(task + 1), bytes = u.b_bytes(g.k);
    return u.pack_b(&g, j.j0 + first * kGroup, std::min(last * kGroup, j.columns) - first * kGroup, 0, g.k,
                    j.panel + first * bytes, bytes);
  }
  const i64 first = j.bundles.begin(task - j.groups.parts), last = j.bundles.begin(task - j.groups.parts + 1);
  float* made = nullptr;
  if (g.rows) {
    made = reinterpret_cast<float*>(j.rows + worker * rows_bytes(g, u));
    g.rows(g.rows_self, j.i0 + j.strips.begin(first), j.strips.size(first), made);
  }
  for (i64 k = 0; k < g.k; k += j.depth) {
    const i64 depth = std::min(j.depth, g.k - k);
    pack_strips(j, first, last, k, depth, made, j.a + j.strips.parts * u.a_bytes(k) + first * u.a_bytes(depth));
  }
}

// Where the sums of a piece of C wait for the next k.
struct Sums {
  float* first;
  i64 row, strip, tile;  // in floats: between rows of a tile, between strips, between tiles of columns
};

// Copies sums that waited in blocks of a tile each to C.
void put(const Job& j, const Sums& sums, i64 s0, i64 s1, i64 c0, i64 c1) {
  const i64 nr = j.u->nr;
  for (i64 s = s0; s < s1; ++s)
    for (i64 r = 0; r < j.strips.size(s); ++r) {
      float* to = j.g->c + (j.i0 + j.strips.begin(s) + r) * j.g->c_m + j.j0;
      const float* from = sums.first + (s - s0) * sums.strip + r * sums.row;
      for (i64 c = c0; c < c1; c += nr, from += sums.tile) std::copy_n(from, std::min(nr, c1 - c), to + c);
    }
}

// Computes columns [c0, c1) of strips [s0, s1). `own`: buffer for A if the worker packs it. `beside`: scratch for the
// piece of C, twice if sums are long; null if one call of `tile` has all k.
//
// Rows of C may be a power of two apart, and then share a few sets of the caches, from which they drive each other.
// Sums therefore wait for the next k in blocks of a tile each.
void compute(const Job& j, i64 s0, i64 s1, i64 c0, i64 c1, std::byte* own, float* beside) {
  const Gemm& g = *j.g;
  const Microkernel& u = *j.u;
  const i64 i0 = j.i0 + j.strips.begin(s0);
  alignas(64) std::byte unpacked[kStrip];
  const bool longer = sums_are_long(g, u);
  const i64 all_rows = j.i0 + j.strips.begin(s1) - i0, tile = u.mr * u.nr;
  const Sums sums = !beside  ? Sums{g.c + i0 * g.c_m + j.j0 + c0, g.c_m, 0, u.nr}
                    : longer ? Sums{beside, c1 - c0, 0, u.nr}
                             : Sums{beside, u.nr, tile, (s1 - s0) * tile};
  for (i64 k = 0, n = 0; k < g.k; k += j.depth, ++n) {
    const i64 depth = std::min(j.depth, g.k - k), strip = u.a_bytes(depth);
    const bool add = longer ? n % kSumsOfTiles > 0 : n > 0;
    const i64 group = j.unpacks ? u.b_bytes(depth) : stored_bytes(j, g.k);
    const std::byte* a = own ? own : j.a + j.strips.parts * u.a_bytes(k) + s0 * strip;
    if (own) pack_strips(j, s0, s1, k, depth, nullptr, own);
    for (i64 c = c0; c < c1; c += u.nr) {
      const bool last = c + u.nr >= c1;
      const i64 next = last ? c0 : c + u.nr, next_k = last && k + depth < g.k ? k + depth : k;
      Ahead ahead{stored(j, next, next_k),
                  a,
                  stored_bytes(j, g.k),
                  stored_bytes(j, depth),
                  std::min<i64>(u.nr, c1 - next + kGroup - 1) / kGroup,
                  u.steps(depth) * u.fetched};
      if (j.unpacks) u.pack_b(&g, j.j0 + c, std::min<i64>(u.nr, c1 - c), k, depth, unpacked, group);
      const std::byte* b = j.unpacks ? unpacked : stored(j, c, k);
      for (i64 s = s0, i = i0, rows; s < s1; ++s, i += rows) {
        rows = j.i0 + j.strips.begin(s + 1) - i;
        float* to =
            sums.first + (c - c0) / u.nr * sums.tile + (sums.strip > 0 ? (s - s0) * sums.strip : (i - i0) * sums.row);
        u.tile(a + (s - s0) * strip, b, group, depth, to, sums.row, rows, std::min<i64>(u.nr, c1 - c), add,
               ahead.next());
      }
    }
    const bool end = k + depth == g.k;
    if (longer && (end || n % kSumsOfTiles == kSumsOfTiles - 1))
      add_blocks(g.c + i0 * g.c_m + j.j0 + c0, g.c_m, beside + all_rows * sums.row, beside, all_rows, c1 - c0,
                 n < kSumsOfTiles, end);
  }
  if (sums.strip > 0) put(j, sums, s0, s1, c0, c1);
  finish(g, i0, all_rows, j.j0 + c0, j.j0 + c1);
}

void compute_block(void* arg, int task, int worker) {
  const Job& j = *static_cast<Job*>(arg);
  const i64 nr = j.u->nr, row = task / j.across.parts, column = task % j.across.parts;
  const i64 s0 = j.down.begin(row), s1 = j.down.begin(row + 1), c0 = j.across.begin(column) * nr,
            c1 = std::min(j.columns, j.across.begin(column + 1) * nr);
  if (s0 == s1 || c0 >= c1) return;  // more tasks than strips or tiles
  if (j.u->begin) j.u->begin();
  std::byte* own = j.own ? j.a + worker * own_bytes(*j.g, *j.u) : nullptr;
  std::byte* sums = j.sums ? j.sums + worker * j.sums_bytes : nullptr;
  if (j.u->together > 0) {
    compute_apart(j, s0, s1, c0, c1, own, sums);
  } else if (!sums) {
    compute(j, s0, s1, c0, c1, own, nullptr);
  } else {  // pieces of as many tiles as the scratch holds
    const i64 size = sums_are_long(*j.g, *j.u) ? 8 : 4, tiles = j.sums_bytes / (size * j.u->mr * nr);
    const i64 strips = std::min(tiles, s1 - s0), wide = tiles / strips * nr;
    auto* to = reinterpret_cast<float*>(sums);
    for (i64 s = s0; s < s1; s += strips)
      for (i64 c = c0; c < c1; c += wide) compute(j, s, std::min(s1, s + strips), c, std::min(c1, c + wide), own, to);
  }
  if (j.u->end) j.u->end();
}

// Number of column parts for every row part, each of at most `widest` columns, such that all workers are busy to the
// end.
i64 parts_across(const Job& j, i64 tiles, i64 widest, i64 workers) {
  const i64 least = (tiles * j.u->nr + widest - 1) / widest, most = std::max<i64>(1, tiles * j.u->nr / kColumns);
  if (workers == 1) return least;
  const i64 wanted = std::clamp((4 * workers + j.down.parts - 1) / j.down.parts, least, std::max(least, most));
  for (i64 parts = wanted; parts < wanted + workers && parts <= most; ++parts)
    if (j.down.parts * parts % workers == 0) return parts;
  return wanted;
}
// Divides the product into tasks of few rows, whose part of A stays in the cache. If B is repacked, tasks have many
// rows, unless there would be too few tasks to keep all workers busy.
void share_out(Job& j, i64 workers) {
  const i64 mr = j.u->mr, rows = j.strips.parts * mr, tiles = (j.columns + j.u->nr - 1) / j.u->nr;
  if (j.u->together > 0) {
    const Grid grid = apart_grid(j.strips.parts, tiles, workers);
    j.down = {j.strips.parts, grid.down}, j.across = {tiles, grid.across};
    return;
  }
  const i64 height = most_strips(*j.g, *j.u) * mr;
  j.down = {j.strips.parts, (rows + height - 1) / height};
  if (j.own) {
    j.down.parts = round_up(std::max(j.down.parts, 4 * workers), workers);
    j.across = {tiles, 1};
    return;
  }
  i64 widest = most_columns(*j.g);
  if (j.unpacks) {
    const i64 across = std::max<i64>(1, tiles * j.u->nr / kColumns), wanted = (2 * workers + across - 1) / across;
    j.down.parts = std::min(j.down.parts, std::max((rows + kUnpackedFor - 1) / kUnpackedFor, wanted));
    widest = std::max(kColumns, std::min(widest, height * widest * j.down.parts / rows));
  }
  j.across = {tiles, parts_across(j, tiles, widest, workers)};
}

// Number of tasks for packing A.
i64 bundles(const Job& j, i64 workers) {
  const i64 strips = j.strips.parts;
  return packs_k_pairs(*j.g, *j.u) ? std::max(round_up(strips, kSide) / kSide, std::min(strips, 2 * workers)) : strips;
}

// Computes columns [j0, j0 + columns), from B as it is stored or from a panel.
void columns(Job& j, Parallel& parallel, bool first) {
  const Gemm& g = *j.g;
  const i64 mr = j.u->mr, strips = (g.m + mr - 1) / mr, most = j.own ? strips : packed_strips(g, *j.u);
  const Even blocks{g.m, (strips + most - 1) / most};
  for (i64 block = 0; block < blocks.parts; ++block) {
    const i64 m = blocks.size(block);
    j.i0 = blocks.begin(block);
    j.strips = {m, (m + mr - 1) / mr};
    const i64 groups = j.panel && block == 0 ? (j.columns + kGroup - 1) / kGroup : 0;
    j.groups = {groups, std::min(groups, std::max<i64>((groups + kGroups - 1) / kGroups, 2 * parallel.workers()))};
    const bool packs = !j.own && (first || blocks.parts > 1);  // otherwise A has been packed for the first panel
    j.bundles = {j.strips.parts, packs ? bundles(j, parallel.workers()) : 0};
    parallel.run(static_cast<int>(j.groups.parts + j.bundles.parts), pack, &j);
    share_out(j, parallel.workers());
    parallel.run(static_cast<int>(j.down.parts * j.across.parts), compute_block, &j);
  }
}

void skinny_gemm(const Gemm& g, Parallel& parallel, std::byte* scratch, const GemmTable& t, const Microkernel& u) {
  const bool own = g.packed && u.gemv;  // otherwise computed in f32, whatever the microkernel
  StealingRanges all = shares(g, parallel.workers());
  Job j{.g = &g, .t = &t, .u = own ? &u : nullptr, .panel = scratch, .shares = &all};
  Gemm reordered = g;
  float* to = reinterpret_cast<float*>(scratch);
  if (own) u.pack_rows(&g, scratch);
  else if (g.packed && packed_has_minima(g.type)) t.step_sums(&g, to);
  else if (!g.packed && t.reorder_rows(&g, to)) reordered.a = to, reordered.a_m = g.k, j.g = &reordered;
  parallel.run(all.parts(), stream, &j);
}

void zeros(const Gemm& g) {
  for (i64 i = 0; i < g.m; ++i) std::fill(g.c + i * g.c_m, g.c + i * g.c_m + g.n, 0.0f);
  finish(g, 0, g.m, 0, g.n);
}

// Computes all columns of one product. `first`: it is the first of the group, so A is not packed yet. The others find A
// packed, and the scratch divided for the first: none of them packs rows of its own.
void many_rows(Job& j, Parallel& parallel, std::byte* scratch, bool first) {
  const Gemm& g = *j.g;
  j.unpacks = unpacks(g, *j.u);
  j.own = first && packs_own(g, *j.u, parallel.workers());
  if (j.unpacks || ready(g, *j.u)) {
    j.b = static_cast<const std::byte*>(g.b);
    j.columns = g.n;
    return columns(j, parallel, first);
  }
  j.b = j.panel = scratch + all_a_bytes(g, *j.u, parallel.workers());
  for (j.j0 = 0; j.j0 < g.n; j.j0 += kPanel) {
    j.columns = std::min(kPanel, g.n - j.j0);
    columns(j, parallel, first && j.j0 == 0);
  }
}

void product(const Gemm& g, Parallel& parallel, std::byte* scratch, const GemmTable& t, const Microkernel& u) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0) {
    for (const Gemm* p = &g; p; p = p->next_in_group) zeros(*p);
    return;
  }
  Job j{.g = &g, .t = &t, .u = &u};
  const bool few = g.m <= kFewRows && !u.exact() && !g.for_unit;
  if (few && g.a_k == 1 && (g.packed || g.type != WeightType::F32 || g.b_k == 1))
    return skinny_gemm(g, parallel, scratch, t, g.few ? *g.few : u);
  if (few && g.b_n == 1 && !g.packed && g.type == WeightType::F32)
    return parallel.run(static_cast<int>((g.n + kColumns - 1) / kColumns), stream_columns, &j);
  j.a = scratch, j.rows = scratch + scratch_bytes(g, u, parallel.workers()), j.depth = tile_depth(g, u);
  j.sums_bytes = sums_bytes(g, u);
  if (j.sums_bytes > 0) j.sums = j.rows - parallel.workers() * j.sums_bytes;
  for (j.g = &g; j.g; j.g = j.g->next_in_group) {
    j.j0 = 0;
    many_rows(j, parallel, scratch, j.g == &g);
  }
}

struct BatchJob {
  Gemm g;
  GemmBatch step;
  const GemmTable* t;
  const Microkernel* u;
  std::byte* scratch;
  i64 bytes;  // scratch per worker
};
Gemm at(const BatchJob& j, i64 index) {
  Gemm g = j.g;
  g.a = a_at(g, *j.u, index * j.step.a);
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
}  // namespace products

std::size_t gemm_scratch_bytes(const Gemm& g, int workers) {
  using namespace products;
  i64 shared = 0, alone = 0, rows = 0;
  for (const Isa isa : {Isa::Generic, Isa::Avx2, Isa::Avx512, Isa::Neon}) {
    shared = std::max(shared, scratch_bytes(g, unit(g, isa), workers));
    alone =
        std::max(alone, scratch_bytes(g, unit(g, isa), 1));  // it may be more: one worker packs its own rows earlier
    rows = std::max(rows, rows_bytes(g, unit(g, isa)));
  }
  return static_cast<std::size_t>(std::max(shared + workers * rows, workers * std::min(alone, g.caches.l2)));
}

void gemm(const Gemm& g, const GemmBatch& batch, Parallel& parallel, std::byte* scratch, Isa isa) {
  using namespace products;
  const Microkernel& u = unit(g, isa);
  BatchJob j{g, batch, kernel_tables(isa).gemm, &u, scratch, scratch_bytes(g, u, 1)};
  // Small products are distributed whole; each worker has its own scratch.
  if (batch.count > 1 && g.m * g.n * g.k < (i64{1} << 22) && j.bytes <= g.caches.l2)
    return parallel.run(static_cast<int>(batch.count), one_of_batch, &j);
  for (i64 b = 0; b < batch.count; ++b) product(at(j, b), parallel, j.scratch, *j.t, u);
}

}  // namespace lc::backends::cpu
