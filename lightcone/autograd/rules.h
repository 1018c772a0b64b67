// One rule of differentiation for each row of the op table.
#pragma once

#include <vector>

#include "lightcone/core/composite.h"

namespace lc {

// The cotangents of a node's operands. Composites that are values have rules of their own.
std::vector<Tensor> apply_rule(const Node& n, const VjpCall& c);

}  // namespace lc
