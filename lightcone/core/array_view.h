// ArrayView: numbers in memory with a shape and an element type, which somebody else owns. Tensors of checkpoints and
// arrays of data sets convert to it; what takes one compares shape and type, and not the number of bytes alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lightcone/core/dtype.h"

namespace lc {

struct ArrayView {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;   // row-major, the last axis contiguous
  std::span<const std::byte> bytes;  // as many as the shape needs
};

}  // namespace lc
