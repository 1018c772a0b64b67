// The named symbols inside a Dim, one after the other: Dim::symbols() makes a map of strings each time it is asked,
// which is most of the work where every offset of every kernel is looked at.
#pragma once

#include <optional>
#include <string_view>

#include "lightcone/core/dim.h"

namespace lc::ir {

// Calls see(atom) for every symbol, loop indices and what their extents are made of included; as often as it stands.
template <class F>
void each_symbol(const Dim& d, const F& see) {
  for (const Dim::Term& t : d.terms())
    for (const Dim::Atom* f : t.factors) {
      if (f->kind == Dim::Kind::Symbol) see(*f);
      if (f->kind != Dim::Kind::Symbol || f->is_index) each_symbol(f->a, see), each_symbol(f->b, see);
    }
}

// How far the Dim moves with a step of the symbol, where that is a number; else 0.
inline std::int64_t coefficient(const Dim& d, std::string_view symbol) {
  for (const Dim::Term& t : d.terms())
    if (t.factors.size() == 1 && t.factors[0]->kind == Dim::Kind::Symbol && t.factors[0]->name == symbol)
      return t.coefficient;
  return 0;
}

inline Dim renamed(const Dim& d, std::string_view from, const Dim& to) {
  return d.substitute([&](const std::string& s) { return s == from ? std::optional<Dim>(to) : std::nullopt; });
}

inline bool mentions(const Dim& d, std::string_view symbol) {
  bool found = false;
  each_symbol(d, [&](const Dim::Atom& s) { found = found || s.name == symbol; });
  return found;
}

}  // namespace lc::ir
