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

Dim symbol(const Loop& l) { return Dim::index(std::stoi(l.symbol.substr(1)), l.extent); }

Dim renamed(const Dim& d, const std::string& from, const Dim& to) {
  return d.substitute([&](const std::string& s) { return s == from ? std::optional<Dim>(to) : std::nullopt; });
}

// Operands that reductions over the row read are fetched a row further on, and the last of these loops asks for them:
// they compute from the caches, so that memory would have nothing to do until the row is stored. What the output loop
// alone reads it fetches itself, a page further on.
std::vector<Prefetch> ahead(const Kernel& k, int out) {
  const auto loop = [&](int id) -> const Loop& { return k.loops[static_cast<std::size_t>(id)]; };
  const Loop* rows = loop(out).parent >= 0 ? &loop(loop(out).parent) : nullptr;
  std::vector<int> over_row;
  if (rows)
    for (const Item& i : rows->body.items)
      if (i.is_loop && loop(i.id).reduction >= 0 && loop(i.id).lanes && loop(i.id).extent == loop(out).extent)
        over_row.push_back(i.id);
  const int last = over_row.empty() ? -1 : over_row.back();
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
      if (id == out) all.push_back({out, i.buffer, i.offset + Dim(kPage / size)});
      else if (row > 0 && row * size <= kLongestRow)
        all.push_back({last, i.buffer, from(last) + Dim(row * ((kPage / size + row - 1) / row))});
    }
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
  k.ahead = ahead(k, k.output_loops - 1);
}

}  // namespace lc::ir
