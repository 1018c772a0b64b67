// ArrayView: a non-owning view of numbers in memory, with shape and element type. Checkpoint tensors and data-set
// arrays convert to it. A function that takes an ArrayView compares shape and type, not only the number of bytes.
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
  std::span<const std::byte> bytes;  // size_of(dtype) * product of the shape
};

}  // namespace lc
