// Recognises products that a vendor's library computes: products of whole matrices whose sizes are all known.
#pragma once

#include <optional>

#include "lightcone/backends/gpu/device/library_product.h"
#include "lightcone/backends/gpu/products/product.h"

namespace lc::backends::gpu {

// A product in the form that a library takes, with its result in f32. If the rows of the result are the contiguous
// axis, A and B are exchanged and `swapped` is true.
struct Matrices {
  MatrixProduct product;
  bool swapped = false;
};
// Returns nullopt if a size is not known, an axis is not a single axis of a matrix, a window reaches beyond an operand,
// or the types are others than f32, f16 and bf16.
std::optional<Matrices> as_matrices(const Product& p, Precision precision);

}  // namespace lc::backends::gpu
