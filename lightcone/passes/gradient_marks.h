// Where reverse sweeps begin and end. A loss scale is multiplied in at the one and divided out at the other, so
// gradients() marks both; generic() and every device take the marks for what they are defined as.
#pragma once

#include "lightcone/core/composite.h"

namespace lc {

const CompositeRef& gradient_seed();    // the cotangent of a loss: its operand, ones
const CompositeRef& gradient_result();  // a gradient that gradients() gave: its operand

}  // namespace lc
