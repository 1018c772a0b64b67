// C text of reductions, begun, fed and folded each on its own, and of the turns that loops over skewed rows take.
#include "lightcone/codegen/c_renderer.h"

namespace lc::ir {

// acc = op(acc, value), for one lane or for all.
void CRenderer::update(const Loop& l, bool vector, const std::string& width) {
  const Reduction& r = reduction(l.reduction);
  const std::string acc = "a" + std::to_string(l.reduction) + (vector || l.lanes ? "[l]" : "");
  const std::string s = acc + " = " + spell(r.op, r.dtype, acc, value(r.value), "") + ";";
  if (vector) line("for (int l = 0; l < " + width + "; ++l) " + s);
  else line(s);
}

// A maximum of floats is one of integers in the order of the floats (a NaN above all): one cycle an element in the
// chain instead of a dozen.
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
  if (!vector && !lanes) return line(type + " " + acc + " = " + identity(r) + ";");
  line((keyed(r) ? "int" : type) + " " + acc + (lanes ? "_" : "") + "[" + std::to_string(kLanes) +
       "] __attribute__((aligned(64)));");
  line("for (int l = 0; l < " + std::to_string(kLanes) + "; ++l) " + acc + (lanes ? "_" : "") +
       "[l] = " + key(r, identity(r)) + ";");
}

// Whole vectors of the loop, from where it stands.
void CRenderer::feed_sums(int id, const std::string& until) {
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

void CRenderer::rest_of_sums(int id) {
  const Loop& l = loop_at(id);
  const Reduction& r = reduction(l.reduction);
  const std::string acc = "a" + std::to_string(l.reduction) + "_[l]", base = l.symbol + "_";
  lane_body(values_in(l.body), l.symbol, base, "(int)(" + dim(l.extent) + " - " + base + ")",
            [&] { line(acc + " = " + join(r, acc, key(r, value(r.value))) + ";"); });
}

void CRenderer::fold_sums(int id) {  // the lanes, in a fixed order
  const int number = loop_at(id).reduction;
  const Reduction& r = reduction(number);
  const std::string acc = "a" + std::to_string(number), type(register_type(r.dtype));
  for (int half = kLanes / 2; half > 0; half /= 2)
    line("for (int l = 0; l < " + std::to_string(half) + "; ++l) " + acc +
         "_[l] = " + join(r, acc + "_[l]", acc + "_[l + " + std::to_string(half) + "]") + ";");
  line("const " + type + " " + acc + " = " + (keyed(r) ? "lc_unkey_f(" + acc + "_[0])" : acc + "_[0]") + ";");
}

void CRenderer::reduction_loops(int id, bool vector, const std::string& width) {
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

// Values between the loops that are read by another loop or behind it.
void CRenderer::find_passed(const std::vector<Part>& body) {
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
void CRenderer::for_row(std::size_t behind, const std::vector<int>& values, int last, const Lines& body) {
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
std::string CRenderer::kept(int id) {
  return "v" + std::to_string(id) + "_[" + loop_at(k_.skewed).symbol + " % " + std::to_string(slots(k_)) + "]";
}
void CRenderer::once_a_row(const std::vector<int>& values) {
  straight(values, false, "");
  for (const int id : values)
    if (passed_.contains(id)) line(kept(id) + " = " + value(id) + ";");
}

// The loops take turns, each for a piece of its row. What follows a loop is computed behind all of them.
void CRenderer::run_turns(const std::vector<Part>& body) {
  const auto loop = [&](std::size_t n) -> const Loop& { return loop_at(body[n].loop); };
  const auto fed = [&](std::size_t n) { return n + 1 < body.size() ? reduction(loop(n).reduction).value : k_.result; };
  for (std::size_t n = 0; n < body.size(); ++n) {
    if (n + 1 < body.size()) begin_sums(body[n].loop, false);
    line("long " + loop(n).symbol + "_ = 0;");
  }
  const std::string extent = dim(loop(0).extent), piece = std::to_string(turn(k_));
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

void CRenderer::skewed_rows(int id) {
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

}  // namespace lc::ir
