// Conditions of loads, which are products of comparisons: where they are known to hold, code without them is written,
// whose loads are vectors. So it is for the pixels of a padded image that lie inside of it.
#include <algorithm>
#include <map>
#include <set>

#include "lightcone/codegen/c/renderer.h"

namespace lc::codegen {
namespace {

std::vector<Dim> factors_of(const Dim& condition) {
  if (condition.offset() != 0 || condition.terms().size() != 1 || condition.terms()[0].coefficient != 1)
    return {condition};
  std::vector<Dim> all;
  for (const Dim::Atom* f : condition.terms()[0].factors) all.push_back(Dim::from(f));
  return all;
}

bool contains(const std::vector<Dim>& all, const Dim& d) { return std::ranges::find(all, d) != all.end(); }

// The term of an expression that has one besides a constant, if it is a multiple of one symbol or comparison.
const Dim::Term* only_term(const Dim& d) {
  return d.terms().size() == 1 && d.terms()[0].factors.size() == 1 ? &d.terms()[0] : nullptr;
}

// The difference b - a of a comparison a < b as coefficient * symbol + offset.
struct Linear {
  std::int64_t coefficient, offset;
};
std::optional<Linear> compared(const Dim& comparison, const std::string& symbol) {
  const Dim::Term* c = only_term(comparison);
  if (!c || c->coefficient != 1 || comparison.offset() != 0) return std::nullopt;
  const Dim::Atom* less = c->factors[0];
  if (less->kind != Dim::Kind::Less) return std::nullopt;
  const Dim gap = less->b - less->a;
  const Dim::Term* x = only_term(gap);
  if (!x || x->factors[0]->kind != Dim::Kind::Symbol || x->factors[0]->name != symbol) return std::nullopt;
  return Linear{x->coefficient, gap.offset()};
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// The first index from which on, or before which alone, a comparison holds.
std::int64_t threshold(const Linear& gap) {
  return gap.coefficient > 0 ? floor_div(-gap.offset, gap.coefficient) + 1 : -floor_div(-gap.offset, -gap.coefficient);
}

// Both cannot hold.
bool contradict(const Dim& a, const Dim& b) {
  const Dim::Term *x = only_term(a), *y = only_term(b);
  if (!x || !y || x->factors[0]->kind != Dim::Kind::Less || y->factors[0]->kind != Dim::Kind::Less) return false;
  const Dim gaps = x->factors[0]->b - x->factors[0]->a + y->factors[0]->b - y->factors[0]->a;
  return gaps.is_constant() && gaps.offset() < 2;  // each is at least 1 where its comparison holds
}

}  // namespace

// Returns what is left of a condition without the comparisons that hold; 0 if one of them does not.
Dim CRenderer::not_certain(const Dim& condition) const {
  const Dim d = here(condition);
  if (certain_.empty() && refuted_.empty()) return d;
  Dim left = 1;
  for (const Dim& f : factors_of(d)) {
    if (contains(refuted_, f)) return 0;
    if (!contains(certain_, f)) left = left * f;
  }
  return left;
}

// Returns the comparisons that loads in an innermost loop depend on.
std::vector<Dim> CRenderer::comparisons(int id) const {
  constexpr std::size_t kMost = 100;  // instructions of a loop that is written several times
  const Loop& l = loop_at(id);
  std::vector<Dim> all;
  if (has_loops(l.body) || l.body.items.size() > kMost) return all;
  for (const int v : values_in(l.body)) {
    const Instr& i = instr(v);
    if (i.code != Code::Load && i.code != Code::GatherLoad) continue;
    for (const Dim& f : factors_of(valid_here(i)))
      if (!f.is_constant() && !contains(all, f)) all.push_back(f);
  }
  return all;
}

// Divides [0, extent) where comparisons of a loop's index with constants change. Neighbouring ranges of fewer than
// `least` iterations are one.
std::vector<CRenderer::Range> CRenderer::ranges(const Loop& l, const std::vector<Dim>& comparisons, int least) const {
  if (!l.extent.is_constant()) return {};
  const std::int64_t all = l.extent.offset();
  std::set<std::int64_t> cuts;
  std::vector<std::pair<Dim, Linear>> known;
  for (const Dim& f : comparisons)
    if (const auto gap = compared(f, l.symbol)) {
      known.emplace_back(f, *gap);
      if (const std::int64_t at = threshold(*gap); at > 0 && at < all) cuts.insert(at);
    }
  cuts.insert(all);
  std::vector<Range> ranges;
  for (std::int64_t begin = 0; const std::int64_t end : cuts) {
    const bool joins = !ranges.empty() && end - begin < least && ranges.back().end - ranges.back().begin < least;
    if (joins) ranges.back().end = end;
    else ranges.push_back({begin, end, {}, {}});
    begin = end;
  }
  for (Range& r : ranges)
    for (const auto& [f, gap] : known) {
      const std::int64_t at = threshold(gap);
      const bool above = r.begin >= at, below = r.end <= at;
      if (above || below) (above == (gap.coefficient > 0) ? r.hold : r.fail).push_back(f);
    }
  return ranges.size() > 1 ? ranges : std::vector<Range>();
}

// True for a loop that GCC would unroll whole although some loads are guarded, by conditions or branches. GCC 12 then
// makes vectors of the iterations of the loop around it, and reads the wrong elements for guarded loads of neighbours.
bool CRenderer::may_be_unrolled_with_guards(const Dim& iterations) const {
  constexpr std::int64_t kMost = 16;  // GCC's max-completely-peel-times
  if (!iterations.is_constant() || iterations.offset() > kMost) return false;
  return std::ranges::any_of(k_.instrs, [&](const Instr& i) {
    return (i.code == Code::Load || i.code == Code::GatherLoad) && !(here(i.valid) == Dim(1));
  });
}

// Writes what is known of a range's comparisons, for conditions that an innermost loop reads as values, and then code.
void CRenderer::knowing(int id, const Range& r, const std::function<void()>& write) {
  const std::vector<Dim> certain = certain_, refuted = refuted_;
  certain_.insert(certain_.end(), r.hold.begin(), r.hold.end());
  refuted_.insert(refuted_.end(), r.fail.begin(), r.fail.end());
  const std::vector<int> inside = values_in(loop_at(id).body);
  std::map<int, std::string> known;
  for (const int v : inside)
    for (const int read : {instr(v).a, instr(v).b, instr(v).c}) {
      if (read < 0 || std::ranges::find(inside, read) != inside.end() || instr(read).code != Code::Index ||
          instr(read).dtype != DType::Bool || here(instr(read).offset).is_constant())
        continue;
      if (const Dim is = not_certain(instr(read).offset); is.is_constant()) known[read] = dim(is);
    }
  if (!known.empty()) open("{");
  for (const auto& [v, is] : known) line("const int v" + std::to_string(v) + " = " + is + ";");
  write();
  if (!known.empty()) close();
  certain_ = certain, refuted_ = refuted;
}

// Writes an innermost loop in each range of a loop around it, as for the pieces of a concatenation. Returns false if
// that would be more than `most` loops, or one.
bool CRenderer::by_outer_ranges(int id, int most) {
  const std::vector<Dim> found = comparisons(id);
  const auto items = static_cast<std::int64_t>(loop_at(id).body.items.size());
  constexpr std::int64_t kInstructions = 400;
  for (int outer = 0; outer < id; ++outer) {
    const Loop& o = loop_at(outer);
    if (o.tile >= 0 || o.step > 1 || o.reduction >= 0) continue;
    const std::vector<Range> all = ranges(o, found, 1);
    const auto count = static_cast<std::int64_t>(all.size());
    if (count < 2 || count > most || count * items > kInstructions) continue;
    for (const Range& r : all) {
      const bool last = r.end == o.extent.offset(), most_of_it = 2 * (r.end - r.begin) >= o.extent.offset();
      if (last) open("{");
      else open("if (" + o.symbol + " < " + dim(r.end) + " + unseen) {");
      knowing(id, r, [&] { output_lanes(id, most_of_it ? most : most / static_cast<int>(count)); });
      close(last ? "}" : "} else");
    }
    return true;
  }
  return false;
}

// Writes an innermost loop of the result. Where comparisons of an index with constants change, loops for each range
// are written, at most `most`; where all other comparisons hold that do not change in the loop, one without them.
void CRenderer::output_lanes(int id, int most) {
  if (by_outer_ranges(id, most)) return;
  std::vector<Dim> unchanging = comparisons(id);
  std::erase_if(unchanging, [&](const Dim& f) { return mentions(f, loop_at(id).symbol); });
  const bool never = std::ranges::any_of(unchanging, [&](const Dim& a) {
    return std::ranges::any_of(unchanging, [&](const Dim& b) { return contradict(a, b); });
  });
  if (unchanging.empty() || never) return lanes_of(id, most);
  std::string all;
  for (const Dim& f : unchanging) all += (all.empty() ? "" : " && ") + condition(f);
  open("if (" + all + ") {");
  knowing(id, {0, 0, unchanging, {}}, [&] { lanes_of(id, most); });
  close("} else {");
  ++indent_;
  lanes_of(id, 1);
  close();
}

// Writes the loop's iterations range by range, if those are at most `most`.
void CRenderer::lanes_of(int id, int most) {
  const Loop& l = loop_at(id);
  std::vector<Range> all;
  if (id > 0 && l.tile < 0) all = ranges(l, comparisons(id), kLanes);
  if (all.empty() || std::ssize(all) > most) return lanes_between(id, from(id), to(id), l.extent);
  const bool continues = writes_whole_vectors(id);
  if (continues) line("long " + l.symbol + "_ = 0;");
  for (const Range& r : all)
    knowing(id, r, [&] {
      if (continues) up_to(id, r.begin, r.end);
      else lanes_between(id, dim(r.begin), dim(r.end), r.end - r.begin);
    });
}

}  // namespace lc::codegen
