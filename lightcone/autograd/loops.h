// The derivative of a loop is a loop. Its states are the cotangents of the states and, for captures, sums over steps.
#pragma once

#include "lightcone/ops/loop.h"

namespace lc {

// Returns the cotangents of a loop's operands (VjpCall, core/composite.h).
std::vector<Tensor> loop_vjp(const LoopBody& body, const VjpCall& call);

}  // namespace lc
