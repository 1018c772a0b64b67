// Writes expressions of indices and sizes as operations.
#pragma once

#include "lightcone/core/dim.h"
#include "lightcone/core/dtype.h"
#include "lightcone/stablehlo/write/builder.h"

namespace lc::stablehlo {

// Returns the value of an index expression for each element of the shape.
ValueId write_index(Builder& b, const Dim& d, const Sizes& shape, DType type);
// Returns the value of a size at run time, a scalar of i64.
ValueId write_size(Builder& b, const Dim& d);

}  // namespace lc::stablehlo
