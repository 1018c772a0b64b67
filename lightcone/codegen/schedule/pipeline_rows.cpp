// Software pipelining of the loops over rows that come from memory. Row after row, memory would be read during the
// first loop and written during the last one, never both at once, although a copy is twice as fast. So the last loop
// writes row r while the first one reads row r + 2 and the second one is at row r + 1, all in one loop, one vector of
// each per step: a core has at most a dozen cache lines in flight, so longer phases would again be pure reads or pure
// writes. The arithmetic of a row and its order of additions do not change, only the order of rows.
#include <algorithm>
#include <bit>
#include <optional>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/codegen/symbols.h"

namespace lc::codegen {
namespace {

const Loop& loop(const Kernel& k, int id) { return k.loops[id]; }

// Returns the loops over a row that form the body of the loop around the output loop, or none.
std::vector<int> loops_over_row(const Kernel& k) {
  if (!k.streams || !k.tiles.empty() || k.output_loops < 2) return {};
  const int out = k.output_loops - 1;
  std::vector<int> all;
  for (const Item& i : loop(k, out - 1).body.items) {
    if (!i.is_loop) continue;
    const Loop& l = loop(k, i.id);
    const bool alone = std::none_of(l.body.items.begin(), l.body.items.end(), [](const Item& x) { return x.is_loop; });
    if (!l.lanes || !alone || !(l.extent == loop(k, out).extent)) return {};
    if (i.id != out && k.reductions[l.reduction].outer_loop != i.id) return {};
    all.push_back(i.id);
  }
  const auto& items = loop(k, out - 1).body.items;
  if (all.size() < 2 || !items.back().is_loop || items.back().id != out) return {};
  return all;
}

std::int64_t bytes(const Row& r) { return r.elements * (r.dtype == DType::F64 ? 8 : 4); }

// Returns the number of copies of a cached row: one per row of the result between the first loop that writes it and the
// last one that reads it, where the reader runs before the writer in each step.
int copies(const Kernel& k, const std::vector<int>& loops, int row) {
  std::size_t written = loops.size(), read = 0;
  for (std::size_t n = 0; n < loops.size(); ++n)
    for (const Item& i : loop(k, loops[n]).body.items) {
      const Instr& in = k.instrs[i.id];
      if (std::any_of(k.cached_values.begin(), k.cached_values.end(),
                      [&](const CachedValue& keep) { return keep.value == i.id && keep.row == row; }))
        written = std::min(written, n);
      if (in.code == Code::CachedRow && in.buffer == row) read = n;
    }
  return read > written ? static_cast<int>(std::bit_ceil(read - written)) : 1;
}

// An element that the loops read, listed once per loop: its offset in terms of the output loop, and the loop.
struct Read {
  int buffer;
  Dim offset;
  std::size_t by;
  const Instr* load;
  bool own;  // depends on the row; otherwise every row reads the same
};
std::optional<std::vector<Read>> reads(const Kernel& k, const std::vector<int>& loops) {
  const Loop& out = loop(k, k.output_loops - 1);
  const std::string& rows = loop(k, k.output_loops - 2).symbol;
  std::vector<Read> all;
  for (std::size_t n = 0; n < loops.size(); ++n)
    for (const Item& item : loop(k, loops[n]).body.items) {
      const Instr& i = k.instrs[item.id];
      if (i.code == Code::GatherLoad) return std::nullopt;
      const std::string& along = loop(k, loops[n]).symbol;
      if (i.code != Code::Load || !mentions(i.offset, along)) continue;
      all.push_back({i.buffer, renamed(i.offset, along, symbol(out)), n, &i, mentions(i.offset, rows)});
    }
  return all;
}

// Returns true if the rows in flight and what each row reads stay in the L2 cache.
bool near(const Kernel& k, const std::vector<Read>& reads, const std::vector<Row>& rows_kept, const Machine& m) {
  const std::int64_t extent = loop(k, k.output_loops - 1).extent.bounds().hi;
  std::int64_t all = 0;
  for (const Read& r : reads) all += extent * static_cast<std::int64_t>(size_of(r.load->dtype));
  for (const Row& r : rows_kept) all += r.copies * bytes(r);
  return all <= m.l2 / 4;
}

// Prefetches what comes from memory in the loop that reads it first.
void fetch(Kernel& k, const std::vector<int>& loops, const std::vector<Read>& reads, const Machine& m) {
  std::erase_if(k.ahead, [&](const Prefetch& p) { return std::count(loops.begin(), loops.end(), p.loop) > 0; });
  for (std::size_t n = 0; n < reads.size(); ++n) {
    const Read& r = reads[n];
    const auto same = [&](const Read& o) { return o.buffer == r.buffer && o.offset == r.offset; };
    if (m.fetch == 0 || !r.own || coefficient(r.load->offset, loop(k, loops[r.by]).symbol) != 1) continue;
    if (std::any_of(reads.begin(), reads.begin() + static_cast<std::ptrdiff_t>(n), same)) continue;
    const auto size = static_cast<std::int64_t>(size_of(r.load->dtype));
    k.ahead.push_back({loops[r.by], r.buffer, r.load->offset + Dim(m.fetch / size), static_cast<int>(m.fetch_level)});
  }
}

}  // namespace

void pipeline_rows(Kernel& k, const Machine& m) {
  if (!m.pipeline) return;
  const std::vector<int> loops = loops_over_row(k);
  if (loops.empty()) return;
  std::vector<Row> rows = k.rows;
  std::int64_t all = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].copies = copies(k, loops, static_cast<int>(r));
    all += rows[r].copies * bytes(rows[r]);
  }
  const auto read = reads(k, loops);
  if (all > kept_bytes(m) || !read || !near(k, *read, rows, m)) return;
  fetch(k, loops, *read, m);
  k.rows = std::move(rows);
  k.pipelined = k.output_loops - 2;
}

int ring_size(const Kernel& k) { return static_cast<int>(std::bit_ceil(stages(k).size())); }

std::vector<Stage> stages(const Kernel& k) {
  std::vector<Stage> all(1);
  for (const Item& i : loop(k, k.pipelined).body.items) {
    if (!i.is_loop) all.back().values.push_back(i.id);
    else all.back().loop = i.id, all.emplace_back();
  }
  all.pop_back();
  return all;
}

std::set<int> live_between_stages(const Kernel& k) {
  const std::vector<Stage> body = stages(k);
  const auto values_of = [&](const Stage& p) {
    std::vector<int> all;
    for (const Item& i : loop(k, p.loop).body.items) all.push_back(i.id);
    return all;
  };
  std::set<int> passed;
  for (const Stage& p : body)
    for (const Stage& other : body) {
      std::vector<int> readers = values_of(other);
      const int r = loop(k, other.loop).reduction;
      std::set<int> read{r < 0 ? k.result : k.reductions[r].value};
      if (&other != &p) readers.insert(readers.end(), other.values.begin(), other.values.end());
      for (const int id : readers) {
        const Instr& i = k.instrs[id];
        read.insert({i.a, i.b, i.c});
      }
      for (const int id : p.values)
        if (read.contains(id)) passed.insert(id);
    }
  return passed;
}

}  // namespace lc::codegen
