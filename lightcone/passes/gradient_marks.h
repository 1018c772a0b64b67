// Markers for the start and end of reverse sweeps. A loss scale is multiplied in at the start and divided out at the
// end, so gradients() marks both. generic() removes the markers; every device treats them as their definition.
#pragma once

#include "lightcone/core/composite.h"

namespace lc {

const CompositeRef& gradient_seed();    // the cotangent of a loss: identity on ones
const CompositeRef& gradient_result();  // a gradient returned by gradients(): identity

}  // namespace lc
