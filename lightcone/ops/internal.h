// Shared by the files of this folder.
#pragma once

#include <algorithm>
#include <cmath>

#include "lightcone/core/composite.h"
#include "lightcone/ops/ops.h"

namespace lc::detail {

Axes wrap_axes(Axes axes, const Operand& a, const char* op);  // sorted, all when none are given
DType promote(DType a, DType b);
DType result_type(const Tensor& a, const Tensor& b);  // torch.result_type
Shape broadcast(const Shape& a, const Shape& b, const char* op);
Tensor expand_to(Tensor t, const Shape& shape);  // right-aligned, no check
Tensor as_float(Tensor t);                       // integers as f32
// What takes several operations computes halves in f32 and rounds once, as PyTorch does: in a function of `a` whose
// result has the type of `a`, before its first step. `call` is the function itself, and its result is returned.
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
Pair promoted(const Operand& a, const Operand& b, const char* op);  // one shape, one dtype
Pair promoted(const TensorOrNumber& a, const TensorOrNumber& b, const char* op);
Tensor number_like(const Tensor& t, Scalar v);  // of t's dtype; integers wrap around
inline Tensor neg(const Tensor& t) { return prim::mul(t, number_like(t, -1)); }
inline Tensor add(const Tensor& t, double v) { return prim::add(t, number_like(t, v)); }
inline Tensor mul(const Tensor& t, double v) { return prim::mul(t, number_like(t, v)); }
// An index that ought to lie in [0, below), marked for programs that are checked.
Tensor in_range(const Tensor& index, const Dim& below);
inline std::size_t u(int i) { return static_cast<std::size_t>(i); }
std::int64_t known(const Dim& d, const char* op);    // an extent that has to be a number
Operand batch_of_one(const Operand& x);              // with an axis of one in front
int spatial_axes(const Operand& x, const char* op);  // 1 to 3, behind batch and channels
std::vector<int> per_axis(std::vector<int> v, int n, const char* op, const char* what);
Tensor windows(Tensor x, int n, const std::vector<Dim>& kernel, const std::vector<int>& stride,
               const std::vector<int>& dilation);
// The exponential inside a softmax, of a difference from the largest: 2^(t log2 e), where t rounds the more the less it
// counts.
Tensor exp_of_difference(const Tensor& t);
// A number has no axes, but torch takes 0 and -1 of it: it is as a row of one, whose result is a number again. `call`
// is the function itself, as with LC_RETURN_IF_HALF.
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
// A float as mantissa 2^exponent (an integer), so that a product of many overflows only where the whole does.
struct Scaled {
  Tensor mantissa, exponent;
};
Scaled scaled(const Tensor& x);
Scaled times(const Scaled& a, const Scaled& b);
Tensor number(const Scaled& s);
Tensor reduce(Op op, Tensor t, const Axes& axes, bool keepdim);
// The element of [low, high] next to x. As in torch the derivative is 0 at the two ends as well.
Tensor between(const Operand& x, std::optional<Scalar> low, std::optional<Scalar> high, const char* op);
// y, the maximum of x over an axis (which may be gone), whose derivative belongs to the first of the largest.
Tensor with_vjp_of_first(const Tensor& y, const Tensor& x, int axis);
// y, a function of each element of x, whose derivative is `slope`: see with_vjp(). A rule finds its tensors in what it
// is given and holds none, because the graph may be cloned.
Tensor with_derivative(const Tensor& y, const Tensor& x, Tensor (*slope)(const Tensor& x, const Tensor& y));
// How likely a normal variable is below x, of f32 (torch.special.ndtr): the factor of gelu, without the roundings that
// x / sqrt(2), erf and 1 + erf have each, which left of 0 are many units of what is left.
Tensor normal_cdf_f32(const Tensor& x);

}  // namespace lc::detail
