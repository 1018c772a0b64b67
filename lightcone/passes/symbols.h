// The symbolic extents of a graph by name, with their bounds.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "lightcone/core/graph.h"

namespace lc {

using Symbols = std::map<std::string, Bounds, std::less<>>;
// Adds the symbols in a size, except loop indices, which users cannot bind. If one name has two bounds, their
// intersection holds.
void add_symbols(Symbols& to, const Dim& d);
// Collects all symbols in the live part of a graph: in shapes, views, attributes and indices.
Symbols symbols_of(const Graph& g);

}  // namespace lc
