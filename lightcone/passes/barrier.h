// A value that is computed a second time instead of being kept: its clone reads its operands through barriers, which
// keep it a node of its own. Without them equal nodes would be one node (XLA's OptimizationBarrier).
#pragma once

#include "lightcone/core/composite.h"

namespace lc {

const CompositeRef& barrier();  // its operand; no pass looks through it
Tensor behind_barrier(const Tensor& x);

}  // namespace lc
