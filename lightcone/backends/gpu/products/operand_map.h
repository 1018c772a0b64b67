// Operands of products whose tiles the device itself copies into shared memory: one matrix or several, in a layout that
// the matrix instructions take.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/backends/gpu/products/product.h"

namespace lc::backends::gpu {

inline constexpr int kMapRowBytes = 128;  // bytes of a box's innermost axis, whose chunks the copies permute

struct OperandMap {
  std::size_t buffer = 0;  // index of the kernel's buffer
  int bytes = 2;           // bytes of an element
  bool along_sum = true;   // the innermost axis is the contracted one and the second the free one, or vice versa
  std::vector<std::size_t> batch;  // the batch axes of the product that are the other axes
  Dim offset;
  std::vector<Dim> extents, strides;  // innermost first, in elements; the first axis has no stride
  std::vector<int> box;

  // The size arguments of a launch: the offset, the extents, the strides.
  std::vector<Dim> sizes() const;
  std::size_t count() const { return 1 + extents.size() + strides.size(); }  // number of sizes()
};

// Returns the map for tiles of `own` rows of A or columns of B; nullopt unless the operand has such a layout for all
// values of its symbols.
std::optional<OperandMap> operand_map(const Product& p, bool is_b, int own);

}  // namespace lc::backends::gpu
