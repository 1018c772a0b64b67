// Rematerialisation: a training step within a budget of memory, for some more arithmetic.
//
//   Program p = compile(g, remat({.bytes = 600 << 20}, generic() | cpu()));   // p.plan().total_bytes() is no more
//
// Values of the forward pass that the backward pass reads are computed again there instead of being kept. What is
// tried, in this order, each compiled by `then` and judged by its exact plan:
//   nothing
//   cheap values again, all but the results of products, convolutions, gathers and sorts: of the first layers, then of
//   more (what JAX calls dots_saveable) whole segments again from the few values that lie between them: one more
//   forward pass (T. Chen et al., "Training deep nets with sublinear memory cost", 2016)
// What a user chooses by hand is checkpoint() (lightcone/autograd/checkpoint.h).
#pragma once

#include <cstddef>

#include "lightcone/passes/compiler.h"

namespace lc {

struct RematOptions {
  std::size_t bytes;  // at most, of all that Program::plan() counts: values, parameters, states, inputs
};
// Error where no choice fits; it says how little is enough. Stands in front, as gradients() marks where the backward
// pass begins; a graph without gradients is left as it is.
Compiler remat(const RematOptions& o, const Compiler& then);

}  // namespace lc
