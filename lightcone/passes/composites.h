// Inlines definitions of composites.
#pragma once

#include <functional>

#include "lightcone/passes/compiler.h"

namespace lc {

// Replaces every composite for which `wanted` holds by its definition, recursively.
Graph inline_composites(const Graph& g, PassLog& log, const std::function<bool(const Graph& of, const Node&)>& wanted);
// True for elementwise composites and for composites that are values.
bool is_composite(const Node& n);

}  // namespace lc
