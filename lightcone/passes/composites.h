// Definitions in place of composites.
#pragma once

#include <functional>

#include "lightcone/passes/compiler.h"

namespace lc {

// Every composite that is `wanted` becomes its definition, and so do those that definitions use, until none is left.
Graph inline_composites(const Graph& g, PassLog& log, const std::function<bool(const Graph& of, const Node&)>& wanted);
// Elementwise composites and those that are values.
bool is_composite(const Node& n);

}  // namespace lc
