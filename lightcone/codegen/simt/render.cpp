// Renders kernel IR on a grid as text.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "lightcone/codegen/c/text.h"
#include "lightcone/codegen/simt/grid.h"
#include "lightcone/codegen/symbols.h"

namespace lc::codegen::simt {
namespace {

using std::to_string;

// Returns the type in memory. A language may need another name for signed bytes, for which it has vectors
// (prelude.cpp).
std::string memory_type(DType t) { return t == DType::I8 ? "lc_i8" : std::string(info(t).c); }

class Renderer {
 public:
  Renderer(const Kernel& k, const Grid& g, Language language, int warp)
      : k_(k), g_(g), language_(language), warp_(warp), index_(g.wide ? "long" : "int") {}
  std::string text(std::string_view name);
  InlinedLines inlined(const Inlined& at);

 private:
  const Loop& loop_at(int id) const { return k_.loops[id]; }
  const Instr& instr(int id) const { return k_.instrs[id]; }
  const Reduction& reduction(int id) const { return k_.reductions[id]; }
  bool together() const { return g_.threads > 1; }

  std::string dim(const Dim& d);
  std::string atom(const Dim::Atom* a);
  std::string value(int id) const { return "v" + to_string(id); }
  std::string operand(int k) const { return at_ ? at_->operand(k) : "in" + to_string(k); }
  std::string load(const Instr& i);
  std::string gathered(const Instr& i);
  std::string applied(const Instr& i);
  std::string expression(int id);

  void define(int id);
  void straight(const Block& b);  // writes its values, and its loops one after the other
  void row(const Block& b, int output);
  void rest_of_row(int first);
  void indices(const std::vector<int>& loops, std::string flat, int vector);
  std::map<int, Dim> wide_loads(const std::vector<int>& values, const Loop& along) const;
  void lanes(const std::vector<int>& values, const Loop& along, const std::function<void()>& last);
  int open_shared(const std::string& q, const Dim& n);
  void share(const std::vector<int>& loops, const std::vector<int>& values, const std::function<void()>& last,
             const std::function<void(const std::string&)>& round = {});
  void serial_reduction(int id);
  void shared_reduction(int id);
  void fold(const Reduction& r, const std::string& acc);
  std::map<int, std::int64_t> blocks_of(int reduction, const std::vector<int>& shared) const;
  void begin_blocks(int reduction, const std::map<int, std::int64_t>& blocks);
  void end_block(int reduction, const std::string& step, std::int64_t block);
  void end_blocks(int reduction);
  std::string joined(const Reduction& r, const std::string& a, const std::string& b) {
    return spell(r.op, r.dtype, a, b, "");
  }
  std::string fed(const Reduction& r, const std::string& acc, const std::vector<int>& in_scope);
  void store();
  void store_lanes(const std::vector<int>& values, const Loop& along);
  std::vector<int> values_in(const Block& b) const;
  bool has_loops(const Block& b) const {
    return std::ranges::any_of(b.items, [](const Item& i) { return i.is_loop; });
  }
  std::string row_element(int row, const Dim& at) {
    const auto n = to_string(k_.rows[row].elements);
    return "row" + to_string(row) + "[" + (g_.rows_a_group > 1 ? "which_ * " + n + " + " : "") + dim(at) + "]";
  }
  void line(const std::string& s) { out_ += std::string(static_cast<std::size_t>(indent_) * 2, ' ') + s + "\n"; }
  void open(const std::string& s) { line(s), ++indent_; }
  void close() { --indent_, line("}"); }

