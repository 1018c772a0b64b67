// Ranges of loop indices, and traversal of the named symbols in a Dim. Dim::symbols() builds a map of strings for each
// call, which would dominate where every offset of every kernel is examined.
#pragma once

#include "lightcone/macros_off.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lightcone/base/error.h"
#include "lightcone/core/dim.h"

namespace lc::codegen {

// A range of numbers for Dim::index. While an index is pulled back through views, indices of a value's own axes, of
// loops and of a matcher occur in one expression, so each creator of indices has its own range.
struct IndexRange {
  int first, count;
  int operator[](std::size_t i) const {
    check(i < static_cast<std::size_t>(count), "a loop index outside its range");
    return first + static_cast<int>(i);
  }
};
inline constexpr IndexRange kAxes{0, 100},           // axes of a value: Graph::index() and queries for an element
    kSummed{100, 1},                                 // the summed axis of a contraction (lowering/factors.cpp)
    kSummedParts{101, 99},                           // parts of the summed axis of a convolution
    kAttentionSplits{200, 100},                      // outer and inner part of a split axis of an attention's result
    kAttentionKey{300, 1}, kAttentionDepth{301, 1},  // the axes that attention sums over
    kEpilogueRow{999, 1},                            // rows of a product with a fused epilogue
    kOutputLoops{1000, 1000}, kReduceLoops{2000, 1000},  // loops of a kernel
    kTileOrigins{3000, 1000},                            // loops over tiles
    kExportParts{4000, 1000},  // parts of loops, in the order of their creation (stablehlo/write)
    kGathered{9999, 1};        // stands for the index that a gather reads from memory
inline constexpr IndexRange kIndexRanges[] = {kAxes,         kSummed,         kSummedParts, kAttentionSplits,
                                              kAttentionKey, kAttentionDepth, kEpilogueRow, kOutputLoops,
                                              kReduceLoops,  kTileOrigins,    kExportParts, kGathered};
static_assert(std::adjacent_find(std::begin(kIndexRanges), std::end(kIndexRanges),
                                 [](const IndexRange& a, const IndexRange& b) {
                                   return a.count < 1 || a.first + a.count > b.first;
                                 }) == std::end(kIndexRanges),
              "ranges overlap, or do not stand in order");

// Calls see(atom) for each occurrence of a symbol, including loop indices and the symbols in their extents.
template <class F>
void each_symbol(const Dim& d, const F& see) {
  for (const Dim::Term& t : d.terms())
    for (const Dim::Atom* f : t.factors) {
      if (f->kind == Dim::Kind::Symbol) see(*f);
      if (f->kind != Dim::Kind::Symbol || f->is_index) each_symbol(f->a, see), each_symbol(f->b, see);
    }
}

// Returns the change of the Dim per step of the symbol if it is a constant, else 0.
inline std::int64_t coefficient(const Dim& d, std::string_view symbol) {
  for (const Dim::Term& t : d.terms())
    if (t.factors.size() == 1 && t.factors[0]->kind == Dim::Kind::Symbol && t.factors[0]->name == symbol)
      return t.coefficient;
  return 0;
}

// Values that at_values() substitutes for symbols.
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
