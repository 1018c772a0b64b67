// Results that no cache holds are written past the caches: an ordinary store reads the line it writes first, which
// is a third of the traffic of a copy. And what will be read next is asked for one page or one row ahead: the
// hardware follows a stream within a page only, and sees none while a row is computed from the cache.
#include <algorithm>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/codegen/symbols.h"

namespace lc::codegen {
namespace {

constexpr std::int64_t kShortest = 64;  // elements of a row worth the vectors' alignment

// A longer row, in bytes, would push the one that is computed out of the L2 cache.
std::int64_t longest_row(const Machine& m) { return m.l2 / 16; }

// Operands that reductions over the row read are fetched a row further on, or as many as `fetch_rows` holds, and the
// last of these loops asks for them: they compute from the caches, so that memory would have nothing to do until the
// row is stored. (Into the second-level cache, all loops over the row ask.) What the output loop alone reads it fetches
// itself, a page further on.
std::vector<Prefetch> ahead(const Kernel& k, int out, const Machine& m) {
  const auto loop = [&](int id) -> const Loop& { return k.loops[static_cast<std::size_t>(id)]; };
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
      const Instr& i = k.instrs[static_cast<std::size_t>(item.id)];
      if (i.code != Code::Load || coefficient(i.offset, loop(id).symbol) != 1) continue;
      const auto from = [&](int other) { return renamed(i.offset, loop(id).symbol, symbol(loop(other))); };
      const std::int64_t row = rows ? coefficient(i.offset, rows->symbol) : 0;
      if (rows && row == 0) continue;  // read again in each row
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

// While a tile is written the next one comes, of operands that are turned round and of those read in order. What is
// fetched with element (a, b) is (b, a) of the square turned round: each line that is written comes with one that is
// read. It comes into the second-level cache, for in the first rows a power of two apart collide.
std::vector<Prefetch> ahead_of_tiles(const Kernel& k, int out) {
  const auto loop = [&](int id) -> const Loop& { return k.loops[static_cast<std::size_t>(id)]; };
  const Loop &along = loop(out), &across = loop(out - 1);
  int next = out - 2;  // the loop that steps to it
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
    const Instr& i = k.instrs[static_cast<std::size_t>(item.id)];
    if (i.code != Code::Load || i.buffer >= static_cast<int>(k.buffers.size())) continue;
    if (coefficient(i.offset, along.symbol) == 1 && mentions(i.offset, through.symbol))
      all.push_back({out, i.buffer, later(i.offset, through), 2});
  }
  return all;
}

}  // namespace

void stream_result(Kernel& k, const Machine& m) {
  if (!k.tiles.empty()) k.ahead = ahead_of_tiles(k, k.output_loops - 1);  // also where the caches hold all of it
  if (k.output_loops == 0 || size_of(k.dtype) == 1) return;
  const Loop& out = k.loops[static_cast<std::size_t>(k.output_loops) - 1];
  Dim all = 1;
  for (int l = 0; l < k.output_loops; ++l) all = all * times(k.loops[static_cast<std::size_t>(l)]);
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
