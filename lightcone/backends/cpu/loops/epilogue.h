// Epilogue: an elementwise consumer run by the kernel that makes its operand, piece by piece, while the piece is still
// in the cache: some columns of some rows. It is generated code like every loop.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/cpu/loops/loop_kernel.h"
#include "lightcone/lowering/partition.h"

namespace lc::backends::cpu {

class Epilogue {
 public:
  static constexpr std::size_t kMaxOperands = 24, kMaxSizes = 24;

  Epilogue(const Graph& g, lowering::EpilogueLoop e);

  const std::vector<NodeId>& operands() const { return operands_; }  // beside the producer
  // The operand that is as large as the result, a residual: worth asking for before the row is final. -1: none.
  int largest() const { return largest_; }
  std::vector<Dim> sizes() const;
  const std::shared_ptr<LoopKernel>& loop() const { return loop_; }

  // Elements [begin, end) of rows [row, row + rows) of `out`, which holds what the producer computed. `in` are the
  // buffers of operands().
  void run(const void* const* in, float* out, const std::int64_t* sizes, std::int64_t row, std::int64_t rows,
           std::int64_t begin, std::int64_t end) const;

 private:
  std::shared_ptr<LoopKernel> loop_;
  std::vector<NodeId> operands_;
  std::vector<int> from_;  // operand k of the loop: index in operands_, -1 for the producer
  int largest_ = -1;
  std::size_t begin_at_ = 0, count_at_ = 0;  // which sizes are the columns
  std::size_t sizes_ = 0;
};

}  // namespace lc::backends::cpu
