// The device-independent compilers: each is a value to join with `|`.
#pragma once

#include "lightcone/passes/rewrite.h"

namespace lc {

// The first part of every pipeline: definitions of transparent composites, constant folding, exact algebraic rules,
// views instead of copies. Merging equal nodes and dropping dead ones needs no pass, because the graph's construction
// does both.
Compiler generic();
// Returns the rules of generic().
std::vector<Rule> generic_rules();

// Replaces every composite by its definition until only leaves and primitives are left. A device without kernels of its
// own runs the result.
Compiler primitives_only();

}  // namespace lc
