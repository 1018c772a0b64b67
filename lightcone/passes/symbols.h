// The symbolic extents of a graph by their names, with their bounds.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "lightcone/core/graph.h"

namespace lc {

using Symbols = std::map<std::string, Bounds, std::less<>>;
// Adds the names in a size, without the loop indices, which are not the user's to bind. Where one name has two bounds,
// both hold.
void add_symbols(Symbols& to, const Dim& d);
// All that the live part of a graph mentions: in shapes, views, attributes and indices.
Symbols symbols_of(const Graph& g);

}  // namespace lc
