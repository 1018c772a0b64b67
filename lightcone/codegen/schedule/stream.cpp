// Results that do not fit in any cache use non-temporal stores: an ordinary store first reads the line that it writes,
// a third of the traffic of a copy. Operands are prefetched one page or one row ahead: hardware prefetchers follow a
// stream within a page only, and see none while a row is computed from the cache.
#include <algorithm>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/codegen/symbols.h"

namespace lc::codegen {
namespace {

constexpr std::int64_t kShortest = 64;  // elements of a row that justify aligning vectors

// Rows of more bytes would evict the row being computed from the L2 cache.
std::int64_t longest_row(const Machine& m) { return m.l2 / 16; }

// Returns the prefetches of a kernel without tiles:
//   - Operands that reductions over the row read are fetched one row ahead, or as many rows as `fetch_rows` holds. The
//   last
//     of these loops issues the prefetches, because they compute from the caches and memory would be idle until the row
//     is stored. When fetching into L2, all loops over the row issue them.
//   - Operands of the output loop alone are fetched by it, one page ahead.
std::vector<Prefetch> ahead(const Kernel& k, int out, const Machine& m) {
  const auto loop = [&](int id) -> const Loop& { return k.loops[id]; };
  const Loop* rows = loop(out).parent >= 0 ? &loop(loop(out).parent) : nullptr;
  std::vector<int> over_row;
  if (rows)
    for (const Item& i : rows->body.items)
      if (i.is_loop && loop(i.id).reduction >= 0 && loop(i.id).lanes && loop(i.id).extent == loop(out).extent)
        over_row.push_back(i.id);
  const int last = over_row.empty() ? -1 : over_row.back(), level = static_cast<int>(m.fetch_level);
  over_row.push_back(out);
  std::vector<Prefetch> all;
  std::vector<std::pair<int, Dim>> seen;
  for (const int id : over_row)
    for (const Item& item : loop(id).body.items) {
      if (item.is_loop) break;
      const Instr& i = k.instrs[item.id];
      if (i.code != Code::Load || coefficient(i.offset, loop(id).symbol) != 1) continue;
      const auto from = [&](int other) { return renamed(i.offset, loop(id).symbol, symbol(loop(other))); };
      const std::int64_t row = rows ? coefficient(i.offset, rows->symbol) : 0;
      if (rows && row == 0) continue;  // the same in each row
      if (std::find(seen.begin(), seen.end(), std::pair(i.buffer, from(out))) != seen.end()) continue;
      seen.emplace_back(i.buffer, from(out));
      const auto size = static_cast<std::int64_t>(size_of(i.dtype));
      if (id == out && m.fetch > 0) all.push_back({out, i.buffer, i.offset + Dim(m.fetch / size), level});
      if (id == out || row <= 0 || row * size > longest_row(m)) continue;
      const Dim later = row * std::max<std::int64_t>(1, (m.fetch_rows / size + row - 1) / row);
      for (const int by : over_row)
        if (by == last || level == 2) all.push_back({by, i.buffer, from(by) + later, level});
    }
  return all;
}

// Prefetches the next tile while a tile is written, both of transposed operands and of those read in order. Element (a,
// b) prefetches (b, a) of the transposed square: each line that is written fetches one line. The target is L2, because
// rows at power-of-two distances collide in L1.
std::vector<Prefetch> ahead_of_tiles(const Kernel& k, int out) {
  const auto loop = [&](int id) -> const Loop& { return k.loops[id]; };
  const Loop &along = loop(out), &across = loop(out - 1);
  int next = out - 2;  // the loop that steps to the next tile
  while (next > 0 && loop(next).extent.bounds().hi <= loop(next).step) --next;
  const auto later = [&](const Dim& d, const Loop& by) { return renamed(d, by.symbol, symbol(by) + loop(next).step); };
  std::vector<Prefetch> all;
  const std::int64_t side = loop(across.tile).step;
  if (std::min(along.extent.bounds().hi, across.extent.bounds().hi) >= side)
    for (const Tile& t : k.tiles) {
      const Dim row = symbol(across) - symbol(loop(across.tile)), column = symbol(along) - symbol(loop(along.tile));
      all.push_back({out, t.buffer, later(t.origin, loop(next)) + row * t.stride + column, 2});
    }
  const Loop& through = across.tile == next ? across : along.tile == next ? along : loop(next);
  for (const Item& item : along.body.items) {
    const Instr& i = k.instrs[item.id];
    if (i.code != Code::Load || i.buffer >= static_cast<int>(k.buffers.size())) continue;
    if (coefficient(i.offset, along.symbol) == 1 && mentions(i.offset, through.symbol))
      all.push_back({out, i.buffer, later(i.offset, through), 2});
  }
  return all;
}

}  // namespace

void stream_result(Kernel& k, const Machine& m) {
  if (!k.tiles.empty()) k.ahead = ahead_of_tiles(k, k.output_loops - 1);  // also if everything fits in the caches
  if (k.output_loops == 0 || size_of(k.dtype) == 1) return;
  const Loop& out = k.loops[static_cast<std::size_t>(k.output_loops) - 1];
  Dim all = 1;
  for (int l = 0; l < k.output_loops; ++l) all = all * times(k.loops[l]);
  const auto has_loops = [](const Block& b) {
    return std::any_of(b.items.begin(), b.items.end(), [](const Item& i) { return i.is_loop; });
  };
  if (!out.lanes || has_loops(out.body) || out.extent.bounds().hi < kShortest) return;
  if (coefficient(k.store_offset, out.symbol) != 1) return;
  if (all.bounds().hi <= m.stream / static_cast<std::int64_t>(size_of(k.dtype))) return;
  k.streams = true, k.stream = m.stream;
  if (k.tiles.empty()) k.ahead = ahead(k, k.output_loops - 1, m);
}

}  // namespace lc::codegen
