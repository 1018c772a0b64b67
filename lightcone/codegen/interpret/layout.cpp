#include "lightcone/codegen/interpret/layout.h"

#include <algorithm>

namespace lc::codegen {

using i64 = std::int64_t;
namespace {
constexpr int kNowhere = -2;
}

Layout::Layout(const Kernel& kernel)
    : k(kernel),
      home(k.instrs.size(), kNowhere),
      operands(k.instrs.size()),
      imports(k.loops.size()),
      cached_values(k.instrs.size()),
      owner(k.rows.size(), kNowhere),
      most(k.loops.size(), 1),
      extent(k.loops.size()),
      single_(k.loops.size()) {
  place.loops.resize(k.loops.size());
  for (const Instr& i : k.instrs) slots.push_back({i.dtype, -1});
  walk(k.top, -1, 0);
  for (std::size_t v = 0; v < home.size(); ++v) {
    if (home[v] == kNowhere) continue;  // another value has its slot
    const Instr& i = k.instrs[v];
    slots[v].loop = home[v];
    operands[v] = {slot(i.a, home[v]), slot(i.b, home[v]), slot(i.c, home[v])};
  }
  for (const Reduction& r : k.reductions) fed.push_back(slot(r.value, r.inner_loop));
  stored = slot(k.result, k.output_loops - 1);
  const auto used = [&](int row, int value) {
    int& o = owner[row];
    o = o == kNowhere ? home[value] : common(o, home[value]);
  };
  for (const CachedValue& keep : k.cached_values) {
    cached_values[keep.value].push_back(&keep);
    used(keep.row, keep.value);
  }
  for (std::size_t v = 0; v < home.size(); ++v)
    if (home[v] != kNowhere && k.instrs[v].code == Code::CachedRow) used(k.instrs[v].buffer, static_cast<int>(v));
  keep_single();
}

void Layout::walk(const Block& b, int loop, int depth) {
  for (const Item& i : b.items) {
    if (!i.is_loop) {
      home[i.id] = loop;
      continue;
    }
    LoopPositions::At& p = place.loops[i.id];
    p.parent = loop, p.depth = depth + 1;
    walk(k.loops[i.id].body, i.id, depth + 1);
  }
}

int Layout::slot(int value, int loop) {
  if (value < 0 || home[value] == loop) return value;
  std::vector<Import>& there = imports[loop];
  for (const Import& i : there)
    if (i.value == value) return i.slot;
  there.push_back({value, static_cast<int>(slots.size()), home[value] < 0});
  slots.push_back({k.instrs[value].dtype, loop});
  return there.back().slot;
}

int Layout::common(int a, int b) const {
  while (a != b) {
    if (place.depth(a) < place.depth(b)) std::swap(a, b);
    a = parent(a);
  }
  return a;
}

// Loops around tiles run one iteration at a time, because tiles are filled for one; so does the loop over pipelined
// rows.
void Layout::keep_single() {
  const auto all_around = [&](int loop) {
    for (; loop >= 0; loop = parent(loop)) single_[loop] = true;
  };
  for (std::size_t l = 0; l < k.loops.size(); ++l)
    if (k.loops[l].step > 1) single_[l] = true;
  for (const Tile& t : k.tiles) all_around(parent(t.across));
  all_around(k.pipelined);
}

i64 Layout::most_lanes(int loop) const {
  i64 n = 1;
  for (; loop >= 0; loop = parent(loop)) n *= most[loop];
  return n;
}

// Returns the iterations of the loops within a loop, as far as it is worth running them at once.
i64 Layout::within(int loop) const {
  i64 n = 1;
  for (const Item& i : k.loops[loop].body.items)
    if (i.is_loop) n = std::max(n, std::min(kChunk, extent[i.id] * within(i.id)));
  return n;
}

i64 Layout::wanted(int loop, i64 room) const {
  const Loop& l = k.loops[loop];
  if (l.reduction >= 0) {
    // Accumulation is in order: if an outer loop runs in chunks, its inner loops must run completely.
    i64 inner = 1;
    for (int in = k.reductions[l.reduction].inner_loop; in != loop; in = parent(in))
      inner = std::min(kChunk + 1, inner * extent[in]);
    // Blocks of an inner loop end within an iteration of an outer one.
    if (loop != k.reductions[l.reduction].inner_loop && blocked(k, l.reduction)) return 1;
    return room / inner;
  }
  if (l.lanes) return room;
  const bool reduces = std::any_of(l.body.items.begin(), l.body.items.end(),
                                   [&](const Item& i) { return i.is_loop && k.loops[i.id].reduction >= 0; });
  return std::max(room / within(loop), reduces ? i64{4} : i64{1});  // see join()
}

void Layout::choose_chunks(const Indices& sizes, i64 begin, i64 end) {
  std::vector<int> order;
  for (std::size_t l = 0; l < k.loops.size(); ++l) {
    const Loop& loop = k.loops[l];
    extent[l] = std::max<i64>(sizes.number(loop.extent), 0);
    if (loop.tile >= 0) extent[l] = std::min(extent[l], k.loops[loop.tile].step);
    if (l == 0 && loop.reduction < 0 && loop.tile < 0) extent[l] = std::max<i64>(end - begin, 0);
    order.push_back(static_cast<int>(l));
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) { return place.depth(a) < place.depth(b); });
  for (const int l : order) {
    const auto n = static_cast<std::size_t>(l);
    const i64 room = std::max<i64>(1, kChunk / most_lanes(parent(l)));
    if (single_[n] || extent[n] <= 1) continue;
    const i64 chunk = std::clamp<i64>(wanted(l, room), 1, extent[n]);
    const i64 parts = (extent[n] + chunk - 1) / chunk;
    most[n] = (extent[n] + parts - 1) / parts;
  }
}

}  // namespace lc::codegen
