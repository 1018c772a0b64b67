// Renders kernel IR as C: render.cpp writes values, lanes and output loops, conditions.cpp the conditions of loads,
// render_rows.cpp reductions and pipelined rows.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lightcone/codegen/c/render.h"
#include "lightcone/codegen/c/text.h"
#include "lightcone/codegen/symbols.h"

namespace lc::codegen {

class CRenderer {
 public:
  CRenderer(const Kernel& k, const Dialect& d) : k_(k), dialect_(d) { find_homes(k.top, 0); }
  std::string text(std::string_view name);

 private:
  const Loop& loop_at(int id) const { return k_.loops[static_cast<std::size_t>(id)]; }
  const Instr& instr(int id) const { return k_.instrs[static_cast<std::size_t>(id)]; }
  const Reduction& reduction(int id) const { return k_.reductions[static_cast<std::size_t>(id)]; }
  std::string dim(const Dim& d);
  std::string atom(const Dim::Atom* a);
  std::string value(int id) { return "v" + std::to_string(id) + (arrays_.contains(id) ? "[l]" : ""); }
  std::string condition(const Dim& valid);
  std::string hide(const std::string& name) const;
  std::string guarded_buffer(const Instr& load, const std::string& apart = "");
  std::string expression(const Instr& i);
  std::string fed(const Reduction& r, const std::string& into, bool in_scope);
  void block(const Block& b, bool vector, const std::string& width);
  void straight(const std::vector<int>& values, bool vector, const std::string& width);
  using Lines = std::function<void()>;
  void lane_body(const std::vector<int>& values, const std::string& symbol, const std::string& base,
                 const std::string& width, const Lines& last = {});
  void find_crossing(const std::vector<int>& values);
  bool by_vectors(int id) const;
  std::optional<Dim> is_contiguous_along(int id, const std::string& lane) const;
  std::set<int> rounded_when_stored() const;
  bool whole_vectors(const Loop& l) const;  // its extent is a known multiple of kLanes
  bool rounds_later(const Instr& i) const {
    return std::any_of(rounded_later_.begin(), rounded_later_.end(), [&](int id) { return &i == &instr(id); });
  }
  void fetch_ahead(int loop, const std::string& base);
  void loop(int id, bool vector, const std::string& width);
  void output_lanes(int id, int most);
  void plain(int id, const std::string& begin, const std::string& end, const Dim& iterations);
  void lane_step(const Loop& l, const std::string& width);
  int columns_at_once(int id) const;
  static constexpr int kMostRanges = 8;
  struct Range {  // iterations, and comparisons that hold in all or none of them
    std::int64_t begin, end;
    std::vector<Dim> hold, fail;
  };
  std::vector<Dim> comparisons(int id) const;
  std::vector<Range> ranges(const Loop& l, const std::vector<Dim>& comparisons, int least) const;
  void knowing(int id, const Range& r, const std::function<void()>& write);
  bool by_outer_ranges(int id, int most);
  void lanes_of(int id, int most);
  bool writes_whole_vectors(int id) const;
  void lanes_between(int id, const std::string& from, const std::string& to, const Dim& iterations);
  bool may_be_unrolled_with_guards(const Dim& iterations) const;
  Dim not_certain(const Dim& condition) const;
  Dim valid_here(const Instr& i) const { return not_certain(i.valid); }
  void by_whole_vectors(int id, const std::string& to);
  void up_to(int id, std::int64_t begin, std::int64_t end);
  void store_vector(int id, const std::string& past);
  void store_singles(int id);
  std::string unaligned(int id);
  void reduction_loops(int id, bool vector, const std::string& width);
  void begin_sums(int id, bool vector);
  void feed_sums(int id);
  bool carried(const Reduction& r) const;
  void carry(int id, const std::string& how);
  void feed_vector(int id);
  void rest_of_sums(int id);
  void fold_sums(int id);
  void begin_blocks(int reduction, bool array);
  std::string end_block(int reduction, bool array, const std::string& sums) const;
  void end_blocks(int reduction, bool array, const std::string& sums);
  void end_block_of_vectors(int id, const std::string& next);
  void serial_sums(int id, bool vector, const std::string& width);
  std::string join(const Reduction& r, const std::string& a, const std::string& b);
  bool keyed(const Reduction& r) const;
  std::string key(const Reduction& r, const std::string& v) const { return keyed(r) ? "lc_key_f(" + v + ")" : v; }
  void pipelined_rows(int id);
  void run_stages(const std::vector<Stage>& body);
  void run_as_one(const std::vector<Stage>& body);
  int fed(const std::vector<Stage>& body, std::size_t n) const;
  void in_row(std::size_t behind, const std::vector<int>& values, int last, const Lines& body);
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
  std::int64_t unrolled(int id) const;
  void bodies(int id, std::int64_t count, bool vector, const std::string& width);
  Dim here(const Dim& d) const { return fixed_.empty() ? d : at_values(d, fixed_); }
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
  // Guarded loads whose addresses differ by a constant, by what they have in common: their offsets.
  std::map<std::string, std::vector<std::int64_t>> alike_;
  std::map<int, int> pointers_;  // to each buffer: how many besides its own
  int indent_ = 0;
  std::map<int, int> home_;      // the straight-line segment of each value
  std::set<int> arrays_;         // values that cross segments inside of output lanes
  std::set<int> rounded_later_;  // values that are rounded only when the result is narrowed
  int lane_loop_ = -1;           // the output loop whose lanes are being written
  std::string lane_base_;
  int lanes_ = kLanes;                  // iterations of it that are being written: kLanes, or columns_at_once()
  std::set<int> passed_;                // live_between_stages()
  std::vector<Dim> certain_, refuted_;  // comparisons that hold, and that do not, where code is being written
  SymbolValues fixed_;                  // current values of the symbols of unrolled loops
};

}  // namespace lc::codegen
