// Results that no cache holds are written past the caches: an ordinary store reads the line it writes first, which
// is a third of the traffic of a copy. And what will be read next is asked for one page or one row ahead: the
// hardware follows a stream within a page only, and sees none while a row is computed from the cache.
#include <algorithm>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/codegen/symbols.h"

namespace lc::ir {
namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kLongestRow = 64 << 10;  // bytes; a longer one would push this row out of the L2 cache
constexpr std::int64_t kShortest = 64;          // elements of a row worth the vectors' alignment

Dim renamed(const Dim& d, const std::string& from, const Dim& to) {
  return d.substitute([&](const std::string& s) { return s == from ? std::optional<Dim>(to) : std::nullopt; });
}

// What a step of the output loop fetches: operands read with it a page further on, those that reductions over the
// same row read first a row further on.
std::vector<Prefetch> ahead(const Kernel& k, const Loop& out) {
  std::vector<Prefetch> all;
  const Dim lane = Dim::index(std::stoi(out.symbol.substr(1)), out.extent);
  const Loop* rows = out.parent >= 0 ? &k.loops[static_cast<std::size_t>(out.parent)] : nullptr;
  std::vector<std::pair<int, Dim>> seen;
  const auto look = [&](const Loop& l) {
    for (const Item& item : l.body.items) {
      if (item.is_loop) return;
      const Instr& i = k.instrs[static_cast<std::size_t>(item.id)];
      if (i.code != Code::Load || coefficient(i.offset, l.symbol) != 1) continue;
      const Dim offset = renamed(i.offset, l.symbol, lane);
      const std::int64_t row = rows ? coefficient(offset, rows->symbol) : 0;
      if (rows && row == 0) continue;  // read again in each row
      if (std::find(seen.begin(), seen.end(), std::pair(i.buffer, offset)) != seen.end()) continue;
      seen.emplace_back(i.buffer, offset);
      const auto size = static_cast<std::int64_t>(size_of(i.dtype));
      if (&l == &out) all.push_back({i.buffer, offset + Dim(kPage / size)});
      else if (row > 0 && row * size <= kLongestRow)
        all.push_back({i.buffer, offset + Dim(row * ((kPage / size + row - 1) / row))});
    }
  };
  if (rows)
    for (const Loop& l : k.loops)
      if (l.reduction >= 0 && l.lanes && l.parent == out.parent && l.extent == out.extent) look(l);
  look(out);
  return all;
}

}  // namespace

void stream_result(Kernel& k, std::int64_t bytes) {
  if (k.output_loops == 0 || size_of(k.dtype) == 1) return;
  const Loop& out = k.loops[static_cast<std::size_t>(k.output_loops) - 1];
  Dim all = 1;
  for (int l = 0; l < k.output_loops; ++l) all = all * k.loops[static_cast<std::size_t>(l)].extent;
  const auto has_loops = [](const Block& b) {
    return std::any_of(b.items.begin(), b.items.end(), [](const Item& i) { return i.is_loop; });
  };
  if (!out.lanes || has_loops(out.body) || out.extent.bounds().hi < kShortest) return;
  if (coefficient(k.store_offset, out.symbol) != 1) return;
  if (all.bounds().hi <= bytes / static_cast<std::int64_t>(size_of(k.dtype))) return;
  k.streams = true;
  k.ahead = ahead(k, out);
}

}  // namespace lc::ir
