// Uses vectors where the C text has an inner loop over lanes: a value that differs between lanes is a vector, another
// one is a single number. The last, incomplete vector is computed whole and loaded and stored under a mask.
#include "lightcone/codegen/llvm/render.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "lightcone/codegen/llvm/math.h"

namespace lc::codegen {
namespace {

using llvm::Text;
using llvm::Type;
using llvm::Value;

class Renderer {
 public:
  Renderer(const Kernel& k, const llvm::Target& target) : k_(k), t_(target) {}
  std::string text(std::string_view name);

 private:
  using Body = std::function<void()>;
  const Loop& loop_at(int id) const { return k_.loops[id]; }
  const Value& value(int id) const { return values_.at(id); }
  Value integer(std::int64_t v) { return t_.integer(Type::I64, v); }
  Value dim(const Dim& d);
  Value atom(const Dim::Atom* a);
  Value floor_div(const Value& a, const Value& b);
  Value condition(const Dim& valid);
  Value comparisons(const Dim& valid);
  bool varies(const Dim& d) const { return !lane_.empty() && d.symbols().contains(lane_); }
  bool is_contiguous_along(const Dim& d) const;
  Value at_first_lane(const Dim& d);

  Value expression(const Instr& i);
  Value fetch(const Instr& i, const Value& row, const Value& valid);
  void store();
  void block(const Block& b);
  void loop(int id);
  void reduction_loop(int id);
  void begin_sum(int id);
  void finish_sum(int id);
  void in_vector(const std::string& symbol, const Value& base, const Value& mask, const Body& body);
  void row_body(int id);
  void pipelined_rows(int id);
  void run_stages(const std::vector<Stage>& body, const Value& from, const Value& to);
  void run_as_one(const std::vector<Stage>& body, const Value& from, const Value& to);
  void in_row(std::size_t behind);
  void when(const Value& condition, const Body& body);
  void once_a_row(const std::vector<int>& values);
  void fetch_ahead(int loop);
  std::pair<Value, Value> range(int id);
  void fill(std::size_t tile);
  void turn_block(const Tile& tile, const std::string& to, const Value& row, const Value& column);
  void copy_transposed(const Tile& tile, const std::string& to, const Value& row, const Value& column);
  void update(int reduction);
  void end_block(int reduction);
  void end_block_after(int loop, const Value& step);
  Value join(const Reduction& r, const Value& a, const Value& b);
  Value count(const Value& from, const Value& to, int step, const std::function<void(const Value&)>& body);
  void in_lanes(const std::string& symbol, const Value& from, const Value& to, const Body& body);

