// Memory for time: what lies between the operands and the result of a function is not kept for the backward pass, but
// computed again there (torch.utils.checkpoint).
//
//   Tensor h = checkpoint([&](const Tensor& x) { return block(x); }, x);
//
// Gradients are the same: of the operands, and of whatever else the function reads, parameters too. Random numbers are
// drawn again with the same words. remat() chooses what to compute again by itself.
#pragma once

#include <type_traits>
#include <utility>

#include "lightcone/core/tensor.h"

namespace lc {

// `y` is computed again in the backward pass from nodes older than `begin` (a Graph::size() from before it was
// written).
void recompute_in_backward(const Tensor& y, std::size_t begin);

// f(x, more...), a tensor.
template <class F, class X, class... More>
auto checkpoint(F&& f, const X& x, const More&... more) {
  const std::size_t begin = x.graph().size();
  auto y = std::forward<F>(f)(x, more...);
  static_assert(std::is_base_of_v<Tensor, decltype(y)>, "checkpoint: the function gives one tensor");
  recompute_in_backward(y, begin);
  return y;
}

}  // namespace lc
