// Gradient checkpointing, which trades time for memory: intermediate values of a function are not kept for the backward
// pass but recomputed there (torch.utils.checkpoint).
//
//   Tensor h = checkpoint([&](const Tensor& x) { return block(x); }, x);
//
// Gradients do not change, neither of the operands nor of anything else that the function reads, such as parameters.
// Random numbers are recomputed identically. remat() chooses by itself what to recompute.
#pragma once

#include <type_traits>
#include <utility>

#include "lightcone/core/tensor.h"

namespace lc {

// Makes the backward pass recompute `y` from nodes older than `begin` (Graph::size() before `y` was built). Throws
// Error if `y` is one of several results of a single operation.
void recompute_in_backward(const Tensor& y, std::size_t begin);

// Returns f(x, more...), which must be one tensor, and recomputes it in the backward pass.
template <class F, class X, class... More>
auto checkpoint(F&& f, const X& x, const More&... more) {
  const std::size_t begin = x.graph().size();
  auto y = std::forward<F>(f)(x, more...);
  static_assert(std::is_base_of_v<Tensor, decltype(y)>, "checkpoint: the function gives one tensor");
  recompute_in_backward(y, begin);
  return y;
}

}  // namespace lc
