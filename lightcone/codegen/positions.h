// Positions of elements behind views, at indices of loops.
#pragma once

#include <vector>

#include "lightcone/core/graph.h"

namespace lc::codegen {

// View::locate() and ravel(), whose answers are remembered: the layers of a model use the same views at the same
// indices.
View::Position located(const View& view, const std::vector<Dim>& index);
Dim raveled(const std::vector<Dim>& index, const Shape& shape);

// Replaces indices that the guard fixes by their value. In the second of several concatenated pieces, the index of the
// pieces is 1; with it, the divisions that join this index with others disappear.
View::Position pinned(const View::Position& p);

// Returns the index of an operand's element. It is derived from the flat offset, which does not depend on how views
// were composed. Where padding is read, the offset may belong to another element, and only the axes' own indices need
// no division.
std::vector<Dim> operand_index(const View::Position& at, const Shape& s, const Dim& guard);

}  // namespace lc::codegen
