// Conditions of loads, which are products of comparisons: where they are known to hold, code without them is written,
// whose loads are vectors. So it is for the pixels of a padded image that lie inside of it.
#include <algorithm>

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

}  // namespace

// Returns what is left of a condition without the comparisons that hold.
Dim CRenderer::not_certain(const Dim& condition) const {
  const Dim d = here(condition);
  if (certain_.empty()) return d;
  Dim left = 1;
  for (const Dim& f : factors_of(d))
    if (!contains(certain_, f)) left = left * f;
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

// Returns the iterations in which all comparisons of the loop's index with constants hold, if they are most of them.
std::optional<CRenderer::Range> CRenderer::inside(int id) const {
  const Loop& l = loop_at(id);
  if (id == 0 || l.tile >= 0 || !l.extent.is_constant()) return std::nullopt;
  const std::int64_t all = l.extent.offset();
  Range r{0, all, {}};
  for (const Dim& f : comparisons(id)) {
    const auto gap = compared(f, l.symbol);
    if (!gap) continue;
    if (gap->coefficient > 0) r.begin = std::max(r.begin, floor_div(-gap->offset, gap->coefficient) + 1);
    else r.end = std::min(r.end, -floor_div(-gap->offset, -gap->coefficient));
    r.hold.push_back(f);
  }
  if (r.hold.empty() || r.end - r.begin < std::max<std::int64_t>(kLanes, all / 2)) return std::nullopt;
  return r;
}

// True for a loop that GCC would unroll whole although some loads are guarded. GCC 12 then makes vectors of the
// iterations of the loop around it, and reads the wrong elements for guarded loads of neighbours.
bool CRenderer::may_be_unrolled_with_guards(const Dim& iterations) const {
  constexpr std::int64_t kMost = 16;  // GCC's max-completely-peel-times
  if (!iterations.is_constant() || iterations.offset() > kMost) return false;
  return std::ranges::any_of(k_.instrs, [&](const Instr& i) {
    return (i.code == Code::Load || i.code == Code::GatherLoad) && !(valid_here(i) == Dim(1));
  });
}

// Writes the iterations before, inside of and after a range, inside without the comparisons that hold there.
void CRenderer::in_ranges(int id, const Range& inside,
                          const std::function<void(std::int64_t begin, std::int64_t end)>& write) {
  if (inside.begin > 0) write(0, inside.begin);
  const std::vector<Dim> outer = certain_;
  certain_.insert(certain_.end(), inside.hold.begin(), inside.hold.end());
  write(inside.begin, inside.end);
  certain_ = outer;
  if (const std::int64_t all = loop_at(id).extent.offset(); inside.end < all) write(inside.end, all);
}

// Returns the conditions that the loop reads as values, and that hold because those of its loads do.
std::set<int> CRenderer::known_inside(int id) const {
  const std::vector<int> inside = values_in(loop_at(id).body);
  std::set<int> known;
  for (const int v : inside)
    for (const int read : {instr(v).a, instr(v).b, instr(v).c})
      if (read >= 0 && std::ranges::find(inside, read) == inside.end() && instr(read).code == Code::Index &&
          instr(read).dtype == DType::Bool && !here(instr(read).offset).is_constant() &&
          not_certain(instr(read).offset) == Dim(1))
        known.insert(read);
  return known;
}

// Where all comparisons hold that do not change in the loop, a loop without them runs.
void CRenderer::output_lanes(int id) {
  std::vector<Dim> unchanging = comparisons(id);
  std::erase_if(unchanging, [&](const Dim& f) { return mentions(f, loop_at(id).symbol); });
  const std::optional<Range> range = inside(id);
  if (unchanging.empty()) return lanes_of(id, range);
  std::string all;
  for (const Dim& f : unchanging) all += (all.empty() ? "" : " && ") + condition(f);
  open("if (" + all + ") {");
  certain_ = unchanging;
  for (const int v : known_inside(id)) line("const int v" + std::to_string(v) + " = 1;");
  lanes_of(id, range);
  certain_.clear();
  close("} else {");
  ++indent_;
  lanes_of(id, std::nullopt);
  close();
}

}  // namespace lc::codegen
