// Derivatives as graph code: these functions append the nodes of a derivative to the graph of their operands, written
// in the ordinary tensor vocabulary. So derivatives are fused, planned, verified and differentiated again like any
// other code.
//
//   Tensor loss = cross_entropy(model(x), labels);
//   std::vector<Tensor> d = gradients(loss, {w, b});         // torch.autograd.grad
//
// Each operation has one rule (rules.cpp; Composite::vjp for a composite, or else its definition is differentiated),
// each move of a view one transpose (views.cpp). At points without a derivative the subgradient is PyTorch's: relu is
// flat at 0; maximum and amax split the gradient evenly among equal elements; max(x, axis), sort and topk give it to
// the element they chose; clamp is flat at its ends, too.
#pragma once

#include <string>
#include <vector>

#include "lightcone/core/composite.h"
#include "lightcone/core/tensor.h"
#include "lightcone/passes/compiler.h"

namespace lc {

struct GradientOptions {
  bool allow_unused = false;  // zeros for tensors that the loss does not depend on, instead of an Error
};

// The gradients of `loss` (one floating element) with respect to `wrt`: tensors of this graph read through the identity
// view. Each gradient has the shape and the element type of its tensor. Throws Error if the loss does not depend on a
// tensor; the message names the operation that cuts the path. Equivalent to torch.autograd.grad.
std::vector<Tensor> gradients(Operand loss, const std::vector<Tensor>& wrt, const GradientOptions& o = {});
// The gradient with respect to one tensor; see gradients().
Tensor gradient(Operand loss, const Tensor& wrt, const GradientOptions& o = {});

// The vector-Jacobian product (torch.func.vjp): the gradient of the sum over k of <cotangents[k], outputs[k]> with
// respect to `wrt`. Each cotangent has its output's shape and element type. Throws Error for types or shapes that do
// not fit and for tensors that the outputs do not depend on.
std::vector<Tensor> vjp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& wrt,
                        const std::vector<Tensor>& cotangents, const GradientOptions& o = {},
                        const SourceLocation& at = SourceLocation::current());
// The Jacobian-vector product (torch.func.jvp): the derivative of each output as each of `wrt` moves along its tangent.
// Throws Error if a tangent does not have the shape and element type of its tensor.
std::vector<Tensor> jvp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& wrt,
                        const std::vector<Tensor>& tangents, const SourceLocation& at = SourceLocation::current());
// The product of the Hessian of `loss` and `v`, computed without the Hessian (torch.autograd.functional.hvp).
std::vector<Tensor> hvp(Operand loss, const std::vector<Tensor>& wrt, const std::vector<Tensor>& v);

// Returns x and stops gradients (Tensor.detach()).
Tensor stop_gradient(Operand x);
// Returns y, computed from `in`, with a user-defined derivative (torch.autograd.Function). Examples are
// straight-through estimators, gradient reversal and clipping inside a network.
Tensor custom_gradient(Operand y, const std::vector<Tensor>& in, Vjp vjp);

// A compiler, to be put before all others, that adds an output "grad.<name>" with the gradient of the output `loss` for
// each floating parameter (or the named ones). Throws Error if a name does not exist.
Compiler autograd(std::string loss, std::vector<std::string> parameters = {});

}  // namespace lc
