// The transposes of views.
#pragma once

#include "lightcone/core/tensor.h"

namespace lc {

// What reading through `view` does to cotangents, backwards: from the shape of the view to the shape of its base.
// Elements that were read several times add up, those that were never read are zero.
Tensor transpose_view(const View& view, Tensor cotangent);

}  // namespace lc
