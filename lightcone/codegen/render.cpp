#include "lightcone/codegen/render.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "lightcone/codegen/c_text.h"
#include "lightcone/codegen/symbols.h"

namespace lc::ir {
namespace {

class Renderer {
 public:
  Renderer(const Kernel& k, const Dialect& d) : k_(k), dialect_(d) { find_homes(k.top, 0); }
  std::string text(std::string_view name);

 private:
  const Loop& loop_at(int id) const { return k_.loops[static_cast<std::size_t>(id)]; }
  const Instr& instr(int id) const { return k_.instrs[static_cast<std::size_t>(id)]; }
  const Reduction& reduction(int id) const { return k_.reductions[static_cast<std::size_t>(id)]; }
  std::string dim(const Dim& d);
  std::string atom(const Dim::Atom* a);
  std::string value(int id) { return "v" + std::to_string(id) + (arrays_.contains(id) ? "[l]" : ""); }
  std::string condition(const Dim& valid);
  std::string expression(const Instr& i);
  void block(const Block& b, bool vector, const std::string& width);
  void straight(const std::vector<int>& values, bool vector, const std::string& width);
  using Lines = std::function<void()>;
  void lane_body(const std::vector<int>& values, const std::string& symbol, const std::string& base,
                 const std::string& width, const Lines& last = {});
  void find_crossing(const std::vector<int>& values);
  bool by_vectors(int id) const;
  void fetch_ahead(int loop, const std::string& base);
  void loop(int id, bool vector, const std::string& width);
  void output_lanes(int id);
  void by_whole_vectors(int id, const std::string& to, const std::string& until);
  void reduction_loops(int id, bool vector, const std::string& width);
  void begin_sums(int id, bool vector);
  void feed_sums(int id, const std::string& until);
  void rest_of_sums(int id);
  void fold_sums(int id);
  std::string join(const Reduction& r, const std::string& a, const std::string& b);
  bool keyed(const Reduction& r) const;
  std::string key(const Reduction& r, const std::string& v) const { return keyed(r) ? "lc_key_f(" + v + ")" : v; }
  void skewed_rows(int id);
  void find_passed(const std::vector<Part>& body);
  void run_turns(const std::vector<Part>& body);
  void for_row(std::size_t behind, const std::vector<int>& values, int last, const Lines& body);
  void once_a_row(const std::vector<int>& values);
  std::string kept(int id);
  void update(const Loop& l, bool vector, const std::string& width);
  std::string from(int id);
  std::string to(int id);
  void fill_tiles(int loop);
  std::string row_element(int row, const Dim& at) { return "row" + std::to_string(row) + "[" + dim(at) + "]"; }
  void store() { line("out_[" + dim(k_.store_offset) + "] = " + stored(value(k_.result), k_.dtype) + ";"); }
  bool innermost_output(int id) const { return id == k_.output_loops - 1; }
  static std::vector<int> values_in(const Block& b) {
    std::vector<int> all;
    for (const Item& i : b.items)
      if (!i.is_loop) all.push_back(i.id);
    return all;
  }
  bool has_loops(const Block& b) const {
    return std::any_of(b.items.begin(), b.items.end(), [](const Item& i) { return i.is_loop; });
  }
  void line(const std::string& s) { out_ += std::string(static_cast<std::size_t>(indent_) * 2, ' ') + s + "\n"; }
  void open(const std::string& s) { line(s), ++indent_; }
  void close(const std::string& s = "}") { --indent_, line(s); }
  int find_homes(const Block& b, int next);
  void find_arrays(int lane_loop);

