// scan: applies a function along an axis, carrying a state from step to step (jax.lax.scan).
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
// The function builds graph code. It is called once, at build time, and the result is one node of the graph, which a
// device compiles once and runs in a loop, or unrolls. (With symbolic extents it is unrolled at once.) It may read
// outside tensors, which are loop-invariant, including random numbers: draw per-step numbers outside, for all steps.
// Everything is differentiable (autograd/loops.cpp): the backward pass is also a scan, which recomputes each step from
// its state.
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
// A step of the loop: maps the current states and this step's slices (without axis 0) to the next states and this
// step's ys.
using ScanBody = std::function<Scanned(const std::vector<Tensor>& state, const std::vector<Tensor>& x)>;

struct ScanOptions {
  bool reverse = false;                     // from the last slice to the first; ys keep the order of xs
  std::optional<std::int64_t> length = {};  // extent of axis 0; required without xs
  // Keeps the states before each step for the derivative, which otherwise runs the loop again. Set it to false for
  // functions with a derivative of their own.
  bool keep_states = true;
};

// Computes {state, ys[k]} = f(state, xs[k]) for k = 0, 1, ... (or backwards), where xs[k] is slice k of axis 0 of each
// of xs. Returns the states after the last step and the ys stacked on a new axis 0. With length 0 it returns `state`
// unchanged and ys of extent 0, whose shapes come from calling f with zeros.
//
// Throws Error if xs differ in length, if the length is not a number, if f changes the number, shape or dtype of the
// states, or if it returns an undefined y.
Scanned scan(const ScanBody& f, std::vector<Tensor> state, std::vector<Tensor> xs, const ScanOptions& o = {},
             const Tensor::At& at = Tensor::At::current());

// Repeats state = body(state) while condition(state), a bool scalar, holds, at most `max_steps` times
// (jax.lax.while_loop, torch.while_loop, with a bound). Returns the last state. It is a scan that keeps its state once
// the condition fails, so it has derivatives; a device stops as soon as a step changes nothing.
using WhileCondition = std::function<Tensor(const std::vector<Tensor>& state)>;
using WhileBody = std::function<std::vector<Tensor>(const std::vector<Tensor>& state)>;
std::vector<Tensor> while_loop(const WhileCondition& condition, const WhileBody& body, std::vector<Tensor> state,
                               std::int64_t max_steps, const Tensor::At& at = Tensor::At::current());

// ---- for autograd and devices ---------------------------------------------------------------------

std::vector<Tensor> call_loop(const std::shared_ptr<const LoopBody>& body, std::vector<Tensor> operands);
// Appends the outputs of a body for these inputs to graph `g`, with the derivatives attached to its operations.
// `replaced` maps nodes of the body to their replacements.
std::vector<Tensor> instantiate(const LoopBody& body, std::span<const Tensor> inputs, Graph& g,
                                const std::map<NodeId, Tensor>& replaced = {});

// The traced function of a scan() before it becomes a node.
struct TracedLoop {
  std::shared_ptr<LoopBody> body;
  std::vector<Tensor> operands;  // initial states, xs, captures
};
TracedLoop trace_loop(const ScanBody& f, std::vector<Tensor> state, std::vector<Tensor> xs, std::int64_t length);

}  // namespace lc
