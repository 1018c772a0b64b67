// Epilogue: an elementwise consumer that runs inside the kernel that computes its operand, on pieces of rows (some
// columns of some rows) while they are still in the cache. It is generated code, like any other loop.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lightcone/backends/cpu/loops/loop_kernel.h"
#include "lightcone/lowering/partition.h"

namespace lc::backends::cpu {

// An elementwise loop fused into its producer. run() may be called from several threads.
class Epilogue {
 public:
  static constexpr std::size_t kMaxOperands = 24, kMaxSizes = 24;

  Epilogue(const Graph& g, lowering::EpilogueLoop e);

  // Operands of the loop, except the producer.
  const std::vector<NodeId>& operands() const { return operands_; }
  // Index of an operand as large as the result, for example a residual, which is worth prefetching before the row is
  // final; -1 if there is none.
  int largest() const { return largest_; }
  // Sizes to be evaluated for a run; their values are passed to run(). The last is whether the result is written past
  // the caches.
  std::vector<Dim> sizes() const;
  const std::shared_ptr<LoopKernel>& loop() const { return loop_; }

  DType result() const { return loop_->ir().dtype; }
  // Whether the producer's result, f32, is kept apart from the loop's: run_apart().
  bool apart() const { return apart_at_.has_value(); }
  // Applies the loop in place to elements [begin, end) of rows [row, row + rows) of `out`, which holds the producer's
  // result. `in` are the buffers of operands().
  void run(const void* const* in, float* out, const std::int64_t* sizes, std::int64_t row, std::int64_t rows,
           std::int64_t begin, std::int64_t end) const;
  // The same for a producer's result apart from the loop's: `sums` is element `begin` of row `row` of it, and its rows
  // are `distance` elements apart.
  void run_apart(const void* const* in, const float* sums, std::int64_t distance, void* out, const std::int64_t* sizes,
                 std::int64_t row, std::int64_t rows, std::int64_t begin, std::int64_t end) const;

 private:
  void range(const void* const* in, const void* sums, std::int64_t distance, void* out, const std::int64_t* sizes,
             std::int64_t row, std::int64_t rows, std::int64_t begin, std::int64_t end) const;

  std::shared_ptr<LoopKernel> loop_;
  std::vector<NodeId> operands_;
  std::vector<int> from_;  // operand k of the loop: its index in operands_, or -1 for the producer
  int largest_ = -1;
  std::size_t begin_at_ = 0, count_at_ = 0;  // indices in sizes() of the first column and of the column count
  std::optional<std::size_t> apart_at_;      // index of the distance between rows of a producer apart
  std::size_t sizes_ = 0;                    // number of sizes of the loop's IR
  Dim streams_ = 0;
};

}  // namespace lc::backends::cpu
