// Rows that memory holds pass through their loops as through a pipeline. One row after the other, memory reads while
// the first loop runs and writes while the last one does, and never both, though it could: a copy is twice as fast. So
// the last loop writes row r while the first one reads row r + 2 and the second one is at row r + 1, in turns of some
// lines. Every row is computed as before, in the same order of additions; only rows change places.
#include <algorithm>
#include <bit>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/codegen/symbols.h"

namespace lc::ir {
namespace {

constexpr std::int64_t kFirstLevel = 48 << 10;   // bytes of the cache
constexpr int kMostStreams = 2;                  // read from the second level at once; more keep the stores waiting
constexpr std::int64_t kLargestRows = 64 << 10;  // bytes on the stack
constexpr std::int64_t kLeastTurn = 128, kMostTurn = 256;

const Loop& loop(const Kernel& k, int id) { return k.loops[static_cast<std::size_t>(id)]; }

// The loops over a row that make up the body of the loop around the output loop, else none.
std::vector<int> loops_over_row(const Kernel& k) {
  if (!k.streams || !k.tiles.empty() || k.output_loops < 2) return {};
  const int out = k.output_loops - 1;
  std::vector<int> all;
  for (const Item& i : loop(k, out - 1).body.items) {
    if (!i.is_loop) continue;
    const Loop& l = loop(k, i.id);
    const bool alone = std::none_of(l.body.items.begin(), l.body.items.end(), [](const Item& x) { return x.is_loop; });
    if (!l.lanes || !alone || !(l.extent == loop(k, out).extent)) return {};
    if (i.id != out && k.reductions[static_cast<std::size_t>(l.reduction)].outer_loop != i.id) return {};
    all.push_back(i.id);
  }
  const auto& items = loop(k, out - 1).body.items;
  if (all.size() < 2 || !items.back().is_loop || items.back().id != out) return {};
  return all;
}

std::int64_t bytes(const Row& r) { return r.elements * (r.dtype == DType::F64 ? 8 : 4); }

// As many copies of a row of the kernel's own as rows of the result lie between the first loop that writes it and the
// last one that reads it: that one takes its turn before.
int copies(const Kernel& k, const std::vector<int>& loops, int row) {
  std::size_t written = loops.size(), read = 0;
  for (std::size_t n = 0; n < loops.size(); ++n)
    for (const Item& i : loop(k, loops[n]).body.items) {
      const Instr& in = k.instrs[static_cast<std::size_t>(i.id)];
      if (std::any_of(k.keeps.begin(), k.keeps.end(),
                      [&](const Keep& keep) { return keep.value == i.id && keep.row == row; }))
        written = std::min(written, n);
      if (in.code == Code::Kept && in.buffer == row) read = n;
    }
  return read > written ? static_cast<int>(std::bit_ceil(read - written)) : 1;
}

// Do loops that take turns find what they read in the first-level cache, or few streams of it in the second?
bool near(const Kernel& k, const std::vector<int>& loops, const std::vector<Row>& rows_kept) {
  const Loop& out = loop(k, k.output_loops - 1);
  const std::string& rows = loop(k, k.output_loops - 2).symbol;
  const std::int64_t extent = out.extent.bounds().hi;
  std::vector<std::tuple<int, Dim, std::size_t>> seen;
  int streams = 0;
  std::int64_t all = 0;
  for (std::size_t n = 0; n < loops.size(); ++n)
    for (const Item& item : loop(k, loops[n]).body.items) {
      const Instr& i = k.instrs[static_cast<std::size_t>(item.id)];
      if (i.code == Code::GatherLoad) return false;
      const std::string& along = loop(k, loops[n]).symbol;
      if (i.code != Code::Load || !mentions(i.offset, along)) continue;
      const bool own = mentions(i.offset, rows);
      const std::tuple what(i.buffer, renamed(i.offset, along, symbol(out)), own ? n : loops.size());
      if (std::find(seen.begin(), seen.end(), what) != seen.end()) continue;
      seen.push_back(what);
      const bool first = own && n == 0;  // comes from memory, and the next one with it
      streams += !first;
      all += extent * static_cast<std::int64_t>(size_of(i.dtype)) * (first ? 2 : 1);
    }
  for (const Row& r : rows_kept) {
    streams += r.copies;
    all += r.copies * bytes(r);
  }
  return all <= kFirstLevel || streams <= kMostStreams;
}

}  // namespace

void skew_rows(Kernel& k) {
  const std::vector<int> loops = loops_over_row(k);
  if (loops.empty()) return;
  std::vector<Row> rows = k.rows;
  std::int64_t all = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].copies = copies(k, loops, static_cast<int>(r));
    all += rows[r].copies * bytes(rows[r]);
  }
  if (all > kLargestRows || !near(k, loops, rows)) return;
  k.rows = std::move(rows);
  k.skewed = k.output_loops - 2;
}

// An eighth of a row, for the loops' first and last turns have nobody beside them; but each turn begins anew.
std::int64_t turn(const Kernel& k) {
  const std::int64_t extent = loop(k, k.output_loops - 1).extent.bounds().hi;
  return std::clamp(extent / (8 * kLanes) * kLanes, kLeastTurn, kMostTurn);
}

int slots(const Kernel& k) { return static_cast<int>(std::bit_ceil(parts(k).size())); }

std::vector<Part> parts(const Kernel& k) {
  std::vector<Part> all(1);
  for (const Item& i : loop(k, k.skewed).body.items) {
    if (!i.is_loop) all.back().values.push_back(i.id);
    else all.back().loop = i.id, all.emplace_back();
  }
  all.pop_back();
  return all;
}

}  // namespace lc::ir
