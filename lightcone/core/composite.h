// Composites as values: operations with a definition in primitives that a device may replace by a kernel.
//
// A composite has a name, a shape-inference rule for its results and a definition in primitives and other composites.
// The reference evaluates the definition, or the composite's own rule if arithmetic cannot express the exact meaning
// (an infinity in a row that is not gathered). A device runs its own kernel or the definition. Users declare composites
// like the built-in ones (composites/composites.h): docs/adding-an-operation.md.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lightcone/core/tensor.h"

namespace lc {

struct ReferenceRule;  // reference/rule.h
struct KernelRule;     // device/kernel_rule.h

// The arguments of a vector-Jacobian product rule for one call.
struct VjpCall {
  const Attributes& attributes;
  std::span<const Tensor> in, out;
  std::span<const Tensor> cotangents;  // one per result; undefined if the loss does not depend on it
  const std::vector<bool>& wanted;     // true for operands that need a cotangent
  const Tensor& x() const { return in[0]; }
  const Tensor& y() const { return out[0]; }
  const Tensor& g() const { return cotangents[0]; }
};
// The vector-Jacobian product of a function (jax.vjp, backward() of torch.autograd.Function). Returns the cotangents of
// the operands, with their shapes and element types; undefined if there is none or it is not wanted.
using Vjp = std::function<std::vector<Tensor>(const VjpCall&)>;

// A loop body: one step as a graph of its own. Its inputs are the states, this step's slices and the captures (as
// parameters, because they are loop-invariant); its outputs are the next states, then the ys. The composite's operands
// are the initial states, xs and captures. Its results are the last states, the ys and, if `keeps`, the stacked states
// before each step.
struct LoopBody {
  Graph graph;
  std::vector<NodeId> inputs;
  std::size_t states = 0, slices = 0, captures = 0, ys = 0;
  std::int64_t length = 0;
  bool reverse = false, keeps = true;
  std::int64_t slice_of(std::int64_t step) const { return reverse ? length - 1 - step : step; }
};

struct Composite {
  std::string name;
  int arity = 1;
  int optional = 0;  // how many of the last operands a call may leave out
  // Infers element types and shapes of the results. Throws Error if operands do not fit; it may omit the name.
  std::function<std::vector<TensorType>(const Attributes&, std::span<const TensorType> operands)> infer;
  // Builds the results from primitives; `in` has the types that infer() received.
  std::function<std::vector<Tensor>(const Attributes&, std::span<const Tensor> in)> define;
  std::shared_ptr<const ReferenceRule> reference = {};          // null: evaluate the definition
  Vjp vjp = {};                                                 // null: differentiate the definition
  std::vector<std::shared_ptr<const KernelRule>> kernels = {};  // at most one per device
  std::shared_ptr<const LoopBody> loop = {};                    // the body of a loop; define() unrolls it
  // Whether generic() and every device put the definition in its place: then the name serves those who read graphs
  // (printers, exporters), and compilers fuse and rewrite the definition as if it had been written out.
  bool transparent = false;
};
using CompositeRef = std::shared_ptr<const Composite>;

// Applies the composite to operands of one graph and returns its results.
std::vector<Tensor> call(const CompositeRef& c, std::vector<Tensor> in, Attributes attributes = {},
                         const SourceLocation& at = SourceLocation::current());

// A gradient rule attached to a value that several nodes compute.
struct Derivative {
  std::vector<Edge> in;
  Vjp vjp;
};
// Attaches `vjp` as the gradient of `y` as a function of `in`, if differentiating its nodes would be more expensive or
// less accurate. The graph's nodes do not change; returns y.
Tensor with_vjp(const Tensor& y, const std::vector<Tensor>& in, Vjp vjp);

std::vector<Dim> extents(const Attributes& a);  // the Dim attributes, in order
inline bool is(const Node& n, const CompositeRef& c) { return n.composite == c; }

// Byte offsets of several results in one buffer: each starts at a multiple of 64 bytes, spaced for the largest sizes.
// The last entry is the total size. Throws Error for results without an upper bound on their size.
std::vector<std::int64_t> result_offsets(std::span<const TensorType> results);

}  // namespace lc
