// Epilogue: an elementwise consumer run by the kernel that makes its operand, piece by piece, while the
// piece is still in the cache: some columns of some rows. It is generated code like every loop, seen through
// a slice of one row with a loop over rows around it: whatever can be fused into a loop can be fused behind
// a product, and rows may be short.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lightcone/backends/cpu/lower.h"

namespace lc::host {

class Epilogue {
 public:
  static constexpr std::size_t kMaxOperands = 24, kMaxSizes = 24;

  // `consumer` as rows of `row` elements, computed in place of `producer`; nothing when it is not
  // elementwise in the producer's own order. A node is added to `g`: one row of the consumer.
  static std::shared_ptr<Epilogue> make(Graph& g, NodeId producer, NodeId consumer, Dim row,
                                        const std::function<bool(NodeId)>& is_buffer,
                                        std::shared_ptr<Parallel> parallel, const Machine& machine);

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

}  // namespace lc::host
