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
// The function writes graph code. It is called once, before anything runs, and what it wrote is one node of the graph:
// a device compiles it once and runs it once a step, or unrolls it. (With symbolic extents it is unrolled at once.) It
// may read tensors from outside of it, which stay the same from step to step, random numbers among them: draw what
// should differ outside, for all steps. Derivatives go through all of it (autograd/loops.cpp): the backward pass is a
// scan, too, and computes a step again from its state.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lightcone/core/composite.h"
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
  // Keep the states before each step for the derivative? Without them it runs the loop once more: for functions that
  // have a derivative of their own.
  bool keep_states = true;
};

// For k = 0, 1, ... or backwards: {state, ys[k]} = f(state, xs[k]), where xs[k] is slice k of axis 0 of every one of
// xs. Gives the states behind the last step, and every y stacked on a new axis 0. Without any step (length 0) that is
// `state` as it was given and ys of extent 0, whose shape f is asked for with zeros.
//
// An Error where xs differ in their length, where the length is not a number, where f gives another number of states,
// another shape or another dtype than the state had, or a y that differs from step to step.
Scanned scan(const ScanBody& f, std::vector<Tensor> state, std::vector<Tensor> xs, const ScanOptions& o = {},
             const Tensor::At& at = Tensor::At::current());

// While `condition` of the state (bool, a scalar) holds: state = body(state), at most `max_steps` times
// (jax.lax.while_loop, torch.while_loop, with a bound). Gives the last state. It is a scan whose state stays once the
// condition fails, so it has derivatives; a device stops as soon as a step changes nothing.
using WhileCondition = std::function<Tensor(const std::vector<Tensor>& state)>;
using WhileBody = std::function<std::vector<Tensor>(const std::vector<Tensor>& state)>;
std::vector<Tensor> while_loop(const WhileCondition& condition, const WhileBody& body, std::vector<Tensor> state,
                               std::int64_t max_steps, const Tensor::At& at = Tensor::At::current());

// ---- for autograd and devices ---------------------------------------------------------------------

std::vector<Tensor> call_loop(const std::shared_ptr<const LoopBody>& body, std::vector<Tensor> operands);
// The outputs of a body for these inputs, appended to their graph, with the derivatives that its operations have.
// `replaced` are nodes of the body, and what stands in their place.
std::vector<Tensor> instantiate(const LoopBody& body, std::span<const Tensor> inputs, Graph& g,
                                const std::map<NodeId, Tensor>& replaced = {});

// What scan() makes of a function before it is a node.
struct TracedLoop {
  std::shared_ptr<LoopBody> body;
  std::vector<Tensor> operands;  // initial states, xs, captures
};
TracedLoop trace_loop(const ScanBody& f, std::vector<Tensor> state, std::vector<Tensor> xs, std::int64_t length);

}  // namespace lc
