// Inlines definitions of composites.
#pragma once

#include <functional>

#include "lightcone/core/composite.h"
#include "lightcone/passes/compiler.h"

namespace lc {

// Replaces every composite for which `wanted` holds by its definition, recursively.
Graph inline_composites(const Graph& g, PassLog& log, const std::function<bool(const Graph& of, const Node&)>& wanted);
// Replaces transparent composites, and `also` if it is given. Passes that rewrite the products of a graph need those of
// attention written out, too.
Graph inline_transparent(const Graph& g, PassLog& log, const CompositeRef& also = nullptr);
bool is_transparent(const Node& n);
// True for elementwise composites and for composites that are values.
bool is_composite(const Node& n);

}  // namespace lc
