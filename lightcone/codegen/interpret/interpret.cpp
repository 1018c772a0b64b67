// Runs kernel IR without a compiler: the fallback if none is installed, and the check that the IR itself, not only its
// C text, means what the graph does. A loop runs in chunks, each instruction on all iterations of a chunk, and sums
// take their values in the order of the loops: results do not depend on the chunk size.
#include "lightcone/codegen/interpret/interpret.h"

#include <algorithm>
#include <cstring>

#include "lightcone/codegen/interpret/layout.h"
#include "lightcone/codegen/interpret/vectors.h"

namespace lc::codegen {
namespace {

using i64 = std::int64_t;

// Returns the type with which a cached row is copied: rows hold numbers as registers do.
DType as_held(DType t) {
  const std::size_t bytes = vectors::bytes(t);
  return bytes == 4 ? DType::F32 : DType::F64;
}

class Run {
 public:
  Run(const Kernel& k, const void* const* in, void* out, const i64* n, i64 begin, i64 end);
  void run() {
    block(k_.top, -1);
    if (k_.output_loops == 0) store();
  }

 private:
  struct Offsets {
    Offset at, valid, stride, extent;
  };
  i64 lanes(int loop) const { return layout_.place.lanes(loop); }
  LoopPositions::At& place(int loop) { return layout_.place.loops[loop]; }
  const Loop& loop_at(int id) const { return k_.loops[id]; }
  DType type(int value) const { return k_.instrs[value].dtype; }
  void* slot(int s) { return s < 0 ? nullptr : slots_[s]; }
  i64 one(const Dim& d, int loop);

  void find_offsets();
  void give_memory();
  void import(int loop, bool again);
  void block(const Block& b, int loop);
  void step(int value);
  void load(const Instr& i, const Offsets& o, int loop, void* to);
  void gather(const Instr& i, const Offsets& o, int loop, int index, void* to);
  void accumulated(const Instr& i, int loop, void* to);
  template <class F>
  void row(int r, const Offset& at, int loop, const F& f);
  void store();
  void loop(int id);
  void run(int id, i64 from, i64 to);
  std::pair<i64, i64> range(int id);
  void start(int reduction);
  void join(int reduction, int loop);
  void end_block(int reduction);
  void fill(std::size_t tile);
  template <class F>
  void for_row(i64 row, const F& f);
  void pipelined_rows(int id);

