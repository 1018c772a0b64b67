// The kernels of attention as text, one for all languages: scores are never in memory.
//
//   attention_text: for each tile of keys the scores of all rows, on their way through the steps, the running maximum
//   and sum (online softmax, powers of 2), and the weighted values, all in f32; by tensor cores what is multiplied is
//   bf16. A tile of keys that a mask hides from all rows is passed over where that cannot be seen in the result: a
//   hidden value is multiplied by zero, which is NaN for what is not finite, so values are looked at all the same.
//   join_text: what several splits of the keys have arrived at, in their order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lightcone/backends/gpu/attention/tile.h"

namespace lc::backends::gpu {

// What the kernels are told of a run: every expression of the layout that is no number, and what enqueue() chooses.
class AttentionSizes {
 public:
  explicit AttentionSizes(lowering::AttentionLayout<Dim> layout);
  const std::vector<Dim>& symbolic() const { return symbolic_; }
  std::string text(const Dim& d) const;  // a literal or the name of an argument
  std::size_t count() const { return symbolic_.size() + 4; }
  std::string rows() const { return own(0); }
  std::string blocks() const { return own(1); }  // of rows, in a batch
  std::string splits() const { return own(2); }
  std::string split() const { return own(3); }  // keys of one

 private:
  std::string own(std::size_t k) const { return "n" + std::to_string(symbolic_.size() + k); }
  std::vector<Dim> symbolic_;
};

// With `splits` its last two places are the result and the memory for what splits arrive at, else the result alone.
std::string attention_text(const lowering::Attention& a, const AttentionSizes& sizes, const AttentionTile& tile,
                           const AttentionTarget& target, bool splits, std::string_view name);
// Places: that memory, and the result.
std::string join_text(const lowering::Attention& a, const AttentionSizes& sizes, const AttentionTarget& target,
                      std::string_view name);
int join_threads(const lowering::Attention& a, const AttentionTarget& target);

}  // namespace lc::backends::gpu
