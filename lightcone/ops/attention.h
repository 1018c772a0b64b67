// The derivative of attention as a single operation.
#pragma once

#include "lightcone/core/composite.h"

namespace lc {

// A composite that maps q [..., h, s, d], k [..., kv, t, d], v [..., kv, t, e] and the cotangent of the result [..., h,
// s, e], all of one floating type, to the cotangents of q, k and v. If `masked`, a further operand is a bool mask that
// broadcasts to [..., h, s, t] (true: attend). Attributes: scale; causal, 0 or 1. The definition materializes the
// probabilities; a kernel need not.
const CompositeRef& attention_gradients(bool masked);

}  // namespace lc