  const Kernel& k_;
  Text t_;
  std::vector<std::string> buffers_, rows_;  // pointers to elements; tiles follow the operands
  std::vector<std::string> copies_;          // base of the copies of each row
  Value row_;                                // row of the first stage of pipelined rows
  std::map<int, std::string> passed_;        // by value kept between stages: its memory
  std::map<int, std::string> cursor_;        // by loop over pipelined rows: its position
  std::map<int, Value> tile_end_;            // by loop through a tile
  Value origin_, stride_;                    // origin and stride of the tile being filled
  std::string out_;
  std::map<std::string, Value, std::less<>> symbols_;
  std::map<int, Value> values_;
  struct Accumulator {
    std::string variable;
    Type type;
    int lanes;
    Value total;               // set after its loops
    std::string blocks, lost;  // sum of its blocks, and their rounding error; "": no blocks
  };
  std::map<int, Accumulator> accumulators_;
  std::string lane_;  // symbol of the loop whose lanes are being computed, "" outside
  Value first_lane_;  // its value in lane 0
  Value mask_;        // valid lanes; empty: all
  Value stream_;      // whether stores are non-temporal; empty: never
};

// ---- integers over loop symbols -------------------------------------------------------------------

Value Renderer::floor_div(const Value& a, const Value& b) {
  const Value zero = b == 0, by = select(zero, 1, b);
  const Value q = t_.binary("sdiv", a, by), rest = a - q * by;
  const Value down = (rest != 0) & ((a ^ b) < 0);
  return select(zero, 0, select(down, q - 1, q));
}

Value Renderer::atom(const Dim::Atom* a) {
  if (a->kind == Dim::Kind::Symbol) return symbols_.at(a->name);
  const Value x = dim(a->a), y = dim(a->b);
  const bool plain = a->a.bounds().lo >= 0 && a->b.is_constant() && a->b.offset() > 0;
  switch (a->kind) {
    case Dim::Kind::Div: return plain ? t_.binary("udiv", x, y) : floor_div(x, y);
    case Dim::Kind::Mod: return plain ? t_.binary("urem", x, y) : select(y == 0, 0, x - floor_div(x, y) * y);
    case Dim::Kind::Min: return select(x < y, x, y);
    default: return t_.cast("zext", x < y, Type::I64);
  }
}

Value Renderer::dim(const Dim& d) {
  Value sum;
  const auto add = [&](const Value& v) { sum = sum.known() ? sum + v : v; };
  for (const Dim::Term& t : d.terms()) {
    Value p;
    for (const Dim::Atom* f : t.factors) p = p.known() ? p * atom(f) : atom(f);
    add(t.coefficient == 1 ? p : p * integer(t.coefficient));
  }
  if (d.offset() != 0 || !sum.known()) add(integer(d.offset()));
  return sum;
}

// Returns a guard as one bit, or an empty value if it always holds.
Value Renderer::condition(const Dim& valid) {
  if (valid == Dim(1)) return {};
  if (varies(valid)) {
    Value& symbol = symbols_.at(lane_);
    const Value all = std::exchange(symbol, t_.spread(first_lane_, kLanes) + t_.mask_lane_numbers(kLanes));
    const Value v = comparisons(valid);
    symbol = all;
    return v;
  }
  return comparisons(valid);
}

Value Renderer::comparisons(const Dim& valid) {
  const auto& terms = valid.terms();
  if (valid.offset() != 0 || terms.size() != 1 || terms[0].coefficient != 1) return dim(valid) != 0;
  Value all;  // a product of comparisons
  for (const Dim::Atom* f : terms[0].factors) {
    const Value one = f->kind == Dim::Kind::Less ? dim(f->a) < dim(f->b) : atom(f) != 0;
    all = all.known() ? all & one : one;
  }
  return all;
}

// Returns true if lane l is l elements after lane 0.
bool Renderer::is_contiguous_along(const Dim& d) const {
  if (lane_.empty()) return false;
  for (const Dim::Term& t : d.terms())
    if (t.coefficient == 1 && t.factors.size() == 1 && t.factors[0]->kind == Dim::Kind::Symbol &&
        t.factors[0]->name == lane_)
      return !varies(d - Dim::from(t.factors[0]));
  return false;
}

Value Renderer::at_first_lane(const Dim& d) {
  Value& symbol = symbols_.at(lane_);
  const Value all = std::exchange(symbol, first_lane_);
  const Value v = dim(d);
  symbol = all;
  return v;
}

// ---- values ---------------------------------------------------------------------------------------

Value both(const Value& a, const Value& b) { return !a.known() ? b : !b.known() ? a : a & b; }

// Loads the element at the instruction's offset plus `row`, or 0 if not `valid`.
Value Renderer::fetch(const Instr& i, const Value& row, const Value& valid) {
  const std::string& base = buffers_[i.buffer];
  const Type type = llvm::stored_type(i.dtype);
  const auto moved = [&](const Value& v) { return row.known() ? v + row : v; };
  if (is_contiguous_along(i.offset) && row.lanes == 1)
    return llvm::widened(t_.load_lanes(base, type, moved(at_first_lane(i.offset)), kLanes, both(valid, mask_)),
                         i.dtype);
  const Value at = moved(dim(i.offset));
  if (at.lanes == 1 && valid.lanes == 1) return llvm::widened(t_.load(base, type, at, valid), i.dtype);
  return llvm::widened(t_.gather(base, type, t_.spread(at, kLanes), both(valid, mask_)), i.dtype);
}

Value Renderer::expression(const Instr& i) {
  const auto v = [&](int id) { return id >= 0 ? value(id) : Value(); };
  const auto type = [&](int id) { return k_.instrs[id].dtype; };
  switch (i.code) {
    case Code::Constant: return llvm::constant(t_, i.value, i.dtype);
    case Code::Index: return llvm::convert(dim(i.offset), DType::I64, i.dtype);
    case Code::Load: return fetch(i, {}, condition(i.valid));
    case Code::GatherLoad: {
      const Value j = llvm::convert(value(i.a), type(i.a), DType::I64);
      const Value guard = (j >= 0) & (j < dim(i.extent));
      return fetch(i, j * dim(i.stride), both(condition(i.valid), guard));
    }
    case Code::Apply:
      if (i.op == Op::Bitcast) return llvm::bitcast(value(i.a), type(i.a), i.dtype);
      if (const auto by = exact_divisor(k_, i)) return llvm::exact_mod(v(i.a), *by);
      return llvm::apply(i.op, i.dtype, v(i.a), v(i.b), v(i.c));
    case Code::MulAdd: return llvm::mul_add(v(i.a), v(i.b), v(i.c));
    case Code::Convert: return llvm::convert(value(i.a), type(i.a), i.dtype);
    case Code::Accumulator: {
      const DType sum = k_.reductions[i.buffer].dtype;
      return llvm::convert(accumulators_.at(i.buffer).total, sum, i.dtype);
    }
    case Code::CachedRow: {
      const std::string& row = rows_[i.buffer];
      const Type t = llvm::register_type(i.dtype);
      if (is_contiguous_along(i.offset)) return t_.load_lanes(row, t, at_first_lane(i.offset), kLanes, mask_);
      return t_.load(row, t, dim(i.offset), {});
    }
  }
  return {};
}

void Renderer::store() {
  const Value v = llvm::narrowed(value(k_.result), k_.dtype);
  if (lane_.empty()) return t_.store(out_, v, dim(k_.store_offset));
  const Value all = t_.spread(v, kLanes);
  if (is_contiguous_along(k_.store_offset) && stream_.known() && !mask_.known())
    return t_.store_past(out_, all, at_first_lane(k_.store_offset), stream_);
  if (is_contiguous_along(k_.store_offset)) return t_.store_lanes(out_, all, at_first_lane(k_.store_offset), mask_);
  t_.scatter(out_, all, t_.spread(dim(k_.store_offset), kLanes), mask_);
}

// ---- loops ----------------------------------------------------------------------------------------

// Writes for (i = from; i + step <= to; i += step) and returns the final i.
Value Renderer::count(const Value& from, const Value& to, int step, const std::function<void(const Value&)>& body) {
  const std::string id = t_.fresh(), head = "head" + id, inside = "body" + id, next = "next" + id, done = "done" + id;
  const std::string before = t_.label();
  t_.jump(head);
  t_.begin_block(head);
  const Value i =
      t_.emit(Type::I64, 1, "phi i64 [ " + from.name + ", %" + before + " ], [ %i" + id + ", %" + next + " ]");
  const Value after = t_.emit(Type::I64, 1, "add nsw i64 " + i.name + ", " + std::to_string(step));
  t_.branch(after <= to, inside, done);
  t_.begin_block(inside);
  body(i);
  t_.jump(next);
  t_.begin_block(next);
  t_.line("%i" + id + " = add nsw i64 " + i.name + ", " + std::to_string(step));
  t_.jump(head);
  t_.begin_block(done);
  return i;
}

// Writes the body for the lanes of one vector of iterations, restricted to the mask.
void Renderer::in_vector(const std::string& symbol, const Value& base, const Value& mask, const Body& body) {
  lane_ = symbol, first_lane_ = base, mask_ = mask;
  symbols_[symbol] = t_.spread(base, kLanes) + t_.lane_numbers(kLanes);
  body();
  lane_.clear(), first_lane_ = {}, mask_ = {};
  symbols_.erase(symbol);
}

// Writes the body for whole vectors of iterations and for the remainder. If the range is known, one of them may be
// omitted. The outermost range is an argument, because kernels that differ only in it are one.
void Renderer::in_lanes(const std::string& symbol, const Value& from, const Value& to, const Body& body) {
  const bool known = from.name[0] != '%' && to.name[0] != '%';
  const std::int64_t extent = known ? std::stoll(to.name) - std::stoll(from.name) : 0;
  Value base = from;
  if (!known || extent >= kLanes)
    base = count(from, to, kLanes, [&](const Value& i) { in_vector(symbol, i, {}, body); });
  if (known && extent % kLanes == 0) return;
  const std::string id = t_.fresh(), rest = "rest" + id, done = "done" + id;
  t_.branch(base < to, rest, done);
  t_.begin_block(rest);
  in_vector(symbol, base, t_.mask_lane_numbers(kLanes) < to - base, body);
  t_.jump(done);
  t_.begin_block(done);
}

// Maxima of floats are computed as those of integers in the same order: one cycle in the dependency chain instead of a
// dozen.
bool keyed(const Reduction& r) { return r.op == Op::MaxReduce && llvm::register_type(r.dtype) == Type::Float; }

Value Renderer::join(const Reduction& r, const Value& a, const Value& b) {
  return keyed(r) ? select(a < b, b, a) : llvm::apply(r.op, r.dtype, a, b, {});
}

// Writes accumulator = op(accumulator, value) for the valid lanes.
void Renderer::update(int reduction) {
  const Reduction& r = k_.reductions[reduction];
  const Accumulator& a = accumulators_.at(reduction);
  const Value before = t_.get(a.variable, a.type, a.lanes);
  const Instr& v = k_.instrs[r.value];
  const bool product = r.op == Op::SumReduce && v.code == Code::Apply && v.op == Op::Mul && v.dtype == r.dtype &&
                       (r.dtype == DType::F32 || r.dtype == DType::F64);
  const Value more = keyed(r) ? llvm::key(value(r.value)) : value(r.value);
  const Value after = product ? llvm::mul_add(value(v.a), value(v.b), before) : join(r, before, more);
  t_.set(a.variable, mask_.known() ? select(mask_, after, before) : after);
}

void Renderer::fetch_ahead(int loop) {
  if (mask_.known()) return;
  for (const Prefetch& p : k_.ahead)
    if (p.loop == loop)
      t_.prefetch(buffers_[p.buffer], llvm::stored_type(k_.buffers[p.buffer]), at_first_lane(p.offset), p.level);
}

// The same steps as lc_block in the C text.
void Renderer::end_block(int reduction) {
  const Accumulator& a = accumulators_.at(reduction);
  const auto get = [&](const std::string& variable) { return t_.get(variable, a.type, a.lanes); };
  const Value before = get(a.blocks), block = get(a.variable), e = get(a.lost);
  const Value none = t_.spread(t_.real(Type::Float, 0), a.lanes);
  const Value sum = before + block, of_block = sum - before, lost = (before - (sum - of_block)) + (block - of_block);
  t_.set(a.blocks, sum);
  t_.set(a.lost, e + select(lost == lost, lost, none));
  t_.set(a.variable, none);
}
// Ends a block after a step of the loop; `step` is the step's number.
void Renderer::end_block_after(int loop, const Value& step) {
  const Loop& l = loop_at(loop);
  if (l.block == 1) end_block(l.reduction);
  else if (l.block > 1) when((step & integer(l.block - 1)) == integer(l.block - 1), [&] { end_block(l.reduction); });
}

void Renderer::begin_sum(int id) {
  const Reduction& r = k_.reductions[loop_at(id).reduction];
  const bool lanes = loop_at(r.inner_loop).lanes && lane_.empty();
  Accumulator& a = accumulators_[loop_at(id).reduction];
  a.type = keyed(r) ? Type::I32 : llvm::register_type(r.dtype);
  a.lanes = lanes || !lane_.empty() ? kLanes : 1;
  a.variable = t_.variable(a.type, a.lanes);
  const Value start = llvm::constant(t_, r.dtype == DType::Bool ? 0 : info(r.op).identity, r.dtype);
  t_.set(a.variable, t_.spread(keyed(r) ? llvm::key(start) : start, a.lanes));
  if (!blocked(k_, loop_at(id).reduction)) return;
  for (std::string* variable : {&a.blocks, &a.lost}) {
    *variable = t_.variable(a.type, a.lanes);
    t_.set(*variable, t_.spread(t_.real(Type::Float, 0), a.lanes));
  }
}
void Renderer::finish_sum(int id) {
  const Reduction& r = k_.reductions[loop_at(id).reduction];
  const bool lanes = loop_at(r.inner_loop).lanes && lane_.empty();
  Accumulator& a = accumulators_.at(loop_at(id).reduction);
  if (!a.blocks.empty()) end_block(loop_at(id).reduction);
  a.total = a.blocks.empty() ? t_.get(a.variable, a.type, a.lanes)
                             : t_.get(a.blocks, a.type, a.lanes) + t_.get(a.lost, a.type, a.lanes);
  while (lanes && a.total.lanes > 1) a.total = join(r, t_.half(a.total, false), t_.half(a.total, true));
  if (keyed(r)) a.total = llvm::unkey(a.total);
}

void Renderer::reduction_loop(int id) {
  const Loop& l = loop_at(id);
  const Reduction& r = k_.reductions[l.reduction];
  if (id == r.outer_loop) begin_sum(id);
  const Value extent = dim(l.extent);
  if (id == r.inner_loop && loop_at(r.inner_loop).lanes && lane_.empty()) {
    in_lanes(l.symbol, integer(0), extent, [&] { fetch_ahead(id), row_body(id); });
  } else {
    count(integer(0), extent, 1, [&](const Value& i) {
      symbols_[l.symbol] = i;
      block(l.body);
      if (id == r.inner_loop) update(l.reduction);
      end_block_after(id, i);
    });
  }
  if (id == r.outer_loop) finish_sum(id);
}

// ---- loops over pipelined rows -----------------------------------------------------------------------

void Renderer::when(const Value& condition, const Body& body) {
  const std::string id = t_.fresh(), yes = "when" + id, done = "then" + id;
  t_.branch(condition, yes, done);
  t_.begin_block(yes);
  body();
  t_.jump(done);
  t_.begin_block(done);
}

// The following code is for the row `behind` rows after the first stage's: loads its kept values and selects its cached
// rows.
void Renderer::in_row(std::size_t behind) {
  const Value row = row_ - static_cast<double>(behind);
  symbols_[loop_at(k_.pipelined).symbol] = row;
  for (const auto& [id, memory] : passed_)
    values_[id] =
        t_.load(memory, llvm::register_type(k_.instrs[id].dtype), t_.binary("urem", row, integer(ring_size(k_))), {});
  for (std::size_t r = 0; r < k_.rows.size(); ++r)
    if (const Row& w = k_.rows[r]; w.copies > 1)
      rows_[r] = t_.address(copies_[r], llvm::register_type(w.dtype),
                            t_.binary("urem", row, integer(w.copies)) * integer(w.elements))
                     .name;
}
void Renderer::once_a_row(const std::vector<int>& values) {
  for (const int id : values) {
    const Value v = values_[id] = expression(k_.instrs[id]);
    if (const auto kept = passed_.find(id); kept != passed_.end())
      t_.store(kept->second, v, t_.binary("urem", symbols_.at(loop_at(k_.pipelined).symbol), integer(ring_size(k_))));
  }
}

// Writes the body of a loop over a row for the lanes of one vector.
void Renderer::row_body(int id) {
  const Loop& l = loop_at(id);
  block(l.body);
  if (l.reduction < 0) return store();
  update(l.reduction);
  if (!mask_.known()) end_block_after(id, shift_right(first_lane_, 4));
}

// Runs all stages as one loop while each has a row, like CRenderer::run_as_one. Rows that do not begin at a whole
// vector use ordinary stores.
void Renderer::run_as_one(const std::vector<Stage>& body, const Value& from, const Value& to) {
  const std::size_t last = body.size() - 1;
  when(stream_ & (row_ >= from + static_cast<double>(last)) & (row_ < to), [&] {
    const Value end = count(integer(0), dim(loop_at(body[last].loop).extent), kLanes, [&](const Value& i) {
      for (std::size_t p = body.size(); p-- > 0;)
        in_row(p),
            in_vector(loop_at(body[p].loop).symbol, i, {}, [&] { fetch_ahead(body[p].loop), row_body(body[p].loop); });
    });
    for (const Stage& p : body) t_.set(cursor_.at(p.loop), end);
  });
}

void Renderer::run_stages(const std::vector<Stage>& body, const Value& from, const Value& to) {
  for (const Stage& p : body) {
    if (loop_at(p.loop).reduction >= 0) begin_sum(p.loop);
    t_.set(cursor_.at(p.loop), integer(0));
  }
  run_as_one(body, from, to);
  for (std::size_t n = body.size(); n-- > 0;) {
    const auto behind = static_cast<double>(n);
    when((row_ >= from + behind) & (row_ < to + behind), [&] {
      in_row(n);
      const Loop& l = loop_at(body[n].loop);
      in_lanes(l.symbol, t_.get(cursor_.at(body[n].loop), Type::I64, 1), dim(l.extent),
               [&] { row_body(body[n].loop); });
      if (l.reduction < 0) return;
      finish_sum(body[n].loop);
      once_a_row(body[n + 1].values);
    });
  }
}

void Renderer::pipelined_rows(int id) {
  const std::vector<Stage> body = stages(k_);
  for (const int v : live_between_stages(k_))
    passed_[v] = t_.array(llvm::register_type(k_.instrs[v].dtype), ring_size(k_));
  for (const Stage& p : body) cursor_[p.loop] = t_.variable(Type::I64, 1);
  copies_ = rows_;
  const auto [from, to] = range(id);
  count(from, to + static_cast<double>(body.size() - 1), 1, [&, from = from, to = to](const Value& t) {
    row_ = t;
    if (!body[0].values.empty()) when(t < to, [&] { in_row(0), once_a_row(body[0].values); });
    run_stages(body, from, to);
  });
}

std::pair<Value, Value> Renderer::range(int id) {
  const Loop& l = loop_at(id);
  if (l.tile >= 0) return {symbols_.at(loop_at(l.tile).symbol), tile_end_.at(id)};
  if (id == 0) return {Value{&t_, "%begin", Type::I64, 1}, Value{&t_, "%end", Type::I64, 1}};
  return {integer(0), dim(l.extent)};
}

// Transposes a block of 16 bytes a side in registers: each round interleaves each vector with the one half their number
// further on.
void Renderer::turn_block(const Tile& tile, const std::string& to, const Value& row, const Value& column) {
  const Type type = llvm::stored_type(tile.dtype);
  const int side = 16 / static_cast<int>(size_of(tile.dtype));
  std::vector<Value> x;
  for (int k = 0; k < side; ++k)
    x.push_back(t_.load_lanes(buffers_[tile.buffer], type, origin_ + (column + k) * stride_ + row, side, {}));
  for (int s = 1; s < side; s *= 2) {
    std::vector<Value> y;
    for (std::size_t k = 0; k < x.size() / 2; ++k)
      for (const bool upper : {false, true}) y.push_back(t_.interleaved(x[k], x[k + x.size() / 2], upper));
    x = std::move(y);
  }
  for (int k = 0; k < side; ++k) t_.store_lanes(to, x[k], (row + k) * integer(tile.pitch) + column, {});
}

void Renderer::copy_transposed(const Tile& tile, const std::string& to, const Value& row, const Value& column) {
  const Value v = t_.load(buffers_[tile.buffer], llvm::stored_type(tile.dtype), origin_ + column * stride_ + row, {});
  t_.store(to, v, row * integer(tile.pitch) + column);
}

void Renderer::fill(std::size_t t) {
  const Tile& tile = k_.tiles[t];
  const std::string& to = buffers_[k_.buffers.size() + t];
  const int side = 16 / static_cast<int>(size_of(tile.dtype));
  const auto [first, row_end] = range(tile.across);
  const auto [begin, column_end] = range(tile.across + 1);
  const Value rows = row_end - first, columns = column_end - begin;
  origin_ = dim(tile.origin), stride_ = dim(tile.stride);
  const Value column = count(integer(0), columns, side, [&](const Value& c) {
    const Value row = count(integer(0), rows, side, [&](const Value& r) { turn_block(tile, to, r, c); });
    count(row, rows, 1, [&](const Value& r) {
      for (int k = 0; k < side; ++k) copy_transposed(tile, to, r, c + k);
    });
  });
  count(column, columns, 1,
        [&](const Value& c) { count(integer(0), rows, 1, [&](const Value& r) { copy_transposed(tile, to, r, c); }); });
}

void Renderer::loop(int id) {
  const Loop& l = loop_at(id);
  if (l.reduction >= 0) return reduction_loop(id);
  if (id == k_.pipelined) return pipelined_rows(id);
  for (std::size_t t = 0; t < k_.tiles.size(); ++t)
    if (k_.tiles[t].across == id) fill(t);
  const auto [from, to] = range(id);
  const auto body = [&] {
    block(l.body);
    if (id == k_.output_loops - 1) store();
  };
  // Few iterations would leave most lanes empty; LLVM unrolls them.
  const bool few = id > 0 && l.extent.is_constant() && 2 * l.extent.offset() <= kLanes &&
                   std::none_of(l.body.items.begin(), l.body.items.end(), [](const Item& i) { return i.is_loop; });
  if (l.lanes && !few) return in_lanes(l.symbol, from, to, [&] { fetch_ahead(id), body(); });
  const auto step = static_cast<int>(l.step);
  count(from, step > 1 ? to + (step - 1) : to, step, [&, to = to](const Value& i) {
    symbols_[l.symbol] = i;
    for (int through = 0; through < k_.output_loops; ++through)
      if (loop_at(through).tile == id) tile_end_[through] = select(i + step < to, i + step, to);
    body();
  });
}

void Renderer::block(const Block& b) {
  for (const Item& i : b.items) {
    if (i.is_loop) {
      loop(i.id);
      continue;
    }
    const Value v = values_[i.id] = expression(k_.instrs[i.id]);
    for (const CachedValue& keep : k_.cached_values)
      if (keep.value == i.id) t_.store_lanes(rows_[keep.row], t_.spread(v, kLanes), at_first_lane(keep.at), mask_);
  }
}

std::string Renderer::text(std::string_view name) {
  const std::string byte = t_.pointer(Type::U8), bytes = byte == "ptr" ? byte : byte + "*";
  const auto elements = [&](const std::string& p, DType t) {
    const std::string type = t_.pointer(llvm::stored_type(t));
    return type == byte ? p : t_.emit(Type::U8, 1, "bitcast " + byte + " " + p + " to " + type).name;
  };
  for (std::size_t k = 0; k < k_.buffers.size(); ++k) {
    const std::string at =
        t_.emit(Type::U8, 1, "getelementptr " + byte + ", " + bytes + " %in, i64 " + std::to_string(k)).name;
    buffers_.push_back(elements(t_.emit(Type::U8, 1, "load " + byte + ", " + bytes + " " + at).name, k_.buffers[k]));
  }
  out_ = elements("%out", k_.dtype);
  for (const Row& row : k_.rows) rows_.push_back(t_.array(llvm::register_type(row.dtype), row.elements * row.copies));
  for (const Tile& t : k_.tiles) buffers_.push_back(t_.array(llvm::stored_type(t.dtype), t.elements));
  for (std::size_t k = 0; k < k_.sizes.size(); ++k)
    symbols_[k_.sizes[k]] = t_.load("%n", Type::I64, integer(static_cast<std::int64_t>(k)), {});
  if (k_.streams) stream_ = t_.load("%n", Type::I64, integer(static_cast<std::int64_t>(k_.sizes.size())), {}) != 0;
  block(k_.top);
  if (k_.output_loops == 0) store();
  if (k_.streams && k_.fence) t_.stored_past();
  return t_.finish("define void @" + std::string(name) + "(" + bytes + " %in, " + byte + " %out, " +
                   t_.pointer(Type::I64) + " %n, i64 %begin, i64 %end) nounwind");
}

}  // namespace

std::string render_llvm(const Kernel& k, std::string_view name, const llvm::Target& target) {
  return Renderer(k, target).text(name);
}

}  // namespace lc::codegen