  const Kernel& k_;
  const Grid& g_;
  Language language_;
  int warp_;
  std::string index_;  // the type of indices
  std::string out_;
  int indent_ = 1, folds_ = 0;
  const Inlined* at_ = nullptr;
  std::map<int, std::map<int, std::int64_t>> blocks_;  // block lengths of each reduction's loops; -1: the shared loops
  std::map<int, std::string> wide_;  // values in a wide register: the expression of this lane's element
};

// ---- numbers ----------------------------------------------------------------------------------

std::string Renderer::atom(const Dim::Atom* a) {
  const auto plain = [](const Dim& x, const Dim& y) { return x.bounds().lo >= 0 && y.is_constant() && y.offset() > 0; };
  const auto floored = [&](const char* f) {
    return "lc_floor_" + std::string(f) + (g_.wide ? "(" : "_i(") + dim(a->a) + ", " + dim(a->b) + ")";
  };
  // An unsigned division by a constant takes fewer instructions.
  const std::string kind = g_.wide ? "(u64)" : "(u32)";
  switch (a->kind) {
    case Dim::Kind::Symbol: {
      const auto n = std::ranges::find(k_.sizes, a->name);
      if (n == k_.sizes.end()) return a->name;
      return at_ ? at_->size(static_cast<std::size_t>(n - k_.sizes.begin())) : "n" + to_string(n - k_.sizes.begin());
    }
    case Dim::Kind::Div:
      return plain(a->a, a->b) ? "(" + index_ + ")(" + kind + dim(a->a) + " / " + dim(a->b) + "u)" : floored("div");
    case Dim::Kind::Mod:
      return plain(a->a, a->b) ? "(" + index_ + ")(" + kind + dim(a->a) + " % " + dim(a->b) + "u)" : floored("mod");
    case Dim::Kind::Min: {
      const std::string x = dim(a->a), y = dim(a->b);
      return "(" + x + " < " + y + " ? " + x + " : " + y + ")";
    }
    case Dim::Kind::Less: return "(" + index_ + ")(" + dim(a->a) + " < " + dim(a->b) + ")";
  }
  return {};
}

std::string Renderer::dim(const Dim& d) {
  const std::string_view suffix = g_.wide ? "L" : "";
  const auto number = [&](std::int64_t v) {
    if (v == INT64_MIN) return std::string("(-9223372036854775807L - 1)");
    return v < 0 ? "(" + to_string(v) + std::string(suffix) + ")" : to_string(v) + std::string(suffix);
  };
  if (d.is_constant()) return d.offset() >= 0 && !g_.wide ? to_string(d.offset()) : number(d.offset());
  std::string s;
  for (const Dim::Term& t : d.terms()) {
    std::string p = t.coefficient == 1 ? "" : number(t.coefficient);
    for (const Dim::Atom* f : t.factors) p += (p.empty() ? "" : "*") + atom(f);
    s += (s.empty() ? "" : " + ") + p;
  }
  if (d.offset() != 0) s += " + " + number(d.offset());
  return "(" + s + ")";
}

std::string Renderer::load(const Instr& i) {
  if (at_ && i.buffer == at_->made) return at_->value;
  const std::string v = loaded(operand(i.buffer), i.dtype, dim(i.offset));
  if (i.valid == Dim(1)) return v;
  return "(" + dim(i.valid) + " ? " + v + " : (" + std::string(register_type(i.dtype)) + ")0)";
}

std::string Renderer::gathered(const Instr& i) {
  const std::string j = "(long)" + value(i.a);
  std::string guard = "(" + j + " >= 0 && " + j + " < (long)" + dim(i.extent) + ")";
  if (!(i.valid == Dim(1))) guard = "(" + dim(i.valid) + " && " + guard + ")";
  return "(" + guard + " ? " +
         loaded(operand(i.buffer), i.dtype, dim(i.offset) + " + " + j + " * (long)" + dim(i.stride)) + " : (" +
         std::string(register_type(i.dtype)) + ")0)";
}

std::string Renderer::applied(const Instr& i) {
  const int last = i.c >= 0 ? i.c : i.b >= 0 ? i.b : i.a;
  const DType operand = instr(last).dtype;
  const auto v = [&](int id) { return id >= 0 ? value(id) : std::string(); };
  if (i.op == Op::Bitcast) return bits_as(v(i.a), operand, i.dtype);
  const std::string e = spell(i.op, operand, v(i.a), v(i.b), v(i.c));
  return info(i.op).types == Types::Compare || i.op == Op::Where ? e : rounded(e, i.dtype);
}

std::string Renderer::expression(int id) {
  const Instr& i = instr(id);
  if (const auto w = wide_.find(id); w != wide_.end()) return loaded_as(i.dtype, w->second);
  switch (i.code) {
    case Code::Constant: return number(i.value, i.dtype);
    case Code::Index: return converted("(long)" + dim(i.offset), DType::I64, i.dtype);
    case Code::Load: return load(i);
    case Code::GatherLoad: return gathered(i);
    case Code::Apply: return applied(i);
    case Code::MulAdd: return spell_mul_add(i.dtype, value(i.a), value(i.b), value(i.c));
    case Code::Convert: return converted(value(i.a), instr(i.a).dtype, i.dtype);
    case Code::Accumulator: return converted("a" + to_string(i.buffer), reduction(i.buffer).dtype, i.dtype);
    case Code::CachedRow: return row_element(i.buffer, i.offset);
  }
  return {};
}

// ---- straight code ----------------------------------------------------------------------------

void Renderer::define(int id) {
  line("const " + std::string(register_type(instr(id).dtype)) + " " + value(id) + " = " + expression(id) + ";");
  for (const CachedValue& keep : k_.cached_values)
    if (keep.value == id) line(row_element(keep.row, keep.at) + " = " + value(id) + ";");
}

std::vector<int> Renderer::values_in(const Block& b) const {
  std::vector<int> all;
  for (const Item& i : b.items)
    if (!i.is_loop) all.push_back(i.id);
  return all;
}

void Renderer::straight(const Block& b) {
  for (const Item& i : b.items) {
    if (i.is_loop) serial_reduction(i.id);
    else define(i.id);
  }
}

// Writes the indices of these loops, outermost first, from a flat index that counts vectors.
void Renderer::indices(const std::vector<int>& loops, std::string flat, int vector) {
  for (std::size_t n = loops.size(); n-- > 0;) {
    const Loop& l = loop_at(loops[n]);
    const bool inner = n + 1 == loops.size();
    const Dim extent = inner && vector > 1 ? l.extent / Dim(vector) : l.extent;
    const std::string by = inner && vector > 1 ? " * " + to_string(vector) : "", e = dim(extent);
    const std::string u = g_.wide ? "(u64)" : "(u32)";
    if (n == 0) {
      line("const " + index_ + " " + l.symbol + " = " + flat + by + ";");
      return;
    }
    line("const " + index_ + " " + l.symbol + " = (" + index_ + ")(" + u + flat + " % " + u + e + ")" + by + ";");
    const std::string next = "f" + to_string(folds_++) + "_";
    line("const " + index_ + " " + next + " = (" + index_ + ")(" + u + flat + " / " + u + e + ");");
    flat = next;
  }
}

// ---- several elements at once -----------------------------------------------------------------

// Returns the loads whose lanes are neighbours, with the offset of the first lane.
std::map<int, Dim> Renderer::wide_loads(const std::vector<int>& values, const Loop& along) const {
  std::map<int, Dim> found;
  for (int id : values) {
    const Instr& i = instr(id);
    if (i.code != Code::Load || !(i.valid == Dim(1))) continue;
    const Dim first = renamed(i.offset, along.symbol, 0);
    if (i.offset - first == symbol(along)) found.emplace(id, i.offset);
  }
  return found;
}

// Writes the values for the elements at the current symbol, and `last` for each of them.
void Renderer::lanes(const std::vector<int>& values, const Loop& along, const std::function<void()>& last) {
  if (g_.vector == 1) {
    for (int id : values) define(id);
    return last();
  }
  const std::string n = to_string(g_.vector);
  const auto wide = wide_loads(values, along);
  for (const auto& [id, offset] : wide)
    line("LC_LOADV(" + memory_type(instr(id).dtype) + ", " + n + ", w" + to_string(id) + ", in" +
         to_string(instr(id).buffer) + " + " + dim(offset) + ");");
  line("const " + index_ + " first_ = " + along.symbol + ";");
  line("LC_UNROLL");
  open("for (int l = 0; l < " + n + "; ++l) {");
  line("const " + index_ + " " + along.symbol + " = first_ + l;");
  for (const auto& [id, offset] : wide) wide_[id] = "LC_AT(w" + to_string(id) + ", l)";
  for (int id : values) define(id);
  last();
  for (const auto& [id, offset] : wide) wide_.erase(id);
  close();
}

// Opens a loop over [0, n) that the threads of a row share, and returns the number of braces opened. All threads run
// the same number of iterations: PoCL 3.1 miscompiles a loop with a thread-dependent count if another loop is inside of
// it.
int Renderer::open_shared(const std::string& q, const Dim& n) {
  const std::string threads = to_string(g_.threads);
  const auto known = n.constant();
  if (!together()) {
    open("for (" + index_ + " " + q + " = 0; " + q + " < " + dim(n) + "; ++" + q + ") {");
    return 1;
  }
  open("for (" + index_ + " " + q + "0 = 0; " + q + "0 < " + dim(n) + "; " + q + "0 += " + threads + ") {");
  line("const " + index_ + " " + q + " = " + q + "0 + lane_;");
  if (known && *known % g_.threads == 0) return 1;
  open("if (" + q + " < " + dim(n) + ") {");
  return 2;
}

// Distributes nested loops over the threads of a row. `round` is called after each round with its number.
void Renderer::share(const std::vector<int>& loops, const std::vector<int>& values, const std::function<void()>& last,
                     const std::function<void(const std::string&)>& round) {
  Dim all = 1;
  for (int l : loops) all = all * loop_at(l).extent;
  if (g_.vector > 1) all = all / Dim(g_.vector);
  const std::string q = "q" + to_string(folds_++) + "_";
  const int opened = open_shared(q, all);
  indices(loops, q, g_.vector);
  const Loop& inner = loop_at(loops.back());
  if (has_loops(inner.body)) {
    for (int id : values) define(id);
    straight(inner.body);
    last();
  } else {
    std::vector<int> all_values = values;
    for (int id : values_in(inner.body)) all_values.push_back(id);
    lanes(all_values, inner, last);
  }
  for (int n = 0; n + 1 < opened; ++n) close();
  if (round) round("(" + q + "0 / " + to_string(g_.threads) + ")");
  close();
}

// ---- reductions -------------------------------------------------------------------------------

// A product whose factors are in scope is fused with the sum.
std::string Renderer::fed(const Reduction& r, const std::string& acc, const std::vector<int>& in_scope) {
  const Instr& v = instr(r.value);
  const bool here = !in_scope.empty() && in_scope.back() == r.value;
  if (here && r.op == Op::SumReduce && v.code == Code::Apply && v.op == Op::Mul && v.dtype == r.dtype &&
      (r.dtype == DType::F32 || r.dtype == DType::F64))
    return spell_mul_add(r.dtype, value(v.a), value(v.b), acc);
  return joined(r, acc, value(r.value));
}

// Long sums are sums of blocks (codegen/schedule/blocks.cpp). Returns the blocks of the loops as one thread runs them,
// or runs its share of the outer, shared ones.
std::map<int, std::int64_t> Renderer::blocks_of(int number, const std::vector<int>& shared) const {
  const Reduction& r = reduction(number);
  std::map<int, std::int64_t> blocks;
  if (r.op != Op::SumReduce || r.dtype != DType::F32) return blocks;
  std::int64_t added = 1;
  for (int id = r.inner_loop; shared.empty() || id != shared.back(); id = loop_at(id).parent) {
    blocks[id] = block_of(loop_at(id).extent.bounds().hi, added);
    if (id == r.outer_loop) return blocks;
  }
  Dim all = 1;
  for (const int id : shared) all = all * loop_at(id).extent;
  if (shared.back() == r.inner_loop) added = g_.vector;
  const std::int64_t most = all.bounds().hi, of_round = std::int64_t{g_.threads} * g_.vector;
  blocks[-1] = block_of(most / of_round + (most % of_round != 0), added);
  return blocks;
}
void Renderer::begin_blocks(int number, const std::map<int, std::int64_t>& blocks) {
  const std::string n = to_string(number);
  if (!std::ranges::any_of(blocks, [](const auto& b) { return b.second > 0; })) return;
  blocks_[number] = blocks;
  line("float b" + n + " = 0.0f, e" + n + " = 0.0f;");
}
void Renderer::end_block(int number, const std::string& step, std::int64_t block) {
  const std::string n = to_string(number), last = to_string(block - 1);
  if (block == 0) return;
  const std::string at_end = block == 1 ? "" : "if ((" + step + " & " + last + ") == " + last + ") ";
  line(at_end + "LC_BLOCK(b" + n + ", e" + n + ", a" + n + ");");
}
void Renderer::end_blocks(int number) {
  const std::string n = to_string(number);
  if (!blocks_.contains(number)) return;
  line("LC_BLOCK(b" + n + ", e" + n + ", a" + n + ");");
  line("a" + n + " = b" + n + " + e" + n + ";");
}

void Renderer::serial_reduction(int id) {
  const Loop& l = loop_at(id);
  const Reduction& r = reduction(l.reduction);
  const std::string acc = "a" + to_string(l.reduction), type(register_type(r.dtype));
  if (id == r.outer_loop) {
    line(type + " " + acc + " = " + identity(r) + ";");
    begin_blocks(l.reduction, blocks_of(l.reduction, {}));
  }
  open("for (" + index_ + " " + l.symbol + " = 0; " + l.symbol + " < " + dim(l.extent) + "; ++" + l.symbol + ") {");
  straight(l.body);
  if (id == r.inner_loop) line(acc + " = " + fed(r, acc, values_in(l.body)) + ";");
  if (const auto b = blocks_.find(l.reduction); b != blocks_.end()) end_block(l.reduction, l.symbol, b->second.at(id));
  close();
  if (id == r.outer_loop) end_blocks(l.reduction);
}

void Renderer::shared_reduction(int id) {
  const int number = loop_at(id).reduction;
  const Reduction& r = reduction(number);
  const std::string acc = "a" + to_string(number), type(register_type(r.dtype));
  line(type + " " + acc + " = " + identity(r) + ";");
  std::vector<int> loops, values;
  for (int l = id;;) {
    loops.push_back(l);
    const Block& body = loop_at(l).body;
    // If the body has another reduction as well, each thread runs the remaining loops by itself.
    if (l == r.inner_loop || std::ranges::count_if(body.items, &Item::is_loop) > 1) break;
    int next = -1;
    for (const Item& i : body.items) {
      if (i.is_loop) next = i.id;
      else values.push_back(i.id);
    }
    l = next;
  }
  const std::vector<int> inside = values_in(loop_at(r.inner_loop).body);
  const auto blocks = blocks_of(number, loops);
  begin_blocks(number, blocks);
  const std::function<void()> last = [&] {
    if (loops.back() == r.inner_loop) line(acc + " = " + fed(r, acc, inside) + ";");
  };
  if (blocks_.contains(number))
    share(loops, values, last, [&](const std::string& round) { end_block(number, round, blocks.at(-1)); });
  else share(loops, values, last);
  end_blocks(number);
  fold(r, acc);
}

// Combines the partial results of a row's threads: within a warp by exchanging registers, across warps through shared
// memory. The order depends on the number of threads alone.
void Renderer::fold(const Reduction& r, const std::string& acc) {
  const std::string type(register_type(r.dtype)), n = to_string(folds_++);
  const int width = language_ == Language::Metal && size_of(r.dtype) == 8 ? 1 : warp_;
  const int exchanged = g_.across ? 1 : std::min(width, g_.threads);
  if (exchanged > 1)
    line("for (int s = " + to_string(exchanged / 2) + "; s > 0; s /= 2) " + acc + " = " +
         joined(r, acc, "lc_shuffle" + std::string(suffix(r.dtype)) + "(" + acc + ", s)") + ";");
  if (exchanged == g_.threads) return;
  const std::string part = "part" + n;
  line("LC_SHARED(" + type + ", " + part + ", " + to_string(g_.group_threads() / exchanged) + ");");
  if (exchanged > 1) {
    line("if (LC_THREAD % " + to_string(exchanged) + " == 0) " + part + "[LC_THREAD / " + to_string(exchanged) +
         "] = " + acc + ";");
    line("LC_BARRIER;");
    const std::string first = g_.rows_a_group > 1 ? "which_ * " + to_string(g_.threads / exchanged) : "0";
    line(acc + " = " + part + "[" + first + "];");
    line("for (int s = 1; s < " + to_string(g_.threads / exchanged) + "; ++s) " + acc + " = " +
         joined(r, acc, part + "[" + first + " + s]") + ";");
    return;  // each fold has its own memory, so nothing overwrites it
  }
  line(part + "[LC_THREAD] = " + acc + ";");
  line("LC_BARRIER;");
  for (int s = g_.threads / 2; s > 0; s /= 2) {
    const std::string other = "[LC_THREAD + " + to_string(g_.across ? s * g_.rows_a_group : s) + "]";
    line("if (lane_ < " + to_string(s) + ") " + part +
         "[LC_THREAD] = " + joined(r, part + "[LC_THREAD]", part + other) + ";");
    line("LC_BARRIER;");
  }
  line(acc + " = " + part + (g_.across ? "[which_];" : "[LC_THREAD - lane_];"));
}

// ---- the whole --------------------------------------------------------------------------------

void Renderer::store() {
  const bool guarded = together() && g_.rows_a_group > 1;
  const std::string first = g_.rows == k_.output_loops && together() ? "lane_ == 0" : "";
  const std::string test = guarded && !first.empty() ? "inside_ && " + first : guarded ? "inside_" : first;
  line((test.empty() ? "" : "if (" + test + ") ") + "out_[" + dim(k_.store_offset) +
       "] = " + stored(value(k_.result), k_.dtype) + ";");
}

// Writes the innermost output loop, one vector at a time.
void Renderer::store_lanes(const std::vector<int>& values, const Loop& along) {
  const Dim first = renamed(k_.store_offset, along.symbol, 0);
  const bool whole = g_.vector > 1 && k_.store_offset - first == symbol(along);
  if (!whole) return lanes(values, along, [&] { store(); });
  const std::string n = to_string(g_.vector), type = memory_type(k_.dtype);
  line("LC_VECTOR(" + type + ", " + n + ", to_);");
  lanes(values, along, [&] { line("LC_AT(to_, l) = (" + type + ")(" + stored(value(k_.result), k_.dtype) + ");"); });
  line(std::string(together() && g_.rows_a_group > 1 ? "if (inside_) { " : "{ ") + "LC_STOREV(" + type + ", " + n +
       ", out_ + " + dim(k_.store_offset) + ", to_); }");
}

// Writes the block of output loop `output` - 1 and everything below it.
void Renderer::row(const Block& b, int output) {
  for (const Item& i : b.items) {
    if (!i.is_loop) {
      if (together() || g_.vector == 1 || output < k_.output_loops) define(i.id);
      continue;
    }
    const Loop& l = loop_at(i.id);
    if (l.reduction >= 0) {
      if (together()) shared_reduction(i.id);
      else serial_reduction(i.id);
      if (!k_.cached_values.empty()) line("LC_BARRIER;");
    } else if (i.id < g_.rows) {
      row(l.body, i.id + 1);
    } else {
      rest_of_row(i.id);
    }
  }
}

// Writes the output loops from this one on, which the threads of the row share.
void Renderer::rest_of_row(int first) {
  std::vector<int> loops, values;
  bool sums = false;
  Dim all = 1;
  for (int id = first; id < k_.output_loops; ++id) {
    loops.push_back(id);
    all = all * loop_at(id).extent;
    for (const Item& i : loop_at(id).body.items)
      if (!i.is_loop) values.push_back(i.id);
      else sums = sums || loop_at(i.id).reduction >= 0;
  }
  if (g_.vector > 1) all = all / Dim(g_.vector);
  const int opened = open_shared("q_", all);
  indices(loops, "q_", g_.vector);
  if (sums) {
    for (int id : loops)
      for (const Item& i : loop_at(id).body.items) {
        if (!i.is_loop) define(i.id);
        else if (loop_at(i.id).reduction >= 0) serial_reduction(i.id);
      }
    store();
  } else {
    store_lanes(values, loop_at(loops.back()));
  }
  for (int n = 0; n < opened; ++n) close();
}

std::string Renderer::text(std::string_view name) {
  std::vector<Parameter> parameters;
  for (std::size_t k = 0; k < k_.buffers.size(); ++k)
    parameters.push_back({memory_type(k_.buffers[k]), "in" + to_string(k)});
  parameters.push_back({memory_type(k_.dtype), "out_", true});
  for (std::size_t k = 0; k < k_.rows.size(); ++k)
    line("LC_SHARED(" + std::string(register_type(k_.rows[k].dtype)) + ", row" + to_string(k) + ", " +
         to_string(k_.rows[k].elements * g_.rows_a_group) + ");");
  Dim rows = 1;
  std::vector<int> loops;
  for (int i = 0; i < g_.rows; ++i) rows = rows * loop_at(i).extent, loops.push_back(i);
  const bool vector = !together() && g_.vector > 1;
  if (vector) rows = rows / Dim(g_.vector);
  const std::string a_group = to_string(g_.rows_a_group), n = dim(rows);
  const std::string group = "(" + index_ + ")LC_GROUP";
  if (!together()) {
    line("const " + index_ + " row_ = " + group + " * " + a_group + " + LC_THREAD;");
    line("if (row_ >= " + n + ") return;");
  } else if (g_.rows_a_group == 1) {
    line("const int lane_ = LC_THREAD;");
    line("const " + index_ + " row_ = " + group + ";");
  } else {  // all threads stay because of barriers: some recompute the last row
    const std::string by = to_string(g_.across ? g_.rows_a_group : g_.threads);
    const std::string quotient = "LC_THREAD / " + by, rest = "LC_THREAD % " + by;
    line("const int lane_ = " + (g_.across ? quotient : rest) + ", which_ = " + (g_.across ? rest : quotient) + ";");
    line("const int inside_ = " + group + " * " + a_group + " + which_ < " + n + ";");
    line("const " + index_ + " row_ = inside_ ? " + group + " * " + a_group + " + which_ : " + n + " - 1;");
  }
  indices(loops, "row_", vector ? g_.vector : 1);
  if (vector) {
    const Loop& inner = loop_at(k_.output_loops - 1);
    row(k_.top, 0);
    store_lanes(values_in(inner.body), inner);
  } else {
    row(k_.top, 0);
    if (g_.rows == k_.output_loops) store();
  }
  const std::string body = std::move(out_);
  const int threads = g_.group_threads();
  return begin_kernel(language_, name, threads, parameters, k_.sizes.size(), index_) + body + "}\n";
}

// Writes straight-line code in the caller's scope: the indices under the loops' names, then the values.
InlinedLines Renderer::inlined(const Inlined& at) {
  at_ = &at;
  indent_ = 3;
  line("const " + index_ + " " + loop_at(0).symbol + " = " + at.row + ";");
  line("const " + index_ + " " + loop_at(1).symbol + " = " + at.column + ";");
  for (const Block* b : {&k_.top, &loop_at(0).body, &loop_at(1).body})
    for (int id : values_in(*b)) define(id);
  return {std::move(out_), stored(value(k_.result), k_.dtype)};
}

}  // namespace

InlinedLines render_inlined(const Kernel& k, const Inlined& at, bool wide, Language language) {
  Grid g;
  g.wide = wide;
  return Renderer(k, g, language, 1).inlined(at);
}

std::string render(const Kernel& k, const Grid& grid, std::string_view name, Language language, int warp) {
  return Renderer(k, grid, language, warp).text(name);
}

}  // namespace lc::codegen::simt