  const Kernel& k_;
  Layout layout_;
  Indices indices_;
  std::vector<const void*> in_;
  void* out_;
  i64 begin_, end_;
  std::vector<Offsets> offsets_;  // by value
  std::vector<Offset> kept_at_;   // by CachedValue
  Offset stored_at_;
  std::vector<std::byte> memory_;
  std::vector<std::byte*> slots_, sums_, rows_;
  std::vector<std::byte*> before_, lost_;  // by reduction: sums of blocks, and their rounding errors
  std::vector<std::vector<std::byte>> tiles_;
  std::vector<bool> imported_;                // slots that are filled once for all iterations
  std::vector<std::vector<Element>> passed_;  // all values of each pipelined row in flight
  std::vector<Stage> stages_;
};

Run::Run(const Kernel& k, const void* const* in, void* out, const i64* n, i64 begin, i64 end)
    : k_(k),
      layout_(k),
      indices_(k, layout_.place, n),
      in_(in, in + k.buffers.size()),
      out_(out),
      begin_(begin),
      end_(end) {
  layout_.choose_chunks(indices_, begin, end);
  find_offsets();
  give_memory();
  for (const Tile& t : k.tiles) {
    tiles_.emplace_back(static_cast<std::size_t>(t.elements) * size_of(t.dtype));
    in_.push_back(tiles_.back().data());
  }
  if (k.pipelined < 0) return;
  stages_ = stages(k);
  passed_.assign(static_cast<std::size_t>(ring_size(k)), std::vector<Element>(k.instrs.size()));
}

void Run::find_offsets() {
  offsets_.resize(k_.instrs.size());
  for (std::size_t v = 0; v < k_.instrs.size(); ++v) {
    const Instr& i = k_.instrs[v];
    Offsets& o = offsets_[v];
    if (i.code == Code::Index || i.code == Code::Load || i.code == Code::GatherLoad || i.code == Code::CachedRow)
      o.at = indices_.known(i.offset), o.valid = indices_.known(i.valid);
    if (i.code == Code::GatherLoad) o.stride = indices_.known(i.stride), o.extent = indices_.known(i.extent);
  }
  for (const CachedValue& keep : k_.cached_values) kept_at_.push_back(indices_.known(keep.at));
  stored_at_ = indices_.known(k_.store_offset);
}

void Run::give_memory() {
  constexpr std::size_t kAlign = 64;
  std::size_t bytes = kAlign;
  std::vector<std::pair<std::vector<std::byte*>*, std::size_t>> all;
  const auto reserve = [&](std::vector<std::byte*>& to, DType t, i64 numbers) {
    all.emplace_back(&to, bytes);
    bytes += (static_cast<std::size_t>(numbers) * vectors::bytes(t) + kAlign - 1) / kAlign * kAlign;
  };
  for (const Layout::Slot& s : layout_.slots) reserve(slots_, s.dtype, layout_.most_lanes(s.loop));
  for (const Reduction& r : k_.reductions) reserve(sums_, r.dtype, layout_.most_lanes(layout_.parent(r.outer_loop)));
  for (std::vector<std::byte*>* of : {&before_, &lost_})
    for (const Reduction& r : k_.reductions) reserve(*of, r.dtype, layout_.most_lanes(layout_.parent(r.outer_loop)));
  for (std::size_t r = 0; r < k_.rows.size(); ++r)
    reserve(rows_, k_.rows[r].dtype, k_.rows[r].elements * k_.rows[r].copies * layout_.most_lanes(layout_.owner[r]));
  memory_.resize(bytes);
  const std::size_t shift = (kAlign - reinterpret_cast<std::uintptr_t>(memory_.data()) % kAlign) % kAlign;
  for (const auto& [to, at] : all) to->push_back(memory_.data() + shift + at - kAlign);
  imported_.resize(layout_.slots.size());
}

// Evaluates a Dim where all loops around are at a single iteration.
i64 Run::one(const Dim& d, int loop) {
  const i64 v = indices_.lanes(indices_.known(d), loop)[0];
  indices_.release();
  return v;
}

void Run::import(int loop, bool again) {
  for (const Import& i : layout_.imports[loop]) {
    const i64 n = lanes(layout_.home[i.value]);
    const auto s = static_cast<std::size_t>(i.slot);
    const i64 all = i.once ? layout_.most_lanes(loop) : lanes(loop);
    if (i.once ? !imported_[s] : again) vectors::repeat(type(i.value), slot(i.value), n, all / n, slot(i.slot));
    imported_[s] = true;
  }
}

void Run::block(const Block& b, int id) {
  for (const Item& i : b.items) {
    if (i.is_loop) loop(i.id);
    else step(i.id);
  }
  if (id >= 0 && loop_at(id).reduction < 0 && id == k_.output_loops - 1) store();
}

void Run::step(int id) {
  const auto v = static_cast<std::size_t>(id);
  const Instr& i = k_.instrs[v];
  const int at = layout_.home[v];
  const i64 n = lanes(at);
  const auto [a, b, c] = layout_.operands[v];
  void* to = slot(id);
  switch (i.code) {
    case Code::Constant: vectors::fill(i.dtype, i.value, n, to); break;
    case Code::Index: vectors::from_indices(i.dtype, indices_.lanes(offsets_[v].at, at), n, to); break;
    case Code::Load: load(i, offsets_[v], at, to); break;
    case Code::GatherLoad: gather(i, offsets_[v], at, a, to); break;
    case Code::Apply: {
      const int last = i.c >= 0 ? i.c : i.b >= 0 ? i.b : i.a;
      vectors::apply(i.op, type(last), i.dtype, slot(a), slot(b), slot(c), n, to);
      break;
    }
    case Code::MulAdd: vectors::mul_add(i.dtype, slot(a), slot(b), slot(c), n, to); break;
    case Code::Convert: vectors::convert(type(i.a), i.dtype, slot(a), n, to); break;
    case Code::Accumulator: accumulated(i, at, to); break;
    case Code::CachedRow:
      row(i.buffer, offsets_[v].at, at, [&](i64 lane, i64 count, const std::byte* from, i64 stride) {
        vectors::load(as_held(i.dtype), from, 0, stride, count, vectors::behind(to, i.dtype, lane));
      });
      break;
  }
  for (const CachedValue* keep : layout_.cached_values[v])
    row(keep->row, kept_at_[keep - k_.cached_values.data()], at, [&](i64 lane, i64 count, std::byte* into, i64 stride) {
      vectors::store(as_held(i.dtype), vectors::behind(to, i.dtype, lane), count, into, 0, stride);
    });
  indices_.release();
}

void Run::load(const Instr& i, const Offsets& o, int loop, void* to) {
  const void* buffer = in_[i.buffer];
  const i64 n = lanes(loop);
  const i64* valid = nullptr;
  if (!o.valid.constant() || o.valid.base == 0) {
    valid = indices_.lanes(o.valid, loop);
    const auto there = std::count_if(valid, valid + n, [](i64 v) { return v != 0; });
    if (there == 0) {
      std::memset(to, 0, static_cast<std::size_t>(n) * vectors::bytes(i.dtype));
      return;
    }
    if (there == n) valid = nullptr;
  }
  if (!o.at.linear()) return vectors::gather(i.dtype, buffer, indices_.lanes(o.at, loop), valid, n, to);
  indices_.runs(o.at, loop, -1, 0, [&](i64 lane, i64 count, i64 at, i64 stride) {
    for (i64 from = 0, end = 0; from < count; from = end) {  // runs of valid or invalid elements
      const bool read = !valid || valid[lane + from] != 0;
      for (end = valid ? from + 1 : count; end < count && (valid[lane + end] != 0) == read;) ++end;
      void* const here = vectors::behind(to, i.dtype, lane + from);
      if (read) vectors::load(i.dtype, buffer, at + from * stride, stride, end - from, here);
      else std::memset(here, 0, static_cast<std::size_t>(end - from) * vectors::bytes(i.dtype));
    }
  });
}

void Run::gather(const Instr& i, const Offsets& o, int loop, int index, void* to) {
  const void* buffer = in_[i.buffer];
  const i64 n = lanes(loop);
  const auto within = [](i64 j, i64 extent) { return j >= 0 && j < extent; };
  const int home = layout_.home[i.a];
  if (lanes(home) < n && o.at.linear() && o.valid.constant() && o.valid.base != 0 && o.stride.constant() &&
      o.extent.constant()) {  // one index for many lanes
    const i64 each = n / lanes(home);
    indices_.runs(o.at, loop, home, 0, [&](i64 lane, i64 count, i64 at, i64 stride) {
      const i64 j = vectors::element(type(i.a), slot(i.a), lane / each).i;
      void* const here = vectors::behind(to, i.dtype, lane);
      if (within(j, o.extent.base)) vectors::load(i.dtype, buffer, at + j * o.stride.base, stride, count, here);
      else std::memset(here, 0, static_cast<std::size_t>(count) * vectors::bytes(i.dtype));
    });
    return;
  }
  const i64 *at = indices_.lanes(o.at, loop), *stride = indices_.lanes(o.stride, loop);
  const i64 *extent = indices_.lanes(o.extent, loop), *valid = indices_.lanes(o.valid, loop);
  std::vector<i64> offsets(static_cast<std::size_t>(n)), there(static_cast<std::size_t>(n));
  for (i64 l = 0; l < n; ++l) {
    const i64 j = vectors::element(type(i.a), slot(index), l).i;
    const bool read = valid[l] != 0 && within(j, extent[l]);
    there[l] = read;
    offsets[l] = read ? at[l] + j * stride[l] : 0;
  }
  vectors::gather(i.dtype, buffer, offsets.data(), there.data(), n, to);
}

void Run::accumulated(const Instr& i, int loop, void* to) {
  const auto r = static_cast<std::size_t>(i.buffer);
  const DType sum = k_.reductions[r].dtype;
  const i64 there = lanes(layout_.parent(k_.reductions[r].outer_loop)), n = lanes(loop);
  const void* value = sums_[r];
  std::vector<float> all;
  if (blocked(k_, i.buffer)) {
    all.resize(static_cast<std::size_t>(there));
    const auto f32 = [](std::byte* p) { return reinterpret_cast<float*>(p); };
    vectors::all_blocks(there, f32(sums_[r]), f32(before_[r]), f32(lost_[r]), all.data());
    value = all.data();
  }
  if (sum != i.dtype) vectors::convert(sum, i.dtype, value, there, to);
  else vectors::repeat(sum, value, there, n / there, to);
}

// Calls f with runs of lanes and the location of their elements in the row. Each lane of the loop that owns the row has
// its own copy.
template <class F>
void Run::row(int r, const Offset& at, int loop, const F& f) {
  const Row& w = k_.rows[r];
  const int owner = layout_.owner[r];
  std::byte* memory = rows_[r];
  if (w.copies > 1) memory = vectors::behind(memory, w.dtype, place(k_.pipelined).first % w.copies * w.elements);
  const i64 own = w.elements * w.copies;
  if (at.linear())
    return indices_.runs(at, loop, owner, own, [&](i64 lane, i64 count, i64 element, i64 stride) {
      f(lane, count, vectors::behind(memory, w.dtype, element), stride);
    });
  const i64* element = indices_.lanes(at, loop);
  const i64 each = lanes(loop) / lanes(owner);
  for (i64 l = 0; l < lanes(loop); ++l) f(l, 1, vectors::behind(memory, w.dtype, element[l] + l / each * own), 1);
}

void Run::store() {
  const int at = k_.output_loops - 1;
  const void* from = slot(layout_.stored);
  if (!stored_at_.linear()) vectors::scatter(k_.dtype, from, lanes(at), out_, indices_.lanes(stored_at_, at));
  else
    indices_.runs(stored_at_, at, -1, 0, [&](i64 lane, i64 count, i64 offset, i64 stride) {
      vectors::store(k_.dtype, vectors::behind(from, k_.dtype, lane), count, out_, offset, stride);
    });
  indices_.release();
}

std::pair<i64, i64> Run::range(int id) {
  const Loop& l = loop_at(id);
  if (l.tile >= 0) {
    const i64 from = place(l.tile).first;
    return {from, std::min(from + loop_at(l.tile).step, range(l.tile).second)};
  }
  return id == 0 && l.reduction < 0 ? std::pair(begin_, end_) : std::pair(i64{0}, indices_.number(l.extent));
}

void Run::start(int reduction) {
  const Reduction& r = k_.reductions[reduction];
  const auto n = static_cast<std::size_t>(reduction);
  const i64 sums = lanes(layout_.parent(r.outer_loop));
  vectors::start(r.op, r.dtype, sums, sums_[n]);
  const std::size_t bytes = static_cast<std::size_t>(sums) * vectors::bytes(r.dtype);
  for (std::byte* p : {before_[n], lost_[n]}) std::memset(p, 0, bytes);
}
void Run::end_block(int reduction) {
  const auto n = static_cast<std::size_t>(reduction);
  const auto f32 = [](std::byte* p) { return reinterpret_cast<float*>(p); };
  const i64 sums = lanes(layout_.parent(k_.reductions[n].outer_loop));
  vectors::end_block(sums, f32(sums_[n]), f32(before_[n]), f32(lost_[n]));
}
// Accumulates a chunk of the loop, in pieces if blocks end within it.
void Run::join(int reduction, int loop) {
  const auto n = static_cast<std::size_t>(reduction);
  const Reduction& r = k_.reductions[n];
  const i64 sums = lanes(layout_.parent(r.outer_loop)), each = lanes(loop) / sums;
  const i64 block = loop_at(loop).block, at = place(loop).first;
  for (i64 from = 0, count = 0; from < each; from += count) {
    count = block > 0 ? std::min(each - from, block - (at + from) % block) : each;
    vectors::join(r.op, r.dtype, vectors::behind(slot(layout_.fed[n]), r.dtype, from), sums, each, count, sums_[n]);
    if (block > 0 && (at + from + count) % block == 0) end_block(reduction);
  }
}

void Run::fill(std::size_t t) {
  const Tile& tile = k_.tiles[t];
  const auto [a, a_end] = range(tile.across);
  const auto [b, b_end] = range(tile.across + 1);
  const int outside = layout_.parent(tile.across);
  const i64 origin = one(tile.origin, outside), stride = one(tile.stride, outside);
  const std::size_t size = size_of(tile.dtype);
  const auto* from = static_cast<const std::byte*>(in_[tile.buffer]);
  for (i64 row = 0; row < a_end - a; ++row)
    for (i64 column = 0; column < b_end - b; ++column)
      std::memcpy(tiles_[t].data() + static_cast<std::size_t>(row * tile.pitch + column) * size,
                  from + (origin + column * stride + row) * static_cast<i64>(size), size);
}

void Run::loop(int id) {
  if (id == k_.pipelined) return pipelined_rows(id);
  for (std::size_t t = 0; t < k_.tiles.size(); ++t)
    if (k_.tiles[t].across == id) fill(t);
  const Loop& l = loop_at(id);
  if (l.reduction >= 0 && id == k_.reductions[l.reduction].outer_loop) start(l.reduction);
  const auto [from, to] = range(id);
  run(id, from, to);
}

void Run::run(int id, i64 from, i64 to) {
  const Loop& l = loop_at(id);
  LoopPositions::At& p = place(id);
  const i64 outside = lanes(p.parent), most = layout_.most[id];
  const bool feeds = l.reduction >= 0 && id == k_.reductions[l.reduction].inner_loop;
  i64 before = 0;
  for (i64 v = from; v<to; v += l.step> 1 ? l.step : p.chunk) {
    p.first = v, p.chunk = l.step > 1 ? 1 : std::min(most, to - v), p.lanes = outside * p.chunk;
    import(id, p.chunk != before);
    before = p.chunk;
    block(l.body, id);
    if (feeds) join(l.reduction, id);
    else if (l.block > 0 && (v + 1) % l.block == 0) end_block(l.reduction);
  }
}

// Runs a stage for one row. Restores the values that were computed between stages for this row, and saves them
// afterwards.
template <class F>
void Run::for_row(i64 row, const F& f) {
  const auto [from, to] = range(k_.pipelined);
  if (row < from || row >= to) return;
  LoopPositions::At& p = place(k_.pipelined);
  p.first = row, p.chunk = p.lanes = 1;
  std::vector<Element>& own = passed_[static_cast<std::size_t>(row) % passed_.size()];
  for (const Stage& part : stages_)
    for (const int v : part.values) vectors::put(type(v), slot(v), 0, own[v]);
  import(k_.pipelined, true);
  f(own);
}

void Run::pipelined_rows(int id) {
  const auto last = static_cast<i64>(stages_.size()) - 1;
  const auto part = [&](i64 n) -> const Stage& { return stages_[n]; };
  const auto once_a_row = [&](i64 n, i64 row) {
    for_row(row, [&](std::vector<Element>& own) {
      for (const int v : part(n).values) step(v), own[v] = vectors::element(type(v), slot(v), 0);
    });
  };
  const auto [from, to] = range(id);
  for (i64 row = from; row < to + last; ++row) {
    once_a_row(0, row);
    const i64 extent = range(part(0).loop).second;
    for (i64 n = 0; n < last; ++n) start(loop_at(part(n).loop).reduction);
    for (i64 at = 0; at < extent; at += kChunk)
      for (i64 n = last; n >= 0; --n)
        for_row(row - n, [&](auto&) { run(part(n).loop, at, std::min(at + kChunk, extent)); });
    for (i64 n = 0; n < last; ++n) once_a_row(n + 1, row - n);
  }
}

}  // namespace

void interpret(const Kernel& k, const void* const* in, void* out, const i64* n, i64 begin, i64 end) {
  Run(k, in, out, n, begin, end).run();
}

}  // namespace lc::codegen
