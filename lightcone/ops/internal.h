// Helpers shared by the files of this folder.
#pragma once

#include <algorithm>
#include <cmath>

#include "lightcone/core/composite.h"
#include "lightcone/ops/ops.h"

namespace lc::definitions {
Tensor expand_to(Tensor t, const Shape& shape);  // composites/layers.h
}  // namespace lc::definitions

namespace lc::detail {

Axes wrap_axes(Axes axes, const Operand& a, const char* op);  // sorted; all axes if none are given
DType promote(DType a, DType b);
DType result_type(const Tensor& a, const Tensor& b);  // torch.result_type
Shape broadcast(const Shape& a, const Shape& b, const char* op);
using definitions::expand_to;
Tensor as_float(Tensor t);  // converts integers to f32
// Makes a function of several operations compute 16-bit floats in f32 and round once, as PyTorch does. Put it first in
// a function of `a` that returns the type of `a`; `call` is the recursive call to return.
#define LC_RETURN_IF_HALF(a, call)                        \
  if (const DType half = (a)->dtype(); is_narrow(half)) { \
    (a).tensor = prim::cast(a, DType::F32);               \
    return prim::cast(call, half);                        \
  }
#define LC_RETURN_IF_EITHER_HALF(a, b, call)                           \
  if (const DType half = detail::result_type(a, b); is_narrow(half)) { \
    (a).tensor = prim::cast(a, DType::F32);                            \
    (b).tensor = prim::cast(b, DType::F32);                            \
    return prim::cast(call, half);                                     \
  }
struct Pair {
  Tensor a, b;
};
Pair promoted(const Operand& a, const Operand& b, const char* op);  // to one shape and dtype
Pair promoted(const TensorOrNumber& a, const TensorOrNumber& b, const char* op);
Tensor number_like(const Tensor& t, Scalar v);  // in t's dtype; integers wrap
inline Tensor neg(const Tensor& t) { return prim::mul(t, number_like(t, -1)); }
inline Tensor add(const Tensor& t, double v) { return prim::add(t, number_like(t, v)); }
inline Tensor mul(const Tensor& t, double v) { return prim::mul(t, number_like(t, v)); }
// Marks an index that must lie in [0, below), for checked programs.
Tensor in_range(const Tensor& index, const Dim& below);
inline std::size_t u(int i) { return static_cast<std::size_t>(i); }
std::int64_t known(const Dim& d, const char* op);    // throws Error for a symbolic extent
Operand batch_of_one(const Operand& x);              // adds a leading axis of extent 1
int spatial_axes(const Operand& x, const char* op);  // 1 to 3 axes after batch and channels
std::vector<int> per_axis(std::vector<int> v, int n, const char* op, const char* what);
Tensor windows(Tensor x, int n, const std::vector<Dim>& kernel, const std::vector<int>& stride,
               const std::vector<int>& dilation);
// exp() for softmax, of a difference from the maximum: 2^(t log2 e). The rounding error of t grows only as the result
// shrinks.
Tensor exp_of_difference(const Tensor& t);
// PyTorch accepts axis 0 and -1 of a scalar: it is reshaped to [1], and the result back to a scalar.
// LC_RETURN_IF_NUMBER does so like LC_RETURN_IF_HALF.
inline bool is_number(const Operand& a, int axis) { return a->rank() == 0 && (axis == 0 || axis == -1); }
inline Tensor row_of(const Tensor& number) { return number.rank() == 0 ? number.reshape({1}) : number; }
inline Tensor number_of(const Tensor& row) { return row.reshape({}); }
template <class Two>
Two number_of(Two rows) {
  rows.values = rows.values.reshape({}), rows.indices = rows.indices.reshape({});
  return rows;
}
#define LC_RETURN_IF_NUMBER(a, axis, call) \
  if (detail::is_number(a, axis)) {        \
    (a).tensor = detail::row_of(a);        \
    return detail::number_of(call);        \
  }
// A float as mantissa * 2^exponent (an integer), so that a long product overflows only if its result does.
struct Scaled {
  Tensor mantissa, exponent;
};
Scaled scaled(const Tensor& x);
Scaled times(const Scaled& a, const Scaled& b);
Tensor number(const Scaled& s);
Tensor reduce(Op op, Tensor t, const Axes& axes, bool keepdim);
// Clamps x to [low, high]. As in PyTorch, the derivative is 0 at both ends as well.
Tensor between(const Operand& x, std::optional<Scalar> low, std::optional<Scalar> high, const char* op);
// Returns y, the maximum of x over an axis (removed or kept), with its gradient assigned to the first maximum.
Tensor with_vjp_of_first(const Tensor& y, const Tensor& x, int axis);
// Returns y, an elementwise function of x, with `slope` as its derivative; see with_vjp(). The rule must use only its
// arguments and hold no tensors, because the graph may be cloned.
Tensor with_derivative(const Tensor& y, const Tensor& x, Tensor (*slope)(const Tensor& x, const Tensor& y));
// The standard normal CDF of f32 (torch.special.ndtr), the factor in gelu. It avoids the separate roundings of x /
// sqrt(2), erf and 1 + erf, whose error for x < 0 is many units of the result.
Tensor normal_cdf_f32(const Tensor& x);

}  // namespace lc::detail
