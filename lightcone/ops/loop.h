// scan: a function applied along an axis, with a state that goes from step to step (jax.lax.scan).
//
//   // cumulative sums of xs [t, n], and the last one
//   const Scanned r = scan(
//       [](const std::vector<Tensor>& state, const std::vector<Tensor>& x) {
//         const Tensor sum = state[0] + x[0];
//         return Scanned{.state = {sum}, .ys = {sum}};
//       },
//       {zeros}, {xs});
//   r.state[0];  // [n]
//   r.ys[0];     // [t, n]
//
// The function writes graph code: it may be called once or once a step, before anything runs, and must write the same
// whenever it is called. It may read tensors from outside of it. Derivatives go through all of it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lightcone/core/tensor.h"

namespace lc {

struct Scanned {
  std::vector<Tensor> state, ys;
};
// One step: the states as they are and the slices of this step (without axis 0) to the next states and what this step
// gives.
using ScanBody = std::function<Scanned(const std::vector<Tensor>& state, const std::vector<Tensor>& x)>;

struct ScanOptions {
  bool reverse = false;                     // from the last slice to the first; ys stay in the order of xs
  std::optional<std::int64_t> length = {};  // of axis 0; needed where there are no xs
};

// For k = 0, 1, ... or backwards: {state, ys[k]} = f(state, xs[k]), where xs[k] is slice k of axis 0 of every one of
// xs. Gives the states behind the last step, and every y stacked on a new axis 0. Without any step (length 0) that is
// `state` as it was given and ys of extent 0, whose shape f is asked for with zeros.
//
// An Error where xs differ in their length, where the length is not a number, where f gives another number of states,
// another shape or another dtype than the state had, or a y that differs from step to step.
Scanned scan(const ScanBody& f, std::vector<Tensor> state, std::vector<Tensor> xs, const ScanOptions& o = {},
             const Tensor::At& at = Tensor::At::current());

}  // namespace lc
