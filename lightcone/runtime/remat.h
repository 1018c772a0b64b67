// Rematerialisation: runs a training step within a memory budget at the cost of some recomputation.
//
//   Program p = compile(g, remat({.bytes = 600 << 20}, generic() | cpu()));   // p.plan().total_bytes() is no more
//
// Values of the forward pass that the backward pass reads are recomputed there instead of being kept. Candidates are
// tried in this order, each compiled by `then` and judged by its exact memory plan:
//   1. Nothing is recomputed.
//   2. Cheap values are recomputed, all but the results of products, convolutions, gathers and sorts: of the first
//      layers, then of more (what JAX calls dots_saveable).
//   3. Whole segments are recomputed from the few values between them. This costs one more forward pass
//      (T. Chen et al., "Training deep nets with sublinear memory cost", 2016).
// checkpoint() (lightcone/autograd/checkpoint.h) lets the user choose by hand.
#pragma once

#include <cstddef>

#include "lightcone/passes/compiler.h"

namespace lc {

struct RematOptions {
  std::size_t bytes;  // upper bound of Program::plan().total_bytes(): values, parameters, states, inputs
};
// Returns a compiler that rematerialises and then applies `then`. It comes first in a chain, because gradients() marks
// where the backward pass begins. A graph without gradients is not changed. Throws Error if no candidate fits; the
// message has the smallest budget that was reached.
Compiler remat(const RematOptions& o, const Compiler& then);

}  // namespace lc
