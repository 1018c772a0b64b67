#include "lightcone/codegen/c/render.h"

#include <algorithm>
#include <utility>

#include "lightcone/codegen/c/renderer.h"
#include "lightcone/codegen/symbols.h"

namespace lc::codegen {

int CRenderer::find_homes(const Block& b, int next) {
  ++next;
  for (const Item& i : b.items) {
    if (i.is_loop) {
      next = find_homes(loop_at(i.id).body, next);
      ++next;
    } else {
      home_[i.id] = next;
    }
  }
  return next;
}

// Finds values inside of output lanes that are used in another segment: they need one element per lane.
void CRenderer::find_arrays(int lane_loop) {
  std::set<int> inside;
  const auto collect = [&](auto& self, const Block& b) -> void {
    for (const Item& i : b.items) {
      if (i.is_loop) self(self, loop_at(i.id).body);
      else inside.insert(i.id);
    }
  };
  collect(collect, loop_at(lane_loop).body);
  for (int id : inside) {
    const Instr& in = instr(id);
    for (int used : {in.a, in.b, in.c})
      if (used >= 0 && inside.contains(used) && home_[used] != home_[id]) arrays_.insert(used);
  }
  for (const Reduction& r : k_.reductions)
    if (inside.contains(r.value)) arrays_.insert(r.value);
  // The segment that stores is the last one in the lane loop's own block.
  if (inside.contains(k_.result)) arrays_.insert(k_.result);
}

std::string CRenderer::atom(const Dim::Atom* a) {
  const auto nonnegative = [](const Dim& x, const Dim& y) {
    return x.bounds().lo >= 0 && y.is_constant() && y.offset() > 0;
  };
  switch (a->kind) {
    case Dim::Kind::Symbol: {
      for (std::size_t k = 0; k < k_.sizes.size(); ++k)
        if (k_.sizes[k] == a->name) return "n" + std::to_string(k);
      return a->name;
    }
    case Dim::Kind::Div:
      return nonnegative(a->a, a->b) ? "(" + dim(a->a) + " / " + dim(a->b) + ")"
                                     : "lc_floor_div(" + dim(a->a) + ", " + dim(a->b) + ")";
    case Dim::Kind::Mod:
      return nonnegative(a->a, a->b) ? "(" + dim(a->a) + " % " + dim(a->b) + ")"
                                     : "lc_floor_mod(" + dim(a->a) + ", " + dim(a->b) + ")";
    case Dim::Kind::Min: {
      const std::string x = dim(a->a), y = dim(a->b);
      return "(" + x + " < " + y + " ? " + x + " : " + y + ")";
    }
    case Dim::Kind::Less: return "(" + dim(a->a) + " < " + dim(a->b) + ")";
  }
  return {};
}

std::string CRenderer::dim(const Dim& anywhere) {
  const Dim d = here(anywhere);
  std::string s;
  for (const Dim::Term& t : d.terms()) {
    std::string p = t.coefficient == 1 ? "" : std::to_string(t.coefficient) + "L";
    for (const Dim::Atom* f : t.factors) p += (p.empty() ? "" : "*") + atom(f);
    s += (s.empty() ? "" : " + ") + p;
  }
  if (d.offset() != 0 || s.empty()) s += (s.empty() ? "" : " + ") + std::to_string(d.offset()) + "L";
  return d.is_constant() && d.offset() >= 0 ? s : "(" + s + ")";
}

// Returns the condition under which a load may happen. If GCC 12 can compute the mask of a vector load, it turns the
// load into one of the whole vector and a blend, which reads outside of the buffer: the mask must depend on a value it
// cannot see.
std::string CRenderer::condition(const Dim& valid) { return "(" + dim(valid) + " > unseen)"; }
std::string CRenderer::hide(const std::string& name) const {
  std::string hide(dialect_.hide);
  return hide.replace(hide.find('%'), 1, name);
}

// GCC 12 makes one group of guarded loads whose addresses differ by a constant, and loads all vectors of it by the mask
// of the first one (vec_masks in its vectorizable_load). Each of these loads has a pointer of its own, and the compiler
// does not see that the pointers are equal. `apart` is what else the addresses depend on.
std::string CRenderer::guarded_buffer(const Instr& load, const std::string& apart) {
  const std::string buffer = "in" + std::to_string(load.buffer);
  if (load.buffer >= static_cast<int>(k_.buffers.size())) return buffer;  // a tile is an array of the function
  const Dim at = here(load.offset);
  std::vector<std::int64_t>& offsets = alike_[buffer + dim(at - at.offset()) + apart];
  const auto found = std::ranges::find(offsets, at.offset());
  const auto n = static_cast<int>(found - offsets.begin());
  if (found == offsets.end()) offsets.push_back(at.offset());
  if (n == 0) return buffer;
  int& pointers = pointers_[load.buffer];
  pointers = std::max(pointers, n);
  return buffer + "_" + std::to_string(n);
}

std::string CRenderer::expression(const Instr& i) {
  const std::string buffer = "in" + std::to_string(i.buffer);
  const auto zero = [&] { return std::string("(") + std::string(register_type(i.dtype)) + ")0"; };
  switch (i.code) {
    case Code::Constant: return number(i.value, i.dtype);
    case Code::Index:
      return converted(dim(i.dtype == DType::Bool ? not_certain(i.offset) : i.offset), DType::I64, i.dtype);
    case Code::Load: {
      const Dim valid = valid_here(i);
      if (valid == Dim(0)) return zero();
      if (valid == Dim(1)) return loaded(buffer, i.dtype, dim(i.offset));
      return "(" + condition(valid) + " ? " + loaded(guarded_buffer(i), i.dtype, dim(i.offset)) + " : " + zero() + ")";
    }
    case Code::GatherLoad: {
      const std::string j = "(long)" + value(i.a);
      std::string guard = "(" + j + " >= 0 && " + j + " < " + dim(i.extent) + ")";
      const Dim valid = valid_here(i);
      if (valid == Dim(0)) return zero();
      if (!(valid == Dim(1))) guard = "(" + condition(valid) + " && " + guard + ")";
      const std::string along = " + " + j + " * " + dim(i.stride);
      return "(" + guard + " ? " + loaded(guarded_buffer(i, along), i.dtype, dim(i.offset) + along) + " : " + zero() +
             ")";
    }
    case Code::Apply: {
      const int last = i.c >= 0 ? i.c : i.b >= 0 ? i.b : i.a;
      const DType operand = instr(last).dtype;
      const auto v = [&](int id) { return id >= 0 ? value(id) : std::string(); };
      if (i.op == Op::Bitcast) return bits_as(v(i.a), operand, i.dtype);
      const std::string e = exact_divisor(k_, i) ? spell_exact_mod(operand, v(i.a), v(i.b))
                                                 : spell(i.op, operand, v(i.a), v(i.b), v(i.c));
      return info(i.op).types == Types::Compare || i.op == Op::Where || rounds_later(i) ? e : rounded(e, i.dtype);
    }
    case Code::MulAdd: return spell_mul_add(i.dtype, value(i.a), value(i.b), value(i.c));
    case Code::Convert:
      return rounds_later(i) && instr(i.a).dtype == DType::F32 ? value(i.a)
                                                               : converted(value(i.a), instr(i.a).dtype, i.dtype);
    case Code::Accumulator:
      return converted("a" + std::to_string(i.buffer) + (lane_loop_ >= 0 ? "[l]" : ""), reduction(i.buffer).dtype,
                       i.dtype);
    case Code::CachedRow: return row_element(i.buffer, i.offset);
  }
  return {};
}

// Returns true if the prelude has a function that computes the value in all lanes at once. Compilers do not generate
// some instructions from a loop.
bool CRenderer::by_vectors(int id) const {
  const Instr& i = instr(id);
  return i.code == Code::Apply && info(i.op).has(kVectorised) && i.dtype == DType::F32;
}

// Returns the offset at the first lane if the lanes read contiguous halves, which are then widened together.
std::optional<Dim> CRenderer::is_contiguous_along(int id, const std::string& lane) const {
  const Instr& i = instr(id);
  if (i.code != Code::Load || !is_half(i.dtype) || !(i.valid == Dim(1))) return std::nullopt;
  const Dim first = renamed(i.offset, lane, 0), along = i.offset - first;
  return along.name() == lane ? std::optional(first) : std::nullopt;
}

// Returns the result, if nothing else reads it, and the value that it copies, if that has no other reader either.
std::set<int> CRenderer::rounded_when_stored() const {
  std::set<int> all;
  for (int id = k_.result; id >= 0;) {
    int readers = id == k_.result ? 1 : 0;
    for (const Instr& i : k_.instrs) readers += (i.a == id) + (i.b == id) + (i.c == id);
    for (const CachedValue& v : k_.cached_values) readers += v.value == id;
    for (const Reduction& r : k_.reductions) readers += r.value == id;
    if (readers > 1) break;
    all.insert(id);
    const Instr& i = instr(id);
    id = i.code == Code::Convert && instr(i.a).dtype == i.dtype ? i.a : -1;
  }
  return all;
}

bool CRenderer::whole_vectors(const Loop& l) const {
  const auto extent = l.extent.constant();
  return extent && *extent % kLanes == 0;
}

// Values on both sides of a vector function are in arrays, which become registers.
void CRenderer::find_crossing(const std::vector<int>& values) {
  std::map<int, int> segment;
  int now = 0;
  for (int id : values) {
    if (by_vectors(id)) ++now;
    segment[id] = now;
    const Instr& i = instr(id);
    for (int used : {i.a, i.b, i.c})
      if (const auto it = segment.find(used); it != segment.end() && (it->second != now || by_vectors(used)))
        arrays_.insert(used);
    if (by_vectors(id)) arrays_.insert(id), ++now;
  }
}

// Writes the values of `width` lanes from `base` on, then `last` in each lane.
void CRenderer::lane_body(const std::vector<int>& values, const std::string& symbol, const std::string& base,
                          const std::string& width, const Lines& last) {
  const bool whole = width == std::to_string(kLanes);
  const std::set<int> outer = arrays_;
  std::map<int, Dim> widened;
  if (whole) {
    find_crossing(values);
    for (int id : values)
      if (const auto first = is_contiguous_along(id, symbol)) widened.emplace(id, *first), arrays_.insert(id);
  }
  for (int id : values)
    if (arrays_.contains(id))
      line(std::string(register_type(instr(id).dtype)) + " v" + std::to_string(id) + "[" + std::to_string(lanes_) +
           "] __attribute__((aligned(64)));");
  for (const auto& [id, first] : widened)
    line("lc_" + std::string(name(instr(id).dtype)) + "_to_f32_v(v" + std::to_string(id) + ", in" +
         std::to_string(instr(id).buffer) + " + " + base + " + " + dim(first) + ");");
  bool inside = false;
  const auto enter = [&] {
    if (std::exchange(inside, true)) return;
    open("for (int l = 0; l < " + width + "; ++l) {");
    line("const long " + symbol + " = " + base + " + l;");
  };
  for (int id : values) {
    const Instr& i = instr(id);
    if (whole && by_vectors(id) && arrays_.contains(i.a)) {
      if (std::exchange(inside, false)) close();
      const auto name = [](int v) { return "v" + std::to_string(v); };
      line(spell_vector(i.op, name(id), name(i.a)));
    } else if (!widened.contains(id)) {
      enter();
      const std::string type = arrays_.contains(id) ? "" : "const " + std::string(register_type(i.dtype)) + " ";
      line(type + value(id) + " = " + expression(i) + ";");
    }
    for (const CachedValue& keep : k_.cached_values)
      if (keep.value == id) enter(), line(row_element(keep.row, keep.at) + " = " + value(id) + ";");
  }
  if (last) enter(), last();
  if (inside) close();
  arrays_ = outer;
}

void CRenderer::straight(const std::vector<int>& values, bool vector, const std::string& width) {
  if (values.empty()) return;
  if (vector) return lane_body(values, loop_at(lane_loop_).symbol, lane_base_, width);
  for (int id : values) {
    const Instr& i = instr(id);
    line("const " + std::string(register_type(i.dtype)) + " " + value(id) + " = " + expression(i) + ";");
  }
}

void CRenderer::block(const Block& b, bool vector, const std::string& width) {
  std::vector<int> run;
  for (const Item& i : b.items) {
    if (!i.is_loop) {
      run.push_back(i.id);
      continue;
    }
    straight(run, vector, width);
    run.clear();
    loop(i.id, vector, width);
  }
  straight(run, vector, width);
}

// With pipelined rows, prefetch offsets are relative to the row of the first stage.
void CRenderer::fetch_ahead(int loop, const std::string& base) {
  std::string at = "const long " + loop_at(loop).symbol + " = " + base + ";";
  if (k_.pipelined >= 0 && loop >= k_.output_loops)
    at += " const long " + loop_at(k_.pipelined).symbol + " = " + loop_at(k_.pipelined).symbol + "_t;";
  for (const Prefetch& p : k_.ahead)
    if (p.loop == loop)
      line("{ " + at + " __builtin_prefetch(in" + std::to_string(p.buffer) + " + " + dim(p.offset) +
           (p.level == 1 ? "" : ", 0, 2") + "); }");
}

// Stores a whole vector, which is collected in an array that becomes a register, non-temporally or not.
void CRenderer::store_vector(int id, const std::string& past) {
  const Loop& l = loop_at(id);
  const std::string base = l.symbol + "_", full = std::to_string(kLanes), type(info(k_.dtype).c);
  line(type + " t[" + full + "] __attribute__((aligned(64)));");
  const bool narrows = is_half(k_.dtype);
  if (narrows) line("float wide[" + full + "] __attribute__((aligned(64)));");
  if (narrows) rounded_later_ = rounded_when_stored();
  lane_body(values_in(l.body), l.symbol, base, full, [&] {
    line(narrows ? "wide[l] = " + value(k_.result) + ";" : "t[l] = " + stored(value(k_.result), k_.dtype) + ";");
  });
  rounded_later_.clear();
  if (narrows) line("lc_f32_to_" + std::string(name(k_.dtype)) + "_v(t, wide);");
  line("const long " + l.symbol + " = " + base + ";");
  line("lc_store(out_ + " + dim(k_.store_offset) + ", t, sizeof t, " + past + ");");
}

// Stores single elements from the loop's current position up to the first aligned vector or the loop's end.
void CRenderer::store_singles(int id) {
  const Loop& l = loop_at(id);
  const std::string base = l.symbol + "_", type(info(k_.dtype).c);
  line("const long " + l.symbol + " = " + base + ";");
  line(type + "* to = out_ + " + dim(k_.store_offset) + ";");
  out_ += std::string(dialect_.parallel) + "\n";
  lane_body(values_in(l.body), l.symbol, base, "(int)w",
            [&] { line("to[l] = " + stored(value(k_.result), k_.dtype) + ";"); });
  line(base + " += w;");
}
// Returns the number of these elements.
std::string CRenderer::unaligned(int id) {
  const std::string symbol = loop_at(id).symbol;
  return "lc_unaligned(out_ + " + dim(renamed(k_.store_offset, symbol, 0)) + " + " + symbol + "_, sizeof *out_, " +
         (k_.streams ? "stream" : "0") + ")";
}

// Writes the loop from its current position to its end. The position is the only value that changes in the loop over
// vectors: if the number of lanes is computed in each step, GCC's loops reach 0.75 of a copy's speed instead of all of
// it.
void CRenderer::by_whole_vectors(int id, const std::string& to) {
  const std::string base = loop_at(id).symbol + "_", full = std::to_string(kLanes);
  open("for (long w; " + base + " < " + to + ";) {");
  line("w = " + unaligned(id) + ";");
  line("if (w == 0) w = " + full + ";");
  open("if (w == " + full + ") for (; " + base + " + " + full + " <= " + to + "; " + base + " += " + full + ") {");
  if (k_.pipelined < 0) fetch_ahead(id, base);
  store_vector(id, k_.streams ? "stream" : "0");
  close();
  line("if (w > " + to + " - " + base + ") w = " + to + " - " + base + ";");
  store_singles(id);
  close();
}

// Writes the iterations from its current position on, `begin`, to `end`.
void CRenderer::up_to(int id, std::int64_t begin, std::int64_t end) {
  if (end - begin > kLanes) return by_whole_vectors(id, dim(end));
  open("{");
  line("const long w = " + dim(end - begin) + ";");
  store_singles(id);
  close();
}

std::string CRenderer::from(int id) {
  const Loop& l = loop_at(id);
  return l.tile >= 0 ? loop_at(l.tile).symbol : id == 0 ? "begin" : "0";
}
std::string CRenderer::to(int id) {
  const Loop& l = loop_at(id);
  return l.tile >= 0 ? l.symbol + "_to" : id == 0 ? "end" : dim(l.extent);
}

// Fills the tiles of a loop. Later loops are inside of it, so their ranges are known here.
void CRenderer::fill_tiles(int loop) {
  for (std::size_t t = 0; t < k_.tiles.size(); ++t) {
    const Tile& tile = k_.tiles[t];
    if (tile.across != loop) continue;
    line("lc_transpose_" + std::to_string(size_of(tile.dtype)) + "(in" + std::to_string(k_.buffers.size() + t) + ", " +
         std::to_string(tile.pitch) + ", in" + std::to_string(tile.buffer) + " + " + dim(tile.origin) + ", " +
         dim(tile.stride) + ", " + to(loop) + " - " + from(loop) + ", " + to(loop + 1) + " - " + from(loop + 1) + ");");
  }
}

// Writes the iterations from `begin` to `end` as a loop of which the compiler makes vectors.
void CRenderer::plain(int id, const std::string& begin, const std::string& end, const Dim& iterations) {
  const Loop& l = loop_at(id);
  out_ += std::string(dialect_.parallel) + "\n";
  if (may_be_unrolled_with_guards(iterations)) out_ += std::string(dialect_.rolled) + "\n";
  open("for (long " + l.symbol + " = " + begin + "; " + l.symbol + " < " + end + "; ++" + l.symbol + ") {");
  block(l.body, false, "");
  store();
  close();
}

bool CRenderer::writes_whole_vectors(int id) const {
  const Loop& l = loop_at(id);
  const auto asks = [&](const Item& i) {
    return is_half(k_.dtype) || (!i.is_loop && (by_vectors(i.id) || is_contiguous_along(i.id, l.symbol)));
  };
  return k_.streams || !k_.tiles.empty() ||
         (!has_loops(l.body) && std::any_of(l.body.items.begin(), l.body.items.end(), asks) &&
          coefficient(k_.store_offset, l.symbol) == 1);
}

// Writes the iterations from `from` to `to`.
void CRenderer::lanes_between(int id, const std::string& from, const std::string& to, const Dim& iterations) {
  const Loop& l = loop_at(id);
  if (writes_whole_vectors(id)) {
    line("long " + l.symbol + "_ = " + from + ";");
    return by_whole_vectors(id, to);
  }
  if (!has_loops(l.body)) return plain(id, from, to, iterations);
  const std::string base = l.symbol + "_", full = std::to_string(kLanes);
  lane_loop_ = id;
  lane_base_ = base;
  find_arrays(id);
  line("long " + base + " = " + from + ";");
  if (const int columns = columns_at_once(id)) {
    lanes_ = columns;
    const std::string wide = std::to_string(lanes_);
    open("for (; " + base + " + " + wide + " <= " + to + "; " + base + " += " + wide + ") {");
    lane_step(l, wide);
    close();
    lanes_ = kLanes;
  }
  open("for (; " + base + " < " + to + "; " + base + " += " + full + ") {");
  for (const bool tail : {false, true}) {
    if (tail && id > 0 && l.tile < 0 && whole_vectors(l)) break;  // a multiple of the lanes has no remainder
    open(tail ? "else {" : "if (" + base + " + " + full + " <= " + to + ") {");
    if (tail) line("const int w = (int)(" + to + " - " + base + ");");
    lane_step(l, tail ? "w" : full);
    close();
  }
  close();
  lane_loop_ = -1;
}
void CRenderer::lane_step(const Loop& l, const std::string& width) {
  block(l.body, true, width);
  open("for (int l = 0; l < " + width + "; ++l) {");
  line("const long " + l.symbol + " = " + lane_base_ + " + l;");
  store();
  close();
}

// Returns the number of columns that are summed side by side if the loop's values are sums over rows of neighbouring
// columns, without functions or numbers that are computed by whole vectors; else 0. A line of each row at a time would
// be fetched as slowly as memory answers, because hardware prefetchers follow neighbouring lines: 8 GB/s, and 21 with
// eight lines (8,192 rows of 4,096 columns, two cores of an Intel Xeon with AMX). Few columns are shared out in pieces
// of four lines.
int CRenderer::columns_at_once(int id) const {
  constexpr std::size_t kMost = 16;  // instructions: their values of all columns stay in the first-level cache
  constexpr std::int64_t kFew = 1024;
  const Loop& l = loop_at(id);
  const int columns = (l.extent.bounds().hi < kFew ? 4 : 8) * kLanes;
  if (k_.reductions.empty() || k_.instrs.size() > kMost || is_half(k_.dtype)) return 0;
  if (l.extent.bounds().hi < columns) return 0;
  bool neighbours = false;
  for (std::size_t v = 0; v < k_.instrs.size(); ++v) {
    const Instr& i = k_.instrs[v];
    if (by_vectors(static_cast<int>(v))) return 0;
    if (i.code != Code::Load) continue;
    if (is_half(k_.buffers[static_cast<std::size_t>(i.buffer)]) || !(i.valid == Dim(1))) return 0;
    neighbours = neighbours || coefficient(i.offset, l.symbol) == 1;
  }
  const bool floats = std::all_of(k_.reductions.begin(), k_.reductions.end(), [this](const Reduction& r) {
    return !keyed(r) && register_type(r.dtype) == "float";
  });
  return neighbours && floats ? columns : 0;
}

// Returns the number of bodies if the loop is unrolled, else 0. A loop over few concatenated pieces occurs in the
// guards of the loads of each piece; with one body per iteration, nothing is computed in vain.
std::int64_t CRenderer::unrolled(int id) const {
  constexpr std::int64_t kMost = 8, kInstructions = 1000;  // bodies in total, and instructions in all bodies
  const Loop& l = loop_at(id);
  if (id == 0 || id == k_.pipelined || k_.streams || !k_.tiles.empty() || !l.extent.is_constant()) return 0;
  std::int64_t bodies = l.extent.offset();
  for (const auto& [symbol, at] : fixed_)
    for (const Loop& around : k_.loops)
      if (around.symbol == symbol) bodies *= around.extent.offset();
  if (bodies > kMost || bodies * static_cast<std::int64_t>(k_.instrs.size()) > kInstructions) return 0;
  if (has_loops(l.body) && l.lanes) return 0;  // its values are side by side in lanes
  const bool guards = std::any_of(k_.instrs.begin(), k_.instrs.end(), [&](const Instr& i) {
    return (i.code == Code::Load || i.code == Code::GatherLoad) && mentions(i.valid, l.symbol);
  });
  return guards ? l.extent.offset() : 0;
}

void CRenderer::bodies(int id, std::int64_t count, bool vector, const std::string& width) {
  const Loop& l = loop_at(id);
  for (std::int64_t k = 0; k < count; ++k) {
    fixed_[l.symbol] = k;
    open("{");
    block(l.body, vector, width);
    if (innermost_output(id)) store();
    close();
  }
  fixed_.erase(l.symbol);
}

void CRenderer::loop(int id, bool vector, const std::string& width) {
  const Loop& l = loop_at(id);
  if (l.reduction >= 0) return reduction_loops(id, vector, width);
  if (const std::int64_t count = unrolled(id)) return bodies(id, count, vector, width);
  if (l.lanes) return output_lanes(id, kMostRanges);
  if (id == k_.pipelined) return pipelined_rows(id);
  fill_tiles(id);
  if (innermost_output(id + 1) && unrolled(id + 1)) out_ += std::string(dialect_.parallel) + "\n";
  const std::string to = this->to(id), step = std::to_string(l.step);
  open("for (long " + l.symbol + " = " + from(id) + "; " + l.symbol + " < " + to + "; " + l.symbol + " += " + step +
       ") {");
  for (const Loop& through : k_.loops)
    if (through.tile == id)
      line("const long " + through.symbol + "_to = " + l.symbol + " + " + step + " < " + to + " ? " + l.symbol + " + " +
           step + " : " + to + ";");
  block(l.body, vector, width);
  if (innermost_output(id)) store();
  close();
}

std::string CRenderer::text(std::string_view name) {
  open(std::string(dialect_.function) + " " + std::string(name) +
       "(const void* const* in, void* out, const long* n, long begin, long end) {");
  for (std::size_t k = 0; k < k_.buffers.size(); ++k) {
    const std::string type(info(k_.buffers[k]).c);
    line("const " + type + "* in" + std::to_string(k) + " = (const " + type + "*)in[" + std::to_string(k) + "];");
  }
  const std::string type(info(k_.dtype).c);
  line(type + "* out_ = (" + type + "*)out;");
  for (std::size_t k = 0; k < k_.sizes.size(); ++k)
    line("const long n" + std::to_string(k) + " = n[" + std::to_string(k) + "];");
  if (k_.streams) line("const int stream = n[" + std::to_string(k_.sizes.size()) + "] != 0;");
  line("long unseen = 0; " + hide("unseen"));
  const std::size_t after_zero = out_.size();
  for (std::size_t k = 0; k < k_.rows.size(); ++k)
    line(std::string(register_type(k_.rows[k].dtype)) + " row" + std::to_string(k) +
         (k_.rows[k].copies > 1 ? "_[" : "[") + std::to_string(k_.rows[k].elements * k_.rows[k].copies) +
         "] __attribute__((aligned(64)));");
  for (std::size_t t = 0; t < k_.tiles.size(); ++t)
    line(std::string(info(k_.tiles[t].dtype).c) + " in" + std::to_string(k_.buffers.size() + t) + "[" +
         std::to_string(k_.tiles[t].elements) + "] __attribute__((aligned(64)));");
  line("(void)in, (void)n, (void)begin, (void)end, (void)unseen;");
  block(k_.top, false, "");
  if (k_.output_loops == 0) store();
  if (k_.streams && k_.fence) line("if (stream) lc_stored();");
  close();
  std::string pointers;
  for (const auto& [buffer, count] : pointers_)
    for (int n = 1; n <= count; ++n) {
      const std::string of = "in" + std::to_string(buffer), pointer = of + "_" + std::to_string(n);
      const std::string type(info(k_.buffers[static_cast<std::size_t>(buffer)]).c);
      pointers += "  const " + type + "* " + pointer + " = " + of + "; " + hide(pointer) + "\n";
    }
  out_.insert(after_zero, pointers);
  return std::move(out_);
}

std::string render(const Kernel& k, std::string_view name, const Dialect& dialect) {
  return CRenderer(k, dialect).text(name);
}

}  // namespace lc::codegen
