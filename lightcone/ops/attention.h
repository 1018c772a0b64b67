// The derivative of attention as one operation.
#pragma once

#include "lightcone/core/composite.h"

namespace lc {

// q [..., h, s, d], k [..., kv, t, d], v [..., kv, t, e], the cotangent of the result [..., h, s, e], all of one
// floating type, and, where something is masked, a bool mask that broadcasts to [..., h, s, t] (true: look) -> the
// cotangents of q, k and v. Attributes: scale; causal, 0 or 1. Its definition writes the probabilities out; a kernel
// need not.
const CompositeRef& attention_gradients(bool masked);

}  // namespace lc