  const Kernel& k_;
  const Dialect& dialect_;
  std::string out_;
  int indent_ = 0;
  std::map<int, int> home_;  // value -> the straight segment it stands in
  std::set<int> arrays_;     // values that live across segments inside output lanes
  int lane_loop_ = -1;       // the output loop whose lanes we are inside of
  std::string lane_base_;
  std::set<int> passed_;  // values that one loop over skewed rows computes, or what is between two, and others read
};

int Renderer::find_homes(const Block& b, int next) {
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

// Inside output lanes a value used in another segment needs a place for every lane.
void Renderer::find_arrays(int lane_loop) {
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
  // the segment that stores is the last one of the lane loop's own block
  if (inside.contains(k_.result)) arrays_.insert(k_.result);
}

std::string Renderer::atom(const Dim::Atom* a) {
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

std::string Renderer::dim(const Dim& d) {
  std::string s;
  for (const Dim::Term& t : d.terms()) {
    std::string p = t.coefficient == 1 ? "" : std::to_string(t.coefficient) + "L";
    for (const Dim::Atom* f : t.factors) p += (p.empty() ? "" : "*") + atom(f);
    s += (s.empty() ? "" : " + ") + p;
  }
  if (d.offset() != 0 || s.empty()) s += (s.empty() ? "" : " + ") + std::to_string(d.offset()) + "L";
  return d.is_constant() && d.offset() >= 0 ? s : "(" + s + ")";
}

// Whether a load may happen. GCC 12 turns a vector load under a mask it can compute into a load of the
// whole vector and a blend, which reads outside the buffer: the mask shall depend on what it cannot see.
std::string Renderer::condition(const Dim& valid) { return "(" + dim(valid) + " > unseen)"; }

std::string Renderer::expression(const Instr& i) {
  const std::string buffer = "in" + std::to_string(i.buffer);
  const auto zero = [&] { return std::string("(") + std::string(register_type(i.dtype)) + ")0"; };
  switch (i.code) {
    case Code::Constant: return number(i.value, i.dtype);
    case Code::Index: return converted(dim(i.offset), DType::I64, i.dtype);
    case Code::Load: {
      const std::string v = loaded(buffer, i.dtype, dim(i.offset));
      return i.valid == Dim(1) ? v : "(" + condition(i.valid) + " ? " + v + " : " + zero() + ")";
    }
    case Code::GatherLoad: {
      const std::string j = "(long)" + value(i.a);
      std::string guard = "(" + j + " >= 0 && " + j + " < " + dim(i.extent) + ")";
      if (!(i.valid == Dim(1))) guard = "(" + condition(i.valid) + " && " + guard + ")";
      return "(" + guard + " ? " + loaded(buffer, i.dtype, dim(i.offset) + " + " + j + " * " + dim(i.stride)) + " : " +
             zero() + ")";
    }
    case Code::Apply: {
      const int last = i.c >= 0 ? i.c : i.b >= 0 ? i.b : i.a;
      const DType operand = instr(last).dtype;
      const auto v = [&](int id) { return id >= 0 ? value(id) : std::string(); };
      const std::string e = spell(i.op, operand, v(i.a), v(i.b), v(i.c));
      return info(i.op).types == Types::Compare || i.op == Op::Where ? e : rounded(e, i.dtype);
    }
    case Code::Convert: return converted(value(i.a), instr(i.a).dtype, i.dtype);
    case Code::Accumulator: return "a" + std::to_string(i.buffer) + (lane_loop_ >= 0 ? "[l]" : "");
    case Code::Kept: return row_element(i.buffer, i.offset);
  }
  return {};
}

// Is there a function in the prelude that computes the value in all lanes at once? Some instructions are not to be
// had by writing a loop.
bool Renderer::by_vectors(int id) const {
  const Instr& i = instr(id);
  return i.code == Code::Apply && i.op == Op::Exp2 && i.dtype == DType::F32;
}

// Values on both sides of a vector function live in arrays, which become registers.
void Renderer::find_crossing(const std::vector<int>& values) {
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

// The values of `width` lanes from `base` on, then `last` in each lane.
void Renderer::lane_body(const std::vector<int>& values, const std::string& symbol, const std::string& base,
                         const std::string& width, const Lines& last) {
  const bool whole = width == std::to_string(kLanes);
  const std::set<int> outer = arrays_;
  if (whole) find_crossing(values);
  for (int id : values)
    if (arrays_.contains(id))
      line(std::string(register_type(instr(id).dtype)) + " v" + std::to_string(id) + "[" + std::to_string(kLanes) +
           "] __attribute__((aligned(64)));");
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
    } else {
      enter();
      const std::string type = arrays_.contains(id) ? "" : "const " + std::string(register_type(i.dtype)) + " ";
      line(type + value(id) + " = " + expression(i) + ";");
    }
    for (const Keep& keep : k_.keeps)
      if (keep.value == id) enter(), line(row_element(keep.row, keep.at) + " = " + value(id) + ";");
  }
  if (last) enter(), last();
  if (inside) close();
  arrays_ = outer;
}

void Renderer::straight(const std::vector<int>& values, bool vector, const std::string& width) {
  if (values.empty()) return;
  if (vector) return lane_body(values, loop_at(lane_loop_).symbol, lane_base_, width);
  for (int id : values) {
    const Instr& i = instr(id);
    line("const " + std::string(register_type(i.dtype)) + " " + value(id) + " = " + expression(i) + ";");
  }
}

void Renderer::block(const Block& b, bool vector, const std::string& width) {
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

// acc = op(acc, value), for one lane or for all.
void Renderer::update(const Loop& l, bool vector, const std::string& width) {
  const Reduction& r = reduction(l.reduction);
  const std::string acc = "a" + std::to_string(l.reduction) + (vector || l.lanes ? "[l]" : "");
  const std::string s = acc + " = " + rounded(spell(r.op, r.dtype, acc, value(r.value), ""), r.dtype) + ";";
  if (vector) line("for (int l = 0; l < " + width + "; ++l) " + s);
  else line(s);
}

// A maximum of floats is one of integers in the order of the floats (a NaN above all): one cycle an element in the
// chain instead of a dozen.
bool Renderer::keyed(const Reduction& r) const {
  const bool lanes = loop_at(r.inner_loop).lanes;
  return lanes && lane_loop_ < 0 && r.op == Op::MaxReduce && register_type(r.dtype) == "float";
}
std::string Renderer::join(const Reduction& r, const std::string& a, const std::string& b) {
  return keyed(r) ? "lc_max_i(" + a + ", " + b + ")" : rounded(spell(r.op, r.dtype, a, b, ""), r.dtype);
}

void Renderer::begin_sums(int id, bool vector) {
  const Loop& l = loop_at(id);
  const Reduction& r = reduction(l.reduction);
  const std::string acc = "a" + std::to_string(l.reduction), type(register_type(r.dtype));
  const bool lanes = loop_at(r.inner_loop).lanes && !vector;
  if (!vector && !lanes) return line(type + " " + acc + " = " + identity(r) + ";");
  line((keyed(r) ? "int" : type) + " " + acc + (lanes ? "_" : "") + "[" + std::to_string(kLanes) +
       "] __attribute__((aligned(64)));");
  line("for (int l = 0; l < " + std::to_string(kLanes) + "; ++l) " + acc + (lanes ? "_" : "") +
       "[l] = " + key(r, identity(r)) + ";");
}

// Whole vectors of the loop, from where it stands.
void Renderer::feed_sums(int id, const std::string& until) {
  const Loop& l = loop_at(id);
  const Reduction& r = reduction(l.reduction);
  const std::string acc = "a" + std::to_string(l.reduction), type(register_type(r.dtype));
  const std::string base = l.symbol + "_", full = std::to_string(kLanes);
  const bool carried = type == "float" || type == "int";  // a register's width, see LC_CARRY
  const auto carry = [&](const std::string& how) {
    if (carried) line("LC_" + how + "(" + (keyed(r) ? "int" : type) + ", " + acc + ");");
  };
  const std::string into = acc + (carried ? "t" : "_");
  carry("CARRY");
  open("for (; " + base + " + " + full + " <= " + until + "; " + base + " += " + full + ") {");
  fetch_ahead(id, base);
  carry("TAKE");
  lane_body(values_in(l.body), l.symbol, base, full,
            [&] { line(into + "[l] = " + join(r, into + "[l]", key(r, value(r.value))) + ";"); });
  carry("GIVE");
  close();
  carry("DONE");
}

void Renderer::rest_of_sums(int id) {
  const Loop& l = loop_at(id);
  const Reduction& r = reduction(l.reduction);
  const std::string acc = "a" + std::to_string(l.reduction) + "_[l]", base = l.symbol + "_";
  lane_body(values_in(l.body), l.symbol, base, "(int)(" + dim(l.extent) + " - " + base + ")",
            [&] { line(acc + " = " + join(r, acc, key(r, value(r.value))) + ";"); });
}

void Renderer::fold_sums(int id) {  // the lanes, in a fixed order
  const int number = loop_at(id).reduction;
  const Reduction& r = reduction(number);
  const std::string acc = "a" + std::to_string(number), type(register_type(r.dtype));
  for (int half = kLanes / 2; half > 0; half /= 2)
    line("for (int l = 0; l < " + std::to_string(half) + "; ++l) " + acc +
         "_[l] = " + join(r, acc + "_[l]", acc + "_[l + " + std::to_string(half) + "]") + ";");
  line("const " + type + " " + acc + " = " + (keyed(r) ? "lc_unkey_f(" + acc + "_[0])" : acc + "_[0]") + ";");
}

void Renderer::reduction_loops(int id, bool vector, const std::string& width) {
  const Loop& l = loop_at(id);
  const Reduction& r = reduction(l.reduction);
  const bool lanes = loop_at(r.inner_loop).lanes && !vector;
  if (id == r.outer_loop) begin_sums(id, vector);
  if (id == r.inner_loop && lanes) {
    line("long " + l.symbol + "_ = 0;");
    feed_sums(id, dim(l.extent));
    rest_of_sums(id);
  } else {
    open("for (long " + l.symbol + " = 0; " + l.symbol + " < " + dim(l.extent) + "; ++" + l.symbol + ") {");
    block(l.body, vector, width);
    if (id == r.inner_loop) update(l, vector, width);
    close();
  }
  if (id == r.outer_loop && lanes) fold_sums(id);
}

// Of skewed rows, what comes next is told from the row of the first loop.
void Renderer::fetch_ahead(int loop, const std::string& base) {
  std::string at = "const long " + loop_at(loop).symbol + " = " + base + ";";
  if (k_.skewed >= 0 && loop >= k_.output_loops)
    at += " const long " + loop_at(k_.skewed).symbol + " = " + loop_at(k_.skewed).symbol + "_t;";
  for (const Prefetch& p : k_.ahead)
    if (p.loop == loop)
      line("{ " + at + " __builtin_prefetch(in" + std::to_string(p.buffer) + " + " + dim(p.offset) +
           (p.level == 1 ? "" : ", 0, 2") + "); }");
}

// Whole vectors are gathered in an array that becomes a register, and stored, past the caches or not; single
// elements up to the first aligned vector and behind the last. From where the loop stands to `until`, or a vector
// beyond.
void Renderer::by_whole_vectors(int id, const std::string& to, const std::string& until) {
  const Loop& l = loop_at(id);
  const std::string base = l.symbol + "_", full = std::to_string(kLanes), type(info(k_.dtype).c);
  const auto into = [&](const std::string& array) {
    return [=, this] { line(array + "[l] = " + stored(value(k_.result), k_.dtype) + ";"); };
  };
  open("for (; " + base + " < " + until + ";) {");
  line("const long " + l.symbol + " = " + base + ";");
  line(type + "* to = out_ + " + dim(k_.store_offset) + ";");
  line("const long w = lc_lanes(to, sizeof *to, " + to + " - " + base + ", " + (k_.streams ? "stream" : "0") + ");");
  fetch_ahead(id, base);
  open("if (w == " + full + ") {");
  line(type + " t[" + full + "] __attribute__((aligned(64)));");
  lane_body(values_in(l.body), l.symbol, base, full, into("t"));
  line(std::string("lc_store(to, t, sizeof t, ") + (k_.streams ? "stream" : "0") + ");");
  close();
  open("else {");
  out_ += std::string(dialect_.parallel) + "\n";
  lane_body(values_in(l.body), l.symbol, base, "(int)w", into("to"));
  close();
  line(base + " += w;");
  close();
}

std::string Renderer::from(int id) {
  const Loop& l = loop_at(id);
  return l.tile >= 0 ? loop_at(l.tile).symbol : id == 0 ? "begin" : "0";
}
std::string Renderer::to(int id) {
  const Loop& l = loop_at(id);
  return l.tile >= 0 ? l.symbol + "_to" : id == 0 ? "end" : dim(l.extent);
}

// Loops behind this one are inside of it: what it goes through is known there.
void Renderer::fill_tiles(int loop) {
  for (std::size_t t = 0; t < k_.tiles.size(); ++t) {
    const Tile& tile = k_.tiles[t];
    if (tile.across != loop) continue;
    line("lc_turn_" + std::to_string(size_of(tile.dtype)) + "(in" + std::to_string(k_.buffers.size() + t) + ", " +
         std::to_string(tile.pitch) + ", in" + std::to_string(tile.buffer) + " + " + dim(tile.origin) + ", " +
         dim(tile.stride) + ", " + to(loop) + " - " + from(loop) + ", " + to(loop + 1) + " - " + from(loop + 1) + ");");
  }
}

void Renderer::output_lanes(int id) {
  const Loop& l = loop_at(id);
  const std::string from = this->from(id), to = this->to(id);
  const auto asks = [&](const Item& i) { return !i.is_loop && by_vectors(i.id); };
  if (k_.streams || !k_.tiles.empty() ||
      (!has_loops(l.body) && std::any_of(l.body.items.begin(), l.body.items.end(), asks) &&
       coefficient(k_.store_offset, l.symbol) == 1)) {
    line("long " + l.symbol + "_ = " + from + ";");
    return by_whole_vectors(id, to, to);
  }
  if (!has_loops(l.body)) {
    out_ += std::string(dialect_.parallel) + "\n";
    open("for (long " + l.symbol + " = " + from + "; " + l.symbol + " < " + to + "; ++" + l.symbol + ") {");
    block(l.body, false, "");
    store();
    close();
    return;
  }
  const std::string base = l.symbol + "_", full = std::to_string(kLanes);
  lane_loop_ = id;
  lane_base_ = base;
  find_arrays(id);
  open("for (long " + base + " = " + from + "; " + base + " < " + to + "; " + base + " += " + full + ") {");
  for (const bool tail : {false, true}) {
    open(tail ? "else {" : "if (" + base + " + " + full + " <= " + to + ") {");
    if (tail) line("const int w = (int)(" + to + " - " + base + ");");
    const std::string width = tail ? "w" : full;
    block(l.body, true, width);
    open("for (int l = 0; l < " + width + "; ++l) {");
    line("const long " + l.symbol + " = " + base + " + l;");
    store();
    close();
    close();
  }
  close();
  lane_loop_ = -1;
}

// Values between the loops that are read by another loop or behind it.
void Renderer::find_passed(const std::vector<Part>& body) {
  for (const Part& p : body)
    for (const Part& other : body) {
      std::vector<int> readers = values_in(loop_at(other.loop).body);
      const int r = loop_at(other.loop).reduction;
      std::set<int> read{r < 0 ? k_.result : reduction(r).value};
      if (&other != &p) readers.insert(readers.end(), other.values.begin(), other.values.end());
      for (const int id : readers)
        for (const Instr& i = instr(id); const int used : {i.a, i.b, i.c}) read.insert(used);
      for (const int id : p.values)
        if (read.contains(id)) passed_.insert(id);
    }
}

// The body for the row that is `behind` the first loop's, if there is one. It computes `values`; they, and `last`, read
// what was kept for the row.
void Renderer::for_row(std::size_t behind, const std::vector<int>& values, int last, const Lines& body) {
  const std::string row = loop_at(k_.skewed).symbol, n = std::to_string(behind);
  open("if (" + row + "_t >= " + from(k_.skewed) + " + " + n + " && " + row + "_t < " + to(k_.skewed) + " + " + n +
       ") {");
  line("const long " + row + " = " + row + "_t - " + n + ";");
  std::set<int> read{last};
  for (const int id : values)
    for (const Instr& i = instr(id); const int used : {i.a, i.b, i.c}) read.insert(used);
  for (const int id : values) read.erase(id);
  for (const int id : read)
    if (passed_.contains(id))
      line("const " + std::string(register_type(instr(id).dtype)) + " " + value(id) + " = " + kept(id) + ";");
  for (std::size_t r = 0; r < k_.rows.size(); ++r)
    if (const Row& w = k_.rows[r]; w.copies > 1)
      line(std::string(register_type(w.dtype)) + "* const row" + std::to_string(r) + " = row" + std::to_string(r) +
           "_ + " + row + " % " + std::to_string(w.copies) + " * " + std::to_string(w.elements) + ";");
  body();
  close();
}
std::string Renderer::kept(int id) {
  return "v" + std::to_string(id) + "_[" + loop_at(k_.skewed).symbol + " % " + std::to_string(slots(k_)) + "]";
}
void Renderer::once_a_row(const std::vector<int>& values) {
  straight(values, false, "");
  for (const int id : values)
    if (passed_.contains(id)) line(kept(id) + " = " + value(id) + ";");
}

// The loops take turns, each for a piece of its row. What follows a loop is computed behind all of them.
void Renderer::run_turns(const std::vector<Part>& body) {
  const auto loop = [&](std::size_t n) -> const Loop& { return loop_at(body[n].loop); };
  const auto fed = [&](std::size_t n) { return n + 1 < body.size() ? reduction(loop(n).reduction).value : k_.result; };
  for (std::size_t n = 0; n < body.size(); ++n) {
    if (n + 1 < body.size()) begin_sums(body[n].loop, false);
    line("long " + loop(n).symbol + "_ = 0;");
  }
  const std::string extent = dim(loop(0).extent), piece = std::to_string(kPiece);
  open("for (long piece = 0, until; piece < " + extent + "; piece = until) {");
  line("until = stream && piece + " + piece + " < " + extent + " ? piece + " + piece + " : " + extent + ";");
  for (std::size_t n = body.size(); n-- > 0;)
    for_row(n, values_in(loop(n).body), fed(n), [&] {
      if (n + 1 < body.size()) feed_sums(body[n].loop, "until");
      else by_whole_vectors(body[n].loop, extent, "until");
    });
  close();
  for (std::size_t n = 0; n + 1 < body.size(); ++n) {
    std::vector<int> values = values_in(loop(n).body);
    values.insert(values.end(), body[n + 1].values.begin(), body[n + 1].values.end());
    for_row(n, values, fed(n), [&] {
      rest_of_sums(body[n].loop);
      fold_sums(body[n].loop);
      once_a_row(body[n + 1].values);
    });
  }
}

void Renderer::skewed_rows(int id) {
  const std::string step = loop_at(id).symbol + "_t";
  const std::vector<Part> body = parts(k_);
  find_passed(body);
  for (const int v : passed_)
    line(std::string(register_type(instr(v).dtype)) + " v" + std::to_string(v) + "_[" + std::to_string(slots(k_)) +
         "];");
  open("for (long " + step + " = " + from(id) + "; " + step + " < " + to(id) + " + " + std::to_string(body.size() - 1) +
       "; ++" + step + ") {");
  if (!body[0].values.empty()) for_row(0, body[0].values, -1, [&] { once_a_row(body[0].values); });
  run_turns(body);
  close();
}

void Renderer::loop(int id, bool vector, const std::string& width) {
  const Loop& l = loop_at(id);
  if (l.reduction >= 0) return reduction_loops(id, vector, width);
  if (l.lanes) return output_lanes(id);
  if (id == k_.skewed) return skewed_rows(id);
  fill_tiles(id);
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

std::string Renderer::text(std::string_view name) {
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
  line(std::string(dialect_.unseen_zero));
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
  if (k_.streams) line("if (stream) lc_stored();");
  close();
  return std::move(out_);
}

}  // namespace

std::string render(const Kernel& k, std::string_view name, const Dialect& dialect) {
  return Renderer(k, dialect).text(name);
}

}  // namespace lc::ir
