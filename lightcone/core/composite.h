// Composites as values: operations that the twelve can say but a device may know better.
//
// A composite has a name, a rule for the shapes of its results and a definition in the twelve (and in other
// composites). The reference evaluates the definition, or a rule of the composite's own where arithmetic cannot say
// exactly what is meant (an infinity in a row that is not gathered); a device runs a kernel of its own, or the
// definition. Users declare theirs as the built-in ones in composites/ are declared: docs/adding-an-operation.md.
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

// What a rule of differentiation sees of one call.
struct VjpCall {
  const Attributes& attributes;
  std::span<const Tensor> in, out;
  std::span<const Tensor> cotangents;  // of the results; undefined where nothing that counts reads one
  const std::vector<bool>& wanted;     // which operands' cotangents are asked for
  const Tensor& x() const { return in[0]; }
  const Tensor& y() const { return out[0]; }
  const Tensor& g() const { return cotangents[0]; }
};
// The vector-Jacobian product of a function (jax.vjp, the backward() of torch.autograd.Function): the cotangents of the
// operands, with their shapes and element types; undefined where there is none, or none was asked for.
using Vjp = std::function<std::vector<Tensor>(const VjpCall&)>;

// One step of a loop, as a graph of its own. Its inputs are the states, then slices of this step, then what the loop
// captured (as parameters, for they stay the same); its outputs the next states, then the ys. Operands of the
// composite: initial states, xs, captures; its results: last states, ys and, where it keeps them, the states before
// each step, stacked.
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
  // Element types and shapes of the results; where the operands do not fit an Error, which may leave out the name.
  std::function<std::vector<TensorType>(const Attributes&, std::span<const TensorType> operands)> infer;
  // The results in the twelve; `in` have the types that infer() was asked about.
  std::function<std::vector<Tensor>(const Attributes&, std::span<const Tensor> in)> define;
  std::shared_ptr<const ReferenceRule> reference = {};          // none: the definition is evaluated
  Vjp vjp = {};                                                 // none: the definition is differentiated
  std::vector<std::shared_ptr<const KernelRule>> kernels = {};  // at most one a device
  std::shared_ptr<const LoopBody> loop = {};                    // what it does once a step; define() unrolls it
};
using CompositeRef = std::shared_ptr<const Composite>;

// The composite applied to operands of one graph: its results.
std::vector<Tensor> call(const CompositeRef& c, std::vector<Tensor> in, Attributes attributes = {},
                         const SourceLocation& at = SourceLocation::current());

// Says how `y`, a function of `in` that was written in several nodes, is differentiated, where its nodes would give
// something dearer or less exact. It leaves no trace in the graph's nodes; gives y.
struct Derivative {
  std::vector<Edge> in;
  Vjp vjp;
};
Tensor with_vjp(const Tensor& y, const std::vector<Tensor>& in, Vjp vjp);

std::vector<Dim> extents(const Attributes& a);  // the attributes that are extents, in order
inline bool is(const Node& n, const CompositeRef& c) { return n.composite == c; }

// Several results lie behind each other in the value of their node, each from a multiple of 64 bytes on, as far apart
// as the largest sizes need. The last one is where all end.
std::vector<std::int64_t> result_offsets(std::span<const TensorType> results);

}  // namespace lc
