// More of PyTorch's elementwise functions and statistics: torch.special, bits, NaN-aware reductions, order statistics,
// histograms, covariance.
//
// Operands broadcast and promote; integers become f32 unless the result is an integer; 16-bit floats are computed in
// f32 and rounded once. An axis may be negative. A function that is not differentiable has derivative 0, or none.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/core/composite.h"
#include "lightcone/ops/ops.h"

namespace lc {

// ---- functions ----------------------------------------------------------------------------------

// log |Gamma(x)|: infinite at 0 and negative integers.
Tensor lgamma(Operand a);
Tensor digamma(Operand a);  // derivative of lgamma(); -infinity at 0, infinity at -0, NaN at negative integers
// The n-th derivative of digamma(), n >= 0: infinite at 0, NaN at negative integers (infinite in PyTorch).
Tensor polygamma(int n, Operand a);
Tensor erfinv(Operand a);  // erf(erfinv(x)) = x; infinite at -1 and 1, NaN beyond
Tensor i0(Operand a);      // modified Bessel function of order 0; infinite at infinity (PyTorch: NaN)
Tensor sinc(Operand a);    // sin(pi x) / (pi x), 1 at 0
Tensor deg2rad(Operand a);
Tensor rad2deg(Operand a);
Tensor ldexp(Operand a, Operand exponent);  // a 2^exponent
// {mantissa, exponent} with a = mantissa 2^exponent, |mantissa| in [0.5, 1) and i32 exponent; {a, 0} if a is 0,
// infinite or NaN. The mantissa's derivative is 2^-exponent.
std::pair<Tensor, Tensor> frexp(Operand a);
Tensor addcmul(Operand input, Operand a, Operand b, double value = 1);  // input + value a b
Tensor addcdiv(Operand input, Operand a, Operand b, double value = 1);  // input + value a / b; floating types only
Tensor copysign(Operand a, Operand sign);  // |a| with the other's sign, also for its zeros (not its NaNs)
Tensor copysign(Operand a, double sign);
Tensor nextafter(Operand a, Operand towards);  // the next representable number towards the other
Tensor heaviside(Operand a, Operand values);   // 0 below 0, 1 above, `values` at 0
Tensor fmax(Operand a, Operand b);             // the maximum, preferring numbers over NaN
Tensor fmin(Operand a, Operand b);
// |a - b| <= atol + rtol |b|, or equal, as bool; infinities are close only to themselves.
Tensor isclose(Operand a, Operand b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
Tensor allclose(Operand a, Operand b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);  // bool []

// ---- bits: two's complement integers and bool ------------------------------------------------------
Tensor bitwise_not(Operand a);
Tensor bitwise_and(Operand a, Operand b);
Tensor bitwise_or(Operand a, Operand b);
Tensor bitwise_xor(Operand a, Operand b);
// Shifts by fewer places than there are bits. For other counts (negative ones, too) the result is PyTorch's: 0 to the
// left; to the right the sign, which for unsigned types is 0. A constant count becomes a multiplication or division,
// which compilers turn into a shift. Throws Error for bool.
Tensor bitwise_left_shift(Operand a, Operand places);
Tensor bitwise_right_shift(Operand a, Operand places);
Tensor gcd(Operand a, Operand b);  // for integers; not negative
Tensor lcm(Operand a, Operand b);
// PyTorch's view(dtype): reinterprets each element's bits as another type of the same size (f32 with i32 and u32, f16
// and bf16 with i16 and u16, f64 with i64 and u64, integers with each other). f16 and bf16 are computed in f32, so
// their NaNs lose the payload; sign and payload of a computed NaN depend on the processor. No derivative.
Tensor bitcast(Operand a, DType to);
// The number of set bits of an integer, in its type.
Tensor population_count(Operand a);
Tensor count_leading_zeros(Operand a);  // the number of bits if it is 0

// ---- ignoring NaN ---------------------------------------------------------------------------------
Tensor nansum(Operand a, Axes axes = {}, bool keepdim = false);
Tensor nanmean(Operand a, Axes axes = {}, bool keepdim = false);  // NaN if there are only NaNs

// ---- order --------------------------------------------------------------------------------------
// The lower median of all elements; NaN if any is NaN. Equal elements split its gradient.
Tensor median(Operand a);
Tensor nanmedian(Operand a);  // median of the elements that are not NaN
// The median along an axis and its index: the first of equal elements.
Extreme median(Operand a, int axis, bool keepdim = false);
// Like median() along an axis, ignoring NaN.
Extreme nanmedian(Operand a, int axis, bool keepdim = false);
// The k-th smallest element, counted from 1, and its index; NaN sorts last.
Extreme kthvalue(Operand a, std::int64_t k, int axis = -1, bool keepdim = false);
// The most frequent element, the smallest if several, and the index of its last occurrence. Work is n^2 in the axis.
Extreme mode(Operand a, int axis = -1, bool keepdim = false);
// Interpolates between the elements next to q (n - 1): "linear", "lower", "higher", "nearest" or "midpoint". Several q
// form a new first axis. A NaN element gives NaN; nanquantile() ignores it. Without an axis, a is flattened. q is in
// [0, 1]; as a tensor it has a's type and is a vector or a scalar, in which other values give NaN.
Tensor quantile(Operand a, Operand q, std::optional<int> axis = {}, bool keepdim = false,
                std::string_view interpolation = "linear");
Tensor quantile(Operand a, double q, std::optional<int> axis = {}, bool keepdim = false,
                std::string_view interpolation = "linear");
Tensor quantile(Operand a, const std::vector<double>& q, std::optional<int> axis = {}, bool keepdim = false,
                std::string_view interpolation = "linear");
Tensor nanquantile(Operand a, Operand q, std::optional<int> axis = {}, bool keepdim = false,
                   std::string_view interpolation = "linear");
Tensor nanquantile(Operand a, double q, std::optional<int> axis = {}, bool keepdim = false,
                   std::string_view interpolation = "linear");
// The insertion index of each of values [.., m] in sorted [.., n] (or [n], for values of any shape): the number of
// smaller elements, or with `right` of elements not larger. i64 like values. NaN is largest.
Tensor searchsorted(Operand sorted, Operand values, bool right = false);
Tensor bucketize(Operand values, Operand boundaries, bool right = false);  // searchsorted() in ascending boundaries

// Tests which elements occur in test_elements: bool like `elements`. NaN never occurs.
Tensor isin(Operand elements, Operand test_elements, bool invert = false);

// ---- counting -----------------------------------------------------------------------------------

// Counts elements in `bins` equal parts of [min, max], a's type [bins]. If min = max, uses the range of a's elements
// (extended by one on each side if that is empty). Other elements and NaN are not counted.
Tensor histc(Operand a, std::int64_t bins = 100, double min = 0, double max = 0);
// Counts 0, 1, ... up to `length` in ids (integers, rank 1): i64 [length], or the sums of their weights. PyTorch's
// minlength is static here: larger and negative ids are ignored.
Tensor bincount(Operand ids, Dim length);
Tensor bincount(Operand ids, Operand weights, Dim length);  // in the type of the weights; f64 for integers

// ---- statistics and grids -------------------------------------------------------------------------

// The covariance matrix of floating variables [variables, observations] (or of one variable [observations]).
Tensor cov(Operand a, int correction = 1);
Tensor corrcoef(Operand a);                                 // correlation coefficients, in [-1, 1]
Tensor trapezoid(Operand y, double dx = 1, int axis = -1);  // the area below points dx apart
Tensor trapezoid(Operand y, Operand x, int axis = -1);      // the area below points at x: [n], or broadcasting with y
Tensor cumulative_trapezoid(Operand y, double dx = 1, int axis = -1);  // n - 1 running areas
Tensor cumulative_trapezoid(Operand y, Operand x, int axis = -1);
// `steps` numbers from base^from to base^to, with evenly spaced exponents.
Tensor logspace(Graph& g, double from, double to, int steps, double base = 10, DType dtype = DType::F32,
                const Tensor::At& at = Tensor::At::current());
// Grids of vectors (or scalars): element [i, j, ..] of the k-th result is element (i, j, ..)[k] of the k-th vector.
// With "xy" the first two axes are swapped.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, std::string_view indexing = "ij",
                             const Tensor::At& at = Tensor::At::current());

}  // namespace lc
#include "lightcone/macros_on.h"
