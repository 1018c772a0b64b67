// Renders reductions (initialise, accumulate, fold) and the loops over pipelined rows as C.
#include "lightcone/codegen/c/renderer.h"

namespace lc::codegen {

// Returns into = op(into, value). A product whose factors are in scope is fused with the sum.
std::string CRenderer::fed(const Reduction& r, const std::string& into, bool in_scope) {
  const Instr& v = instr(r.value);
  if (in_scope && r.op == Op::SumReduce && v.code == Code::Apply && v.op == Op::Mul && v.dtype == r.dtype &&
      (r.dtype == DType::F32 || r.dtype == DType::F64))
    return into + " = " + spell_mul_add(r.dtype, value(v.a), value(v.b), into) + ";";
  return into + " = " + join(r, into, key(r, value(r.value))) + ";";
}

// Writes acc = op(acc, value), for one lane or for all.
void CRenderer::update(const Loop& l, bool vector, const std::string& width) {
  const Reduction& r = reduction(l.reduction);
  const std::string acc = "a" + std::to_string(l.reduction) + (vector || l.lanes ? "[l]" : "");
  const std::string s =
      vector || l.lanes ? acc + " = " + spell(r.op, r.dtype, acc, value(r.value), "") + ";" : fed(r, acc, true);
  if (vector) line("for (int l = 0; l < " + width + "; ++l) " + s);
  else line(s);
}

// The maximum of floats is computed as that of integers in the same order (NaN above all): the dependency chain takes
// one cycle per element instead of a dozen.
bool CRenderer::keyed(const Reduction& r) const {
  const bool lanes = loop_at(r.inner_loop).lanes;
  return lanes && lane_loop_ < 0 && r.op == Op::MaxReduce && register_type(r.dtype) == "float";
}
std::string CRenderer::join(const Reduction& r, const std::string& a, const std::string& b) {
  return keyed(r) ? "lc_max_i(" + a + ", " + b + ")" : spell(r.op, r.dtype, a, b, "");
}

void CRenderer::begin_sums(int id, bool vector) {
  const Loop& l = loop_at(id);
  const Reduction& r = reduction(l.reduction);
  const std::string acc = "a" + std::to_string(l.reduction), type(register_type(r.dtype));
  const bool lanes = loop_at(r.inner_loop).lanes && !vector;
  begin_blocks(l.reduction, vector || lanes);
  if (!vector && !lanes) return line(type + " " + acc + " = " + identity(r) + ";");
  const std::string count = std::to_string(lanes_);
  line((keyed(r) ? "int" : type) + " " + acc + (lanes ? "_" : "") + "[" + count + "] __attribute__((aligned(64)));");
  line("for (int l = 0; l < " + count + "; ++l) " + acc + (lanes ? "_" : "") + "[l] = " + key(r, identity(r)) + ";");
}

// Declares the sums of blocks and their rounding errors (schedule/blocks.cpp), for all lanes or for one number.
void CRenderer::begin_blocks(int reduction, bool array) {
  if (!blocked(k_, reduction)) return;
  const std::string all = "[" + std::to_string(lanes_) + "] __attribute__((aligned(64))) = {0};";
  for (const char* name : {"b", "e"}) line("float " + (name + std::to_string(reduction)) + (array ? all : " = 0.0f;"));
}
std::string CRenderer::end_block(int reduction, bool array, const std::string& sums) const {
  const std::string n = std::to_string(reduction), by = array ? "" : "&", at = lanes_ > kLanes ? " + u" : "";
  const std::string each =
      at.empty() ? "" : "for (int u = 0; u < " + std::to_string(lanes_) + "; u += " + std::to_string(kLanes) + ") ";
  return each + (array ? "lc_blocks(" : "lc_block(") + by + "b" + n + at + ", " + by + "e" + n + at + ", " + by + sums +
         at + ");";
}
void CRenderer::end_blocks(int reduction, bool array, const std::string& sums) {
  if (!blocked(k_, reduction)) return;
  const std::string n = std::to_string(reduction), l = array ? "[l]" : "";
  line(end_block(reduction, array, sums));
  line((array ? "for (int l = 0; l < " + std::to_string(lanes_) + "; ++l) " : "") + sums + l + " = b" + n + l + " + e" +
       n + l + ";");
}
// Ends a block after a vector of the loop; `next` is the position after that vector.
void CRenderer::end_block_of_vectors(int id, const std::string& next) {
  const Loop& l = loop_at(id);
  if (l.block == 0) return;
  open("if ((" + next + " & " + std::to_string(l.block * kLanes - 1) + ") == 0) {");
  carry(id, "TAKE");
  line(end_block(l.reduction, true, "a" + std::to_string(l.reduction) + "t"));
  carry(id, "GIVE");
  close();
}

// Returns true if the sums are carried from step to step in a register of their width, see LC_CARRY.
bool CRenderer::carried(const Reduction& r) const {
  const std::string_view type = register_type(r.dtype);
  return type == "float" || type == "int";
}
void CRenderer::carry(int id, const std::string& how) {
  const int number = loop_at(id).reduction;
  const Reduction& r = reduction(number);
  if (carried(r))
    line("LC_" + how + "(" + (keyed(r) ? "int" : std::string(register_type(r.dtype))) + ", a" + std::to_string(number) +
         ");");
}

// Accumulates one whole vector at the loop's current position.
void CRenderer::feed_vector(int id) {
  const Loop& l = loop_at(id);
  const Reduction& r = reduction(l.reduction);
  const std::string into = "a" + std::to_string(l.reduction) + (carried(r) ? "t" : "_") + "[l]";
  carry(id, "TAKE");
  const std::vector<int> values = values_in(l.body);
  lane_body(values, l.symbol, l.symbol + "_", std::to_string(kLanes),
            [&] { line(fed(r, into, !values.empty() && values.back() == r.value)); });
  carry(id, "GIVE");
}

// Accumulates whole vectors from the loop's current position on.
void CRenderer::feed_sums(int id) {
  const Loop& l = loop_at(id);
  const std::string base = l.symbol + "_", full = std::to_string(kLanes);
  carry(id, "CARRY");
  open("for (; " + base + " + " + full + " <= " + dim(l.extent) + "; " + base + " += " + full + ") {");
  if (k_.pipelined < 0) fetch_ahead(id, base);  // otherwise the pipelined loop prefetches
  feed_vector(id);
  end_block_of_vectors(id, "(" + base + " + " + full + ")");
  close();
  carry(id, "DONE");
}

void CRenderer::rest_of_sums(int id) {
  const Loop& l = loop_at(id);
  if (whole_vectors(l)) return;  // there is no remainder
  const Reduction& r = reduction(l.reduction);
  const std::string acc = "a" + std::to_string(l.reduction) + "_[l]", base = l.symbol + "_";
  const std::vector<int> values = values_in(l.body);
  lane_body(values, l.symbol, base, "(int)(" + dim(l.extent) + " - " + base + ")",
            [&] { line(fed(r, acc, !values.empty() && values.back() == r.value)); });
}

void CRenderer::fold_sums(int id) {  // folds the lanes in a fixed order
  const int number = loop_at(id).reduction;
  const Reduction& r = reduction(number);
  const std::string acc = "a" + std::to_string(number), type(register_type(r.dtype));
  end_blocks(number, true, acc + "_");
  for (int half = kLanes / 2; half > 0; half /= 2)
    line("for (int l = 0; l < " + std::to_string(half) + "; ++l) " + acc +
         "_[l] = " + join(r, acc + "_[l]", acc + "_[l + " + std::to_string(half) + "]") + ";");
  line("const " + type + " " + acc + " = " + (keyed(r) ? "lc_unkey_f(" + acc + "_[0])" : acc + "_[0]") + ";");
}

// Accumulates step by step, in blocks if there are any.
void CRenderer::serial_sums(int id, bool vector, const std::string& width) {
  const Loop& l = loop_at(id);
  const Reduction& r = reduction(l.reduction);
  const std::string i = l.symbol, extent = dim(l.extent), acc = "a" + std::to_string(l.reduction);
  const bool array = vector || loop_at(r.inner_loop).lanes, blocks = l.block > 1;
  const std::string end = l.block == 0 ? "" : end_block(l.reduction, array, acc + (array && !vector ? "_" : ""));
  if (blocks) {
    const std::string next = i + "_b + " + std::to_string(l.block);
    open("for (long " + i + "_b = 0; " + i + "_b < " + extent + ";) {");
    line("const long " + i + "_to = " + next + " < " + extent + " ? " + next + " : " + extent + ";");
    open("for (long " + i + " = " + i + "_b; " + i + " < " + i + "_to; ++" + i + ") {");
  } else {
    open("for (long " + i + " = 0; " + i + " < " + extent + "; ++" + i + ") {");
  }
  block(l.body, vector, width);
  if (id == r.inner_loop) update(l, vector, width);
  if (l.block == 1) line(end);
  close();
  if (!blocks) return;
  line(i + "_b = " + i + "_to;");
  line("if ((" + i + "_b & " + std::to_string(l.block - 1) + ") == 0) " + end);
  close();
}

void CRenderer::reduction_loops(int id, bool vector, const std::string& width) {
  const Loop& l = loop_at(id);
  const Reduction& r = reduction(l.reduction);
  const bool lanes = loop_at(r.inner_loop).lanes && !vector;
  if (id == r.outer_loop) begin_sums(id, vector);
  if (id == r.inner_loop && lanes) {
    line("long " + l.symbol + "_ = 0;");
    feed_sums(id);
    rest_of_sums(id);
  } else {
    serial_sums(id, vector, width);
  }
  if (id != r.outer_loop) return;
  if (lanes) fold_sums(id);
  else end_blocks(l.reduction, vector, "a" + std::to_string(l.reduction));
}

// Writes a body for the row that is `behind` rows after the first stage's. The body computes `values`; these and `last`
// read what was kept for the row.
void CRenderer::in_row(std::size_t behind, const std::vector<int>& values, int last, const Lines& body) {
  const std::string row = loop_at(k_.pipelined).symbol;
  line("const long " + row + " = " + row + "_t - " + std::to_string(behind) + ";");
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
}
// Writes such a body, guarded by the range of rows.
void CRenderer::for_row(std::size_t behind, const std::vector<int>& values, int last, const Lines& body) {
  const std::string row = loop_at(k_.pipelined).symbol + "_t", n = std::to_string(behind);
  open("if (" + row + " >= " + from(k_.pipelined) + " + " + n + " && " + row + " < " + to(k_.pipelined) + " + " + n +
       ") {");
  in_row(behind, values, last, body);
  close();
}
std::string CRenderer::kept(int id) {
  return "v" + std::to_string(id) + "_[" + loop_at(k_.pipelined).symbol + " % " + std::to_string(ring_size(k_)) + "]";
}
void CRenderer::once_a_row(const std::vector<int>& values) {
  straight(values, false, "");
  for (const int id : values)
    if (passed_.contains(id)) line(kept(id) + " = " + value(id) + ";");
}

// Returns the value that stage n is for: its reduction's operand, or the result.
int CRenderer::fed(const std::vector<Stage>& body, std::size_t n) const {
  return n + 1 < body.size() ? reduction(loop_at(body[n].loop).reduction).value : k_.result;
}

// Runs all stages as one loop while each has a row: one vector of each per step, the last stage first. Each continues
// from its own position, because the last stage begins with the elements before its first aligned vector. Operands that
// the first stage reads first are prefetched.
void CRenderer::run_as_one(const std::vector<Stage>& body) {
  const auto cursor = [&](std::size_t n) { return loop_at(body[n].loop).symbol + "_"; };
  const std::size_t last = body.size() - 1;
  const std::string row = loop_at(k_.pipelined).symbol, n = std::to_string(last), full = std::to_string(kLanes);
  open("if (stream && " + row + "_t >= " + from(k_.pipelined) + " + " + n + " && " + row + "_t < " + to(k_.pipelined) +
       ") {");
  open("{");
  in_row(last, values_in(loop_at(body[last].loop).body), fed(body, last), [&] {
    line("const long w = " + unaligned(body[last].loop) + ";");
    open("if (w < " + dim(loop_at(body[last].loop).extent) + ") {");
    store_singles(body[last].loop);
    close();
  });
  close();
  for (std::size_t p = 0; p < last; ++p) carry(body[p].loop, "CARRY");
  open("for (; " + cursor(last) + " + " + full + " <= " + dim(loop_at(body[last].loop).extent) + ";) {");
  for (std::size_t p = body.size(); p-- > 0;) {
    open("{");
    in_row(p, values_in(loop_at(body[p].loop).body), fed(body, p), [&] {
      fetch_ahead(body[p].loop, cursor(p));
      if (p < last) feed_vector(body[p].loop);
      else store_vector(body[p].loop, "1");
    });
    line(cursor(p) + " += " + full + ";");
    if (p < last) end_block_of_vectors(body[p].loop, cursor(p));
    close();
  }
  close();
  for (std::size_t p = 0; p < last; ++p) carry(body[p].loop, "DONE");
  close();
}

// Runs a row of each stage, or what is left of it, the last stage first, because the other stages overwrite the cached
// rows that it reads. Values after a loop are computed after all loops.
void CRenderer::run_stages(const std::vector<Stage>& body) {
  for (std::size_t n = 0; n < body.size(); ++n) {
    if (n + 1 < body.size()) begin_sums(body[n].loop, false);
    line("long " + loop_at(body[n].loop).symbol + "_ = 0;");
  }
  run_as_one(body);
  for (std::size_t n = body.size(); n-- > 0;) {
    const Loop& l = loop_at(body[n].loop);
    std::vector<int> values = values_in(l.body);
    if (n + 1 < body.size()) values.insert(values.end(), body[n + 1].values.begin(), body[n + 1].values.end());
    for_row(n, values, fed(body, n), [&] {
      if (n + 1 == body.size()) return by_whole_vectors(body[n].loop, dim(l.extent));
      feed_sums(body[n].loop);
      rest_of_sums(body[n].loop);
      fold_sums(body[n].loop);
      once_a_row(body[n + 1].values);
    });
  }
}

void CRenderer::pipelined_rows(int id) {
  const std::string step = loop_at(id).symbol + "_t";
  const std::vector<Stage> body = stages(k_);
  passed_ = live_between_stages(k_);
  for (const int v : passed_)
    line(std::string(register_type(instr(v).dtype)) + " v" + std::to_string(v) + "_[" + std::to_string(ring_size(k_)) +
         "];");
  open("for (long " + step + " = " + from(id) + "; " + step + " < " + to(id) + " + " + std::to_string(body.size() - 1) +
       "; ++" + step + ") {");
  if (!body[0].values.empty()) for_row(0, body[0].values, -1, [&] { once_a_row(body[0].values); });
  run_stages(body);
  close();
}

}  // namespace lc::codegen
