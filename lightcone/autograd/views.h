// Transposes of views.
#pragma once

#include "lightcone/core/tensor.h"

namespace lc {

// Applies the transpose of `view` to a cotangent: from the shape of the view to the shape of its base. Elements that
// were read several times are summed; elements that were never read are zero.
Tensor transpose_view(const View& view, Tensor cotangent);

}  // namespace lc
