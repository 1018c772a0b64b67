#include "lightcone/passes/symbols.h"

#include <algorithm>

#include "lightcone/core/composite.h"

namespace lc {

void add_symbols(Symbols& to, const Dim& d) {
  for (const Dim::Term& t : d.terms())
    for (const Dim::Atom* f : t.factors) {
      if (f->kind == Dim::Kind::Symbol && !f->is_index) {
        Bounds& both = to.try_emplace(f->name, f->bounds).first->second;
        both = {std::max(both.lo, f->bounds.lo), std::min(both.hi, f->bounds.hi)};
      }
      add_symbols(to, f->a), add_symbols(to, f->b);
    }
}

Symbols symbols_of(const Graph& g) {
  Symbols all;
  const auto add = [&](const Shape& s) {
    for (const Dim& d : s) add_symbols(all, d);
  };
  const auto add_view = [&](const View& v) {
    add(v.base());
    for (const Move& m : v.moves()) add(m.to), add(m.before);
  };
  const std::vector<bool> live = g.live();
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live[id]) continue;
    add(g[id].shape);
    add_symbols(all, g[id].index);
    add(extents(g[id].attributes));
    for (const TensorType& t : g[id].results) add(t.shape);
    for (const Edge& e : g[id].in) add_view(e.view);
  }
  for (const Root& r : g.roots()) add_view(r.edge.view);
  for (const Assignment& a : g.assignments()) add_view(a.next.view);
  return all;
}

}  // namespace lc
