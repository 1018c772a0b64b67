// Which loop indices are whose, and the named symbols inside a Dim, one after the other: Dim::symbols() makes a map of
// strings each time it is asked, which is most of the work where every offset of every kernel is looked at.
#pragma once

#include "lightcone/macros_off.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lightcone/core/dim.h"
#include "lightcone/core/error.h"

namespace lc::codegen {

// Numbers for Dim::index. While an index is pulled back through views, those of a value's own axes stand in one
// expression with loops' and with what a matcher adds: whoever makes indices takes them from a range of its own.
struct IndexRange {
  int first, count;
  int operator[](std::size_t i) const {
    check(i < static_cast<std::size_t>(count), "a loop index outside its range");
    return first + static_cast<int>(i);
  }
};
inline constexpr IndexRange kAxes{0, 100},               // of a value: Graph::index() and whoever asks for an element
    kSummed{100, 1},                                     // what a contraction sums over (lowering/factors.cpp),
    kSummedParts{101, 99},                               // and its parts, if it is a convolution
    kAttentionSplits{200, 100},                          // an axis of the result in two, outer and inner
    kAttentionKey{300, 1}, kAttentionDepth{301, 1},      // what attention sums over
    kEpilogueRow{999, 1},                                // the rows of a product that another kernel goes on with
    kOutputLoops{1000, 1000}, kReduceLoops{2000, 1000},  // of a kernel
    kTileOrigins{3000, 1000},                            // where the tiles of its loops begin
    kExportParts{4000, 1000},  // parts of loops, in the order of their making (stablehlo/write)
    kGathered{9999, 1};        // stands for the place that a gather reads from memory
inline constexpr IndexRange kIndexRanges[] = {kAxes,         kSummed,         kSummedParts, kAttentionSplits,
                                              kAttentionKey, kAttentionDepth, kEpilogueRow, kOutputLoops,
                                              kReduceLoops,  kTileOrigins,    kExportParts, kGathered};
static_assert(std::adjacent_find(std::begin(kIndexRanges), std::end(kIndexRanges),
                                 [](const IndexRange& a, const IndexRange& b) {
                                   return a.count < 1 || a.first + a.count > b.first;
                                 }) == std::end(kIndexRanges),
              "ranges overlap, or do not stand in order");

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

// With what stands for each symbol in the place of it.
using SymbolValues = std::map<std::string, Dim, std::less<>>;
inline Dim at_values(const Dim& d, const SymbolValues& values) {
  return d.substitute([&](const std::string& s) {
    const auto it = values.find(s);
    return it == values.end() ? std::nullopt : std::optional<Dim>(it->second);
  });
}

inline Dim renamed(const Dim& d, std::string_view from, const Dim& to) {
  return d.substitute([&](const std::string& s) { return s == from ? std::optional<Dim>(to) : std::nullopt; });
}

inline bool mentions(const Dim& d, std::string_view symbol) {
  bool found = false;
  each_symbol(d, [&](const Dim::Atom& s) { found = found || s.name == symbol; });
  return found;
}

}  // namespace lc::codegen
#include "lightcone/macros_on.h"
