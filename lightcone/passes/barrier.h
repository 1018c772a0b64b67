// Barriers for rematerialization: a value is recomputed instead of kept if its clone reads its operands through
// barriers. Without them hash-consing would merge the clone with the original (XLA's OptimizationBarrier).
#pragma once

#include "lightcone/core/composite.h"

namespace lc {

const CompositeRef& barrier();  // identity; no pass looks through it
Tensor behind_barrier(const Tensor& x);

}  // namespace lc
