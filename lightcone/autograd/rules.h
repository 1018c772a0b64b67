// The differentiation rules of the op table, one per row.
#pragma once

#include <vector>

#include "lightcone/core/composite.h"

namespace lc {

// Returns the cotangents of a node's operands. Composites that are values have rules of their own.
std::vector<Tensor> apply_rule(const Node& n, const VjpCall& c);

}  // namespace lc
