// Derivatives are graph code: these functions append the nodes of a derivative to the graph of their operands, written
// in the ordinary tensor vocabulary. So derivatives are fused, planned, verified and differentiated again like
// everything else.
//
//   Tensor loss = cross_entropy(model(x), labels);
//   std::vector<Tensor> d = gradients(loss, {w, b});         // torch.autograd.grad
//
// Each operation has one rule (rules.cpp; Composite::vjp for a composite, whose definition is differentiated where
// there is none), each move of a view one transpose (views.cpp). Where a function has no derivative its subgradient is
// PyTorch's: relu is flat at 0, maximum and amax share evenly among equals, max(x, axis), sort and topk give it to the
// element they chose, clamp is flat at its ends, too.
#pragma once

#include <string>
#include <vector>

#include "lightcone/core/composite.h"
#include "lightcone/core/tensor.h"
#include "lightcone/passes/compiler.h"

namespace lc {

struct GradientOptions {
  bool allow_unused = false;  // zeros for what the loss does not depend on, instead of an Error
};

// The gradients of `loss` (one floating element) with respect to `wrt`: tensors of this graph as they are, not views of
// them. Each has the shape and the element type of its tensor. Error for a tensor that the loss does not reach; it
// names the operation that cut the path.
std::vector<Tensor> gradients(Operand loss, const std::vector<Tensor>& wrt, const GradientOptions& o = {});
Tensor gradient(Operand loss, const Tensor& wrt, const GradientOptions& o = {});

// The vector-Jacobian product (torch.func.vjp): of sum over k of <cotangents[k], outputs[k]> with respect to `wrt`.
// A cotangent has its output's shape and element type.
std::vector<Tensor> vjp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& wrt,
                        const std::vector<Tensor>& cotangents, const GradientOptions& o = {},
                        const SourceLocation& at = SourceLocation::current());
// The Jacobian-vector product (torch.func.jvp): by how much each output moves when each of `wrt` moves along its
// tangent.
std::vector<Tensor> jvp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& wrt,
                        const std::vector<Tensor>& tangents, const SourceLocation& at = SourceLocation::current());
// The Hessian of `loss` times `v`, without the Hessian: the jvp of the gradients (torch.autograd.functional.hvp).
std::vector<Tensor> hvp(Operand loss, const std::vector<Tensor>& wrt, const std::vector<Tensor>& v);

// x; no derivative passes through it (Tensor.detach()).
Tensor stop_gradient(Operand x);
// y, which was computed from `in`, with a derivative of the user's (torch.autograd.Function): straight-through
// estimators, gradient reversal, clipping inside a network.
Tensor custom_gradient(Operand y, const std::vector<Tensor>& in, Vjp vjp);

// As a compiler, in front of all others: adds an output "grad.<name>" for the gradient of the output `loss` with
// respect to each floating parameter (or those named).
Compiler autograd(std::string loss, std::vector<std::string> parameters = {});

}  // namespace lc
