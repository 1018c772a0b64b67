// Operands of products whose tiles the device copies into shared memory by itself: matrices, or several, that lie as
// the matrix instructions want them.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/backends/gpu/products/product.h"

namespace lc::backends::gpu {

inline constexpr int kMapRowBytes = 128;  // of a box's innermost axis, as the copies permute its chunks

struct OperandMap {
  std::size_t place = 0;  // of the kernel's
  int bytes = 2;          // of an element
  bool along_sum = true;  // the innermost axis is the sum's, the second one the operand's own, or the other way round
  std::vector<std::size_t> batch;  // which of the product's axes are the others
  Dim offset;
  std::vector<Dim> extents, strides;  // innermost first, in elements; a stride less: of all behind the first
  std::vector<int> box;

  // What a start needs to know: the offset, the extents, the strides.
  std::vector<Dim> sizes() const;
  std::size_t count() const { return 1 + extents.size() + strides.size(); }  // of them
};

// Of tiles of `own` rows of A or columns of B; nothing where the operand does not lie so, whatever its symbols are.
std::optional<OperandMap> operand_map(const Product& p, bool is_b, int own);

}  // namespace lc::backends::gpu
