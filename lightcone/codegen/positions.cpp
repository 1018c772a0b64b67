#include "lightcone/codegen/positions.h"

#include <algorithm>
#include <map>
#include <optional>

#include "lightcone/codegen/symbols.h"

namespace lc::codegen {
namespace {

// A cache of answers. A new entry replaces an older one in the same slot.
template <class Question, class Answer>
struct Remembered {
  std::vector<std::pair<std::optional<Question>, Answer>> slots{4096};
  template <class Make>
  const Answer& get(std::size_t hash, const Question& q, const Make& make) {
    auto& [known, answer] = slots[hash % slots.size()];
    if (known != q) {
      known.reset();  // so that an exception in make() leaves no half-written entry
      answer = make();
      known = q;
    }
    return answer;
  }
};
std::size_t hash_of(std::size_t h, const std::vector<Dim>& v) {
  for (const Dim& d : v) h = h * 31 + d.hash();
  return h;
}

constexpr std::int64_t kFarthest = std::int64_t{1} << 40;  // larger bounds count as unbounded

// The range of a loop index that guards leave.
struct Left {
  Dim index;
  std::int64_t first, last, extent;
};
std::int64_t floor_of(std::int64_t a, std::int64_t b) { return *(Dim(a) / Dim(b)).constant(); }

// Narrows the range of each index in the guard a < b.
void narrow(const Dim::Atom* f, std::map<std::string, Left>& left) {
  if (f->kind != Dim::Kind::Less) return;
  const Dim room = f->b - f->a;  // at least 1
  for (const Dim::Term& t : room.terms()) {
    const Dim::Atom* i = t.factors[0];
    if (t.factors.size() != 1 || i->kind != Dim::Kind::Symbol || !i->is_index || !i->a.is_constant()) continue;
    const std::int64_t extent = i->a.offset(), most = (room - Dim(t.coefficient) * Dim::from(i)).bounds().hi;
    if (most > kFarthest) continue;
    Left& l = left.try_emplace(i->name, Left{Dim::from(i), 0, extent - 1, extent}).first->second;
    if (t.coefficient < 0) l.last = std::min(l.last, floor_of(most - 1, -t.coefficient));
    else l.first = std::max(l.first, -floor_of(most - 1, t.coefficient));
  }
}

// Returns true if something other than a single loop index is divided: splitting the loop would not help then.
bool divides(const std::vector<Dim>& index) {
  const auto in = [](const auto& self, const Dim& d) -> bool {
    return std::any_of(d.terms().begin(), d.terms().end(), [&](const Dim::Term& t) {
      return std::any_of(t.factors.begin(), t.factors.end(), [&](const Dim::Atom* f) {
        if (f->kind == Dim::Kind::Symbol) return false;
        return ((f->kind == Dim::Kind::Div || f->kind == Dim::Kind::Mod) && !f->a.name()) || self(self, f->a) ||
               self(self, f->b);
      });
    });
  };
  return std::any_of(index.begin(), index.end(), [&](const Dim& d) { return in(in, d); });
}

}  // namespace

View::Position located(const View& view, const std::vector<Dim>& index) {
  thread_local Remembered<std::pair<View, std::vector<Dim>>, View::Position> known;
  return known.get(hash_of(view.hash(), index), {view, index}, [&] { return view.locate(index); });
}
Dim raveled(const std::vector<Dim>& index, const Shape& shape) {
  thread_local Remembered<std::pair<std::vector<Dim>, Shape>, Dim> known;
  return known.get(hash_of(hash_of(7, index), shape), {index, shape}, [&] { return ravel(index, shape); });
}

View::Position pinned(const View::Position& p) {
  const auto& terms = p.valid.terms();
  if (p.valid.offset() != 0 || terms.size() != 1 || terms[0].coefficient != 1) return p;
  std::map<std::string, Left> left;
  for (const Dim::Atom* f : terms[0].factors) narrow(f, left);
  SymbolValues only;
  Dim valid = 1;
  for (const auto& [name, l] : left) {
    if (l.first != l.last || l.extent == 1) continue;
    only.emplace(name, l.first);
    if (l.first > 0) valid = valid * less(l.first - 1, l.index);
    if (l.last + 1 < l.extent) valid = valid * less(l.index, l.last + 1);
  }
  if (only.empty()) return p;
  for (const Dim::Atom* f : terms[0].factors) valid = valid * at_values(Dim::from(f), only);
  View::Position at = p;
  at.offset = at_values(p.offset, only);
  for (Dim& d : at.index) d = at_values(d, only);
  at.valid = valid;
  return at;
}

std::vector<Dim> operand_index(const View::Position& at, const Shape& s, const Dim& guard) {
  std::vector<Dim> index = unravel(at.offset, s);
  return !(guard == Dim(1)) && divides(index) && !divides(at.index) ? at.index : index;
}

}  // namespace lc::codegen
