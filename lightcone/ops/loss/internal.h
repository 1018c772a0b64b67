// Helpers shared by the losses.
#pragma once

#include "lightcone/core/composite.h"
#include "lightcone/ops/internal.h"
#include "lightcone/ops/loss.h"

namespace lc::detail {

// Reduces the losses of all elements, or returns them unchanged.
Tensor reduced(const Tensor& losses, Reduction reduction, const char* op);
// Throws Error unless `t` is floating.
void must_be_floating(const Operand& t, const char* op, const char* what);
// Throws Error unless both shapes are equal.
void must_match(const Operand& input, const Operand& other, const char* op, const char* what);
// Checks that both are floating with one shape and converts them to one type.
Pair compared(const Operand& input, const Operand& target, const char* op);
void must_be_positive(double v, const char* op, const char* option);
// Broadcasts an option to the shape of `t` and converts it to its type.
Tensor spread(const Tensor& option, const Tensor& t, const char* op, const char* what);
// p x, but 0 where p is 0 and x is -inf: the limit of p log p.
Tensor times_logarithm(const Tensor& p, const Tensor& x);
inline Tensor zeros_like(const Tensor& t) { return full_like(t, 0); }
inline Tensor positive_part(const Tensor& t) { return prim::maximum(t, zeros_like(t)); }
inline Tensor minus(const Tensor& a, const Tensor& b) { return prim::add(a, neg(b)); }

}  // namespace lc::detail
