#include "lightcone/codegen/simt/grid.h"

#include <algorithm>
#include <bit>

#include "lightcone/codegen/symbols.h"

namespace lc::codegen::simt {
namespace {

constexpr int kGroup = 256;                     // threads of a block by default
constexpr std::int64_t kWideAccess = 16;        // bytes
constexpr std::int64_t kManyThreads = 1 << 14;  // fewer do not hide memory latency: elements are not vectorised then
constexpr std::int64_t kSector = 32;            // least bytes of a memory transaction
constexpr std::int64_t kManyGroups = 256;       // with fewer, multiprocessors are idle
constexpr std::int64_t kInt = std::int64_t{1} << 31;
// The text declares shared memory, and CUDA limits declarations to 48 KB whatever a launch may have. Partial results of
// reductions are there next to the cached rows.
constexpr std::int64_t kMostDeclared = 48 << 10, kFoldedParts = 4 << 10;

// Returns true if all intermediate numbers of the Dim fit in 32 bits.
bool narrow(const Dim& d) {
  const auto fits = [](const Dim& x) {
    const Bounds b = x.bounds();
    return b.lo > -kInt && b.hi < kInt;
  };
  return fits(d) && std::ranges::all_of(d.terms(), [&](const Dim::Term& t) {
           Dim part = t.coefficient;
           for (const Dim::Atom* f : t.factors) {
             part = part * Dim::from(f);
             if (f->kind != Dim::Kind::Symbol && !(narrow(f->a) && narrow(f->b))) return false;
           }
           return fits(part);
         });
}

bool needs_wide(const Kernel& k) {
  Dim all = 1;
  for (int i = 0; i < k.output_loops; ++i) all = all * k.loops[i].extent;
  if (!narrow(all + Dim(2048)) || !narrow(k.store_offset)) return true;
  for (const Loop& l : k.loops)
    if (!narrow(l.extent + Dim(8192))) return true;
  return std::ranges::any_of(k.instrs, [](const Instr& i) {
    return !narrow(i.offset) || !narrow(i.valid) || !narrow(i.stride) || !narrow(i.extent);
  });
}

const Loop& loop_at(const Kernel& k, int id) { return k.loops[id]; }

bool has_loops(const Block& b) {
  return std::ranges::any_of(b.items, [](const Item& i) { return i.is_loop; });
}

// Returns true if the Dim is a multiple of n whenever the symbol is.
bool multiple(const Dim& d, std::string_view symbol, std::int64_t n) {
  const Dim rest = renamed(d, symbol, 0);
  return rest.offset() % n == 0 &&
         std::ranges::all_of(rest.terms(), [&](const Dim::Term& t) { return t.coefficient % n == 0; });
}

// The loads in a loop's own body that read neighbouring elements, and whether all of them begin at multiples of n.
struct Neighbours {
  std::int64_t bytes = 0, largest = 0;  // bytes of the smallest and of the largest element
  bool aligned = true;
};
Neighbours neighbours(const Kernel& k, const Loop& l, std::int64_t n) {
  Neighbours found;
  const auto see = [&](const Dim& offset, DType type) {
    if (coefficient(offset, l.symbol) != 1 || mentions(renamed(offset, l.symbol, 0), l.symbol)) return;
    if (!(offset - renamed(offset, l.symbol, 0) == symbol(l))) return;
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    found.bytes = found.bytes ? std::min(found.bytes, bytes) : bytes;
    found.largest = std::max(found.largest, bytes);
    found.aligned = found.aligned && multiple(offset, l.symbol, n);
  };
  for (const Item& i : l.body.items) {
    const Instr& in = k.instrs[i.id];
    if (!i.is_loop && in.code == Code::Load && in.valid == Dim(1)) see(in.offset, in.dtype);
  }
  if (l.reduction < 0) see(k.store_offset, k.dtype);
  return found;
}

// Returns the number of elements per thread: enough for a 16-byte access to the smallest elements, but at most eight if
// bytes are combined with larger ones.
int vector_of(const Kernel& k, const Loop& l) {
  const auto extent = l.extent.constant();
  if (!extent || has_loops(l.body)) return 1;
  const Neighbours found = neighbours(k, l, 1);
  const std::int64_t most = found.largest == 1 && k.reductions.empty() ? kWideAccess : 8;
  for (std::int64_t v = found.bytes ? kWideAccess / found.bytes : 1; v > 1; v /= 2)
    if (*extent % v == 0 && neighbours(k, l, v).aligned) return static_cast<int>(std::min(v, most));
  return 1;
}

std::int64_t most(const Dim& d) { return std::max<std::int64_t>(d.bounds().hi, 1); }

// Returns true if the loads of reductions are contiguous along the summed axis rather than along the innermost output
// loop.
bool sums_neighbours(const Kernel& k) {
  int along_sum = 0, along_result = 0;
  const std::string inner = k.output_loops ? loop_at(k, k.output_loops - 1).symbol : "";
  for (const Reduction& r : k.reductions)
    for (const Instr& i : k.instrs)
      if (i.code == Code::Load) {
        along_sum += coefficient(i.offset, loop_at(k, r.inner_loop).symbol) == 1;
        along_result += !inner.empty() && coefficient(i.offset, inner) == 1;
      }
  return along_sum >= along_result;
}

// Returns the number of iterations of a reduction.
Dim length(const Kernel& k, const Reduction& r) {
  Dim n = 1;
  for (int l = r.inner_loop;; l = loop_at(k, l).parent) {
    n = n * loop_at(k, l).extent;
    if (l == r.outer_loop) return n;
  }
}

int power_below(std::int64_t n) {
  return static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
}

// One vector width for all loops that the threads of a row share: a cached value is then read by the thread that wrote
// it.
int row_vector(const Kernel& k, int depth) {
  int v = 0;
  const auto take = [&](int at_most) { v = v ? std::min(v, at_most) : at_most; };
  for (const Reduction& r : k.reductions)
    if (loop_at(k, r.outer_loop).depth == depth)
      take(r.outer_loop == r.inner_loop ? vector_of(k, loop_at(k, r.inner_loop)) : 1);
  if (depth < k.output_loops) take(k.output_loops == depth + 1 ? vector_of(k, loop_at(k, depth)) : 1);
  return std::max(v, 1);
}

// Lets each thread sum a part of a column. Neighbouring threads have neighbouring columns, so that together they read
// whole sectors.
void lay_across(Grid& g, const Kernel& k, const GridLimits& limits, std::int64_t results, std::int64_t longest) {
  std::int64_t bytes = kSector;
  for (const DType t : k.buffers) bytes = std::min(bytes, static_cast<std::int64_t>(size_of(t)));
  const int group = power_below(std::min(limits.group, 1024));
  g.across = true;
  g.rows_a_group = std::min(32, group / 2);
  while (results / g.rows_a_group < kManyGroups && g.rows_a_group * bytes > kSector) g.rows_a_group /= 2;
  g.threads = std::max(2, std::min(group / g.rows_a_group, power_below(longest / 4)));
}

}  // namespace

Grid schedule(Kernel& k, const GridLimits& limits) {
  Grid g;
  g.wide = needs_wide(k);
  const int group = std::min(kGroup, limits.group);
  int depth = k.output_loops;
  std::int64_t longest = 0;
  for (const Reduction& r : k.reductions) {
    const int at = loop_at(k, r.outer_loop).depth;
    if (at > k.output_loops) continue;  // nested in another reduction
    depth = std::min(depth, at);
    longest = std::max(longest, most(length(k, r)));
  }
  g.rows = depth;
  std::int64_t results = 1;
  for (int i = 0; i < depth; ++i) results = std::min(kInt, results * most(loop_at(k, i).extent));
  const bool inside = depth == k.output_loops;
  std::int64_t written = 1;  // elements of a row
  for (int i = depth; i < k.output_loops; ++i) written = std::min(kInt, written * most(loop_at(k, i).extent));
  if (!inside) longest = std::max(longest, written);
  if (longest > 0 && (!inside || sums_neighbours(k) || results < kManyThreads)) {
    const std::int64_t steps = longest / (inside ? 2 : 1);
    g.threads = steps >= 2048 ? std::min(limits.group, steps >= 16384 && results < 512 ? 1024 : 256)
                              : std::min({power_below(steps), 32, group});
  }
  if (g.threads > 1 && inside && !sums_neighbours(k)) {
    lay_across(g, k, limits, results, longest);
    return g;
  }
  // With many short rows, wide accesses are better than many threads per row.
  if (const int fewer = power_below(longest / row_vector(k, depth));
      g.threads > 2 && fewer < g.threads && results * fewer >= kManyThreads)
    g.threads = std::max(fewer, 2);
  if (g.threads > 1 && !inside) {
    Kernel kept = k;
    const std::int64_t most_kept = std::min(limits.shared / 2, kMostDeclared - kFoldedParts);
    keep_rows(kept, most_kept);
    std::int64_t bytes = 0;
    for (const Row& r : kept.rows) bytes += r.elements * static_cast<std::int64_t>(size_of(r.dtype));
    // Several rows of a block share the memory: with long rows, a block has only one.
    if (bytes > 0 && bytes * std::max(1, group / g.threads) > most_kept) g.threads = group;
    if (bytes > 0) k = std::move(kept);
  }
  g.rows_a_group = std::max(1, group / g.threads);
  const Loop* inner = k.output_loops ? &loop_at(k, k.output_loops - 1) : nullptr;
  if (g.threads == 1 && inner && inside && k.reductions.empty()) {
    const int v = vector_of(k, *inner);
    g.vector = results / v >= kManyThreads ? v : 1;
  } else if (g.threads > 1) {
    g.vector = row_vector(k, depth);
    while (g.vector > 1 && longest / g.vector < g.threads) g.vector /= 2;
  }
  return g;
}

Dim groups(const Kernel& k, const Grid& grid) {
  Dim rows = 1;
  for (int i = 0; i < grid.rows; ++i) rows = rows * loop_at(k, i).extent;
  Dim all = 1;
  for (int i = 0; i < k.output_loops; ++i) all = all * loop_at(k, i).extent;
  if (grid.threads == 1 && grid.vector > 1) rows = rows / Dim(grid.vector);
  // No blocks are launched if there is no result, even if there are rows.
  const Dim none = less(all, 1);
  return (rows + Dim(grid.rows_a_group - 1)) / Dim(grid.rows_a_group) * (Dim(1) - none);
}

}  // namespace lc::codegen::simt
