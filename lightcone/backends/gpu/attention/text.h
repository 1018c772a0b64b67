// The kernels of attention as text, one for all languages. Scores are never in memory.
//
//   attention_text: for each tile of keys computes the scores of all rows, applies the steps, and updates the running
//   maximum and sum (online softmax, powers of 2) and the weighted values, all in f32; tensor cores multiply bf16. A
//   tile of keys that a mask hides from all rows is skipped if the result does not show it: a hidden value is
//   multiplied by zero, which is NaN for a non-finite value, so the values are checked all the same.
//   join_text: combines the partial results of the splits of the keys, in their order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lightcone/backends/gpu/attention/tile.h"

namespace lc::backends::gpu {

// The size arguments of the kernels: every symbolic expression of the layout, and the numbers that enqueue() chooses.
class AttentionSizes {
 public:
  explicit AttentionSizes(lowering::AttentionLayout<Dim> layout);
  const std::vector<Dim>& symbolic() const { return symbolic_; }
  std::string text(const Dim& d) const;  // a literal or the name of an argument
  std::size_t count() const { return symbolic_.size() + 4; }
  std::string rows() const { return own(0); }
  std::string blocks() const { return own(1); }  // blocks of rows of a batch
  std::string splits() const { return own(2); }
  std::string split() const { return own(3); }  // keys of a split

 private:
  std::string own(std::size_t k) const { return "n" + std::to_string(symbolic_.size() + k); }
  std::vector<Dim> symbolic_;
};

// With `splits` the last two buffers are the result and the memory for the splits' partial results, else the result
// alone.
std::string attention_text(const lowering::Attention& a, const AttentionSizes& sizes, const AttentionTile& tile,
                           const AttentionTarget& target, bool splits, std::string_view name);
// Buffers: that memory, and the result.
std::string join_text(const lowering::Attention& a, const AttentionSizes& sizes, const AttentionTarget& target,
                      std::string_view name);
int join_threads(const lowering::Attention& a, const AttentionTarget& target);

}  // namespace lc::backends::gpu
