// Kernel IR run without a compiler: the fallback where none is installed, and the check that the
// IR itself, not only its C text, means what the graph says.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "lightcone/codegen/interpret.h"
#include "lightcone/core/error.h"
#include "lightcone/core/numbers.h"

namespace lc::ir {
namespace {

using i64 = std::int64_t;

using Register = Element;

struct Run {
  const Kernel& k;
  std::vector<const void*> in;
  void* out;
  Bindings env;
  std::vector<Register> r;
  std::vector<Register> acc;
  std::vector<std::pair<float, float>> blocks;  // of each reduction: the sum of its blocks, and what that lost
  i64 begin, end;
  std::vector<std::vector<Register>> rows;
  std::vector<std::vector<std::byte>> tiles;
  std::vector<std::vector<Register>> kept;  // of pipelined rows, all values

  // An index is computed where nothing will read it too, and an extent of zero may divide there. Any number will do,
  // as in the C text; an Error would leave the thread of a worker.
  i64 index(const Dim& d) const {
    try {
      return d.eval(env);
    } catch (const Error&) {
      return 0;
    }
  }
  double as_float(int id) const { return r[static_cast<std::size_t>(id)].f; }
  DType type(int id) const { return k.instrs[static_cast<std::size_t>(id)].dtype; }

  void set(Register& to, DType t, double v) {
    std::uint64_t raw = 0;
    store_f64(&raw, t, 0, v);
    if (is_float(t)) to.f = load_f64(&raw, t, 0);
    else to.i = load_i64(&raw, t, 0);
  }
  void set(Register& to, DType t, i64 v) {
    std::uint64_t raw = 0;
    store_i64(&raw, t, 0, v);
    if (is_float(t)) to.f = load_f64(&raw, t, 0);
    else to.i = load_i64(&raw, t, 0);
  }
  void load(Register& to, const Instr& i, i64 offset) {
    const void* p = in[static_cast<std::size_t>(i.buffer)];
    if (is_float(i.dtype)) to.f = load_f64(p, i.dtype, static_cast<std::size_t>(offset));
    else to.i = load_i64(p, i.dtype, static_cast<std::size_t>(offset));
  }
  void apply(Register& to, Op op, DType operand, DType result, const Register& a, const Register& b, const Register& c,
             bool condition_first) {
    if (op == Op::Bitcast) {
      to = bitcast(a, operand, result);
      return;
    }
    if (is_float(operand)) {
      const double x = condition_first ? static_cast<double>(a.i) : a.f;
      set(to, result, info(op).f(x, b.f, c.f));
      if (!is_float(result)) to.i = info(op).f(x, b.f, c.f) != 0;
    } else {
      set(to, result, on_integers(op, operand)(a.i, b.i, c.i));
    }
  }
  void step(int id) {
    const Instr& i = k.instrs[static_cast<std::size_t>(id)];
    Register& to = r[static_cast<std::size_t>(id)];
    static const Register none;
    const auto reg = [&](int x) -> const Register& { return x >= 0 ? r[static_cast<std::size_t>(x)] : none; };
    switch (i.code) {
      case Code::Constant: set(to, i.dtype, i.value); break;
      case Code::Index: set(to, i.dtype, index(i.offset)); break;
      case Code::Load:
        to = {};
        if (index(i.valid) != 0) load(to, i, i.offset.eval(env));
        break;
      case Code::GatherLoad: {
        to = {};
        const i64 j = reg(i.a).i;
        if (index(i.valid) != 0 && j >= 0 && j < i.extent.eval(env))
          load(to, i, i.offset.eval(env) + j * i.stride.eval(env));
        break;
      }
      case Code::Apply: {
        const int last = i.c >= 0 ? i.c : i.b >= 0 ? i.b : i.a;
        apply(to, i.op, type(last), i.dtype, reg(i.a), reg(i.b), reg(i.c), i.op == Op::Where);
        break;
      }
      case Code::MulAdd: set(to, i.dtype, std::fma(reg(i.a).f, reg(i.b).f, reg(i.c).f)); break;
      case Code::Convert:
        if (is_float(type(i.a))) set(to, i.dtype, reg(i.a).f);
        else if (i.dtype == DType::F64) set(to, i.dtype, to_f64(reg(i.a).i, type(i.a)));
        else if (is_float(i.dtype)) set(to, i.dtype, odd_f64(reg(i.a).i, type(i.a) == DType::U64));
        else set(to, i.dtype, reg(i.a).i);
        break;
      case Code::Accumulator: {
        const DType sum = k.reductions[static_cast<std::size_t>(i.buffer)].dtype;
        to = acc[static_cast<std::size_t>(i.buffer)];
        if (blocked(k, i.buffer)) {
          const auto [sum, lost] = with_block(i.buffer);
          to.f = sum + lost;
        }
        if (sum != i.dtype) set(to, i.dtype, to.f);
        break;
      }
      case Code::Kept: to = row_element(i.buffer, i.offset); break;
    }
    for (const Keep& keep : k.keeps)
      if (keep.value == id) row_element(keep.row, keep.at) = to;
  }
  Register& row_element(int row, const Dim& at) {
    const Row& w = k.rows[static_cast<std::size_t>(row)];
    const i64 copy = w.copies > 1 ? env.at(k.loops[static_cast<std::size_t>(k.pipelined)].symbol) % w.copies : 0;
    return rows[static_cast<std::size_t>(row)][static_cast<std::size_t>(copy * w.elements + at.eval(env))];
  }
  void store() {
    const auto at = static_cast<std::size_t>(k.store_offset.eval(env));
    const Register& v = r[static_cast<std::size_t>(k.result)];
    if (is_float(k.dtype)) store_f64(out, k.dtype, at, v.f);
    else store_i64(out, k.dtype, at, v.i);
  }
  void start(int reduction) {
    const Reduction& red = k.reductions[static_cast<std::size_t>(reduction)];
    Register& a = acc[static_cast<std::size_t>(reduction)];
    a = {};
    blocks[static_cast<std::size_t>(reduction)] = {};
    if (red.op != Op::MaxReduce) return;
    a.f = -kInf;
    a.i = info(red.dtype).lowest;
  }
  // The sum of a reduction's blocks and what it lost, with the one that is under way: lc_block of the C text.
  std::pair<float, float> with_block(int reduction) const {
    const auto [before, e] = blocks[static_cast<std::size_t>(reduction)];
    const auto a = static_cast<float>(acc[static_cast<std::size_t>(reduction)].f);
    const float sum = before + a, of_a = sum - before, lost = (before - (sum - of_a)) + (a - of_a);
    return {sum, e + (lost == lost ? lost : 0.0f)};
  }
  void block(const Block& b) {
    for (const Item& i : b.items) {
      if (i.is_loop) loop(i.id);
      else step(i.id);
    }
  }
  std::pair<i64, i64> range(int id) const {
    const Loop& l = k.loops[static_cast<std::size_t>(id)];
    if (l.tile >= 0) {
      const Loop& tile = k.loops[static_cast<std::size_t>(l.tile)];
      const i64 from = env.at(tile.symbol);
      return {from, std::min(from + tile.step, range(l.tile).second)};
    }
    return id == 0 && l.reduction < 0 ? std::pair(begin, end) : std::pair(i64{0}, l.extent.eval(env));
  }
  void fill(std::size_t t) {
    const Tile& tile = k.tiles[t];
    const auto [a, a_end] = range(tile.across);
    const auto [b, b_end] = range(tile.across + 1);
    const i64 origin = tile.origin.eval(env), stride = tile.stride.eval(env);
    const std::size_t size = size_of(tile.dtype);
    const auto* from = static_cast<const std::byte*>(in[static_cast<std::size_t>(tile.buffer)]);
    for (i64 row = 0; row < a_end - a; ++row)
      for (i64 column = 0; column < b_end - b; ++column)
        std::memcpy(tiles[t].data() + static_cast<std::size_t>(row * tile.pitch + column) * size,
                    from + (origin + column * stride + row) * static_cast<i64>(size), size);
  }
  void loop(int id) {
    if (id == k.pipelined) return pipelined_rows(id);
    for (std::size_t t = 0; t < k.tiles.size(); ++t)
      if (k.tiles[t].across == id) fill(t);
    const Loop& l = k.loops[static_cast<std::size_t>(id)];
    if (l.reduction >= 0 && id == k.reductions[static_cast<std::size_t>(l.reduction)].outer_loop) start(l.reduction);
    const auto [from, to] = range(id);
    run(id, from, to);
  }
  void run(int id, i64 from, i64 to) {
    const Loop& l = k.loops[static_cast<std::size_t>(id)];
    const Reduction* red = l.reduction >= 0 ? &k.reductions[static_cast<std::size_t>(l.reduction)] : nullptr;
    i64& symbol = env[l.symbol];
    for (i64 v = from; v < to; v += l.step) {
      symbol = v;
      block(l.body);
      if (red && id == red->inner_loop) {
        Register& a = acc[static_cast<std::size_t>(l.reduction)];
        const Register before = a;
        apply(a, red->op, red->dtype, red->dtype, before, r[static_cast<std::size_t>(red->value)], {}, false);
      }
      if (l.block > 0 && (v + 1) % l.block == 0) {
        blocks[static_cast<std::size_t>(l.reduction)] = with_block(l.reduction);
        acc[static_cast<std::size_t>(l.reduction)].f = 0;
      }
      if (!red && id == k.output_loops - 1) store();
    }
  }
  // Values between the loops are found as they were left for the row, and left for it.
  template <class F>
  void for_row(i64 row, const F& f) {
    const auto [from, to] = range(k.pipelined);
    if (row < from || row >= to) return;
    env[k.loops[static_cast<std::size_t>(k.pipelined)].symbol] = row;
    std::vector<Register>& own = kept[static_cast<std::size_t>(row % slots(k))];
    for (const Part& p : parts(k))
      for (const int id : p.values) r[static_cast<std::size_t>(id)] = own[static_cast<std::size_t>(id)];
    f(own);
  }
  void pipelined_rows(int id) {
    const std::vector<Part> body = parts(k);
    const auto last = static_cast<i64>(body.size()) - 1;
    const auto once_a_row = [&](i64 n, i64 row) {
      for_row(row, [&](std::vector<Register>& own) {
        for (const int v : body[static_cast<std::size_t>(n)].values)
          step(v), own[static_cast<std::size_t>(v)] = r[static_cast<std::size_t>(v)];
      });
    };
    const auto [from, to] = range(id);
    for (i64 row = from; row < to + last; ++row) {
      once_a_row(0, row);
      const i64 extent = range(body[0].loop).second;
      for (i64 n = 0; n < last; ++n)
        start(k.loops[static_cast<std::size_t>(body[static_cast<std::size_t>(n)].loop)].reduction);
      for (i64 at = 0; at < extent; at += kLanes)
        for (i64 n = last; n >= 0; --n)
          for_row(row - n,
                  [&](auto&) { run(body[static_cast<std::size_t>(n)].loop, at, std::min(at + kLanes, extent)); });
      for (i64 n = 0; n < last; ++n) once_a_row(n + 1, row - n);
    }
  }
};

}  // namespace

void interpret(const Kernel& k, const void* const* in, void* out, const i64* n, i64 begin, i64 end) {
  Run m{k, std::vector(in, in + k.buffers.size()), out, {}, {}, {}, {}, begin, end, {}, {}, {}};
  for (const Tile& t : k.tiles) {
    m.tiles.emplace_back(static_cast<std::size_t>(t.elements) * size_of(t.dtype));
    m.in.push_back(m.tiles.back().data());
  }
  for (const Row& row : k.rows) m.rows.emplace_back(static_cast<std::size_t>(row.elements * row.copies));
  if (k.pipelined >= 0) m.kept.assign(static_cast<std::size_t>(slots(k)), std::vector<Register>(k.instrs.size()));
  for (std::size_t s = 0; s < k.sizes.size(); ++s) m.env[k.sizes[s]] = n[s];
  m.r.resize(k.instrs.size());
  m.acc.resize(k.reductions.size());
  m.blocks.resize(k.reductions.size());
  m.block(k.top);
  if (k.output_loops == 0) m.store();
}

}  // namespace lc::ir
