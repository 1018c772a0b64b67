// Expressions of indices and of sizes as operations.
#pragma once

#include "lightcone/core/dim.h"
#include "lightcone/core/dtype.h"
#include "lightcone/stablehlo/write/builder.h"

namespace lc::stablehlo {

// An index expression for each element of the shape.
ValueId write_index(Builder& b, const Dim& d, const Sizes& shape, DType type);
// What a size is when the module runs: a scalar of i64.
ValueId write_size(Builder& b, const Dim& d);

}  // namespace lc::stablehlo
