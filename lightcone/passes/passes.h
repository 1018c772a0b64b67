// The device-independent compilers: each is a value to join with `|`.
#pragma once

#include "lightcone/passes/rewrite.h"

namespace lc {

// What every pipeline starts with: constant folding, exact algebra, views instead of copies.
// Equal nodes are one node and dead nodes are gone by construction of the graph.
Compiler generic();
std::vector<Rule> generic_rules();

// Replaces every composite by its definition until only leaves and the twelve are left: what a
// device without kernels of its own runs.
Compiler primitives_only();

}  // namespace lc
