// The derivative of a loop is a loop: its states are the cotangents of states, and sums over steps for what was
// captured.
#pragma once

#include "lightcone/ops/loop.h"

namespace lc {

// The cotangents of a loop's operands (VjpCall, core/composite.h).
std::vector<Tensor> loop_vjp(const LoopBody& body, const VjpCall& call);

}  // namespace lc
