// Matrix products that a library of the device's vendor may compute instead of our kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "lightcone/backends/gpu/device/library_call.h"
#include "lightcone/core/dtype.h"
#include "lightcone/passes/precision.h"

namespace lc::backends::gpu {

// C[batch, row, column] = sum over k of A[batch, row, k] * B[batch, column, k], summed in f32. Sizes are in elements.
struct MatrixProduct {
  struct Operand {
    std::int64_t offset = 0;
    std::int64_t pitch = 0;  // from one row of A (column of B) to the next if along_sum, else from one k to the next
    bool along_sum = true;   // the elements along k are contiguous
    std::int64_t batch = 0;  // from one matrix to the next; 0: there is only one
    friend bool operator==(const Operand&, const Operand&) = default;
  };
  DType type = DType::F32;                   // type of A and B: f32, f16 or bf16
  DType result = DType::F32;                 // f32, or the type of A and B
  Precision precision = Precision::Highest;  // for f32: how far A and B may be rounded
  std::int64_t rows = 0, columns = 0, sum = 0, batches = 1;
  Operand a, b;
  std::int64_t pitch = 0, batch = 0;  // strides of C: from one row to the next, from one matrix to the next
  friend bool operator==(const MatrixProduct&, const MatrixProduct&) = default;

  double operations() const { return 2.0 * double(rows) * double(columns) * double(sum) * double(batches); }
};

// A library's method for one product. It is chosen once and is the same in every run. Its buffers are A, B, C and
// scratch_bytes() of memory.
class LibraryProduct : public LibraryCall {
 public:
  virtual std::string library() const = 0;        // "cuBLASLt 13.1"
  virtual std::size_t scratch_bytes() const = 0;  // needed by each run
};

}  // namespace lc::backends::gpu
