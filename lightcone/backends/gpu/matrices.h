// Which products are such that a vendor's library computes them: of whole matrices, whose sizes are all known.
#pragma once

#include <optional>

#include "lightcone/backends/gpu/device/library_product.h"
#include "lightcone/backends/gpu/products/product.h"

namespace lc::backends::gpu {

// The product as a library takes it, its result in f32. Nothing where a size is not known, an axis is not one axis of a
// matrix, a window reaches beyond an operand, or the types are others than f32, f16 and bf16. Where rows lie side by
// side in the result, A and B change places: `swapped` says so.
struct Matrices {
  MatrixProduct product;
  bool swapped = false;
};
std::optional<Matrices> as_matrices(const Product& p, Precision precision);

}  // namespace lc::backends::gpu
