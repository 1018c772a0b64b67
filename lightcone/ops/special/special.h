// The rest of PyTorch's elementwise functions and statistics: torch.special, bits, NaN-aware reductions, order
// statistics, histograms, covariance.
//
// As everywhere operands broadcast and promote, integers become f32 where the result is not whole, halves are computed
// in f32 and rounded once. An axis may be negative. What is not differentiable has a derivative of 0, or none.
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
// log |Gamma(x)|: infinite at 0 and negative whole numbers.
Tensor lgamma(Operand a);
Tensor digamma(Operand a);  // its derivative; -infinity at 0, infinity at -0, NaN at negative whole numbers
// The n-th derivative of digamma(), n >= 0: infinite at 0, NaN at negative whole numbers (infinite in torch).
Tensor polygamma(int n, Operand a);
Tensor erfinv(Operand a);  // erf(erfinv(x)) = x; infinite at -1 and 1, NaN beyond
Tensor i0(Operand a);      // the modified Bessel function of order 0; infinite at infinity (NaN in torch)
Tensor sinc(Operand a);    // sin(pi x) / (pi x), 1 at 0
Tensor deg2rad(Operand a);
Tensor rad2deg(Operand a);
Tensor ldexp(Operand a, Operand exponent);  // a 2^exponent
// {mantissa, exponent}: a = mantissa 2^exponent with |mantissa| in [0.5, 1), exponent i32; {a, 0} where a is 0,
// infinite or NaN. The mantissa's derivative is 2^-exponent.
std::pair<Tensor, Tensor> frexp(Operand a);
Tensor addcmul(Operand input, Operand a, Operand b, double value = 1);  // input + value a b
Tensor addcdiv(Operand input, Operand a, Operand b, double value = 1);  // input + value a / b, of floating types
Tensor copysign(Operand a, Operand sign);  // |a| with the sign of the other, also of its zeros (not of its NaN)
Tensor copysign(Operand a, double sign);
Tensor nextafter(Operand a, Operand towards);  // the next number of the type on the way
Tensor heaviside(Operand a, Operand values);   // 0 below 0, 1 above, `values` at 0
Tensor fmax(Operand a, Operand b);             // the larger; a number rather than NaN
Tensor fmin(Operand a, Operand b);
// |a - b| <= atol + rtol |b|, or equal; infinities are close to themselves alone. bool.
Tensor isclose(Operand a, Operand b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
Tensor allclose(Operand a, Operand b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);  // bool []

// ---- bits: of integers in two's complement and of bool --------------------------------------------
Tensor bitwise_not(Operand a);
Tensor bitwise_and(Operand a, Operand b);
Tensor bitwise_or(Operand a, Operand b);
Tensor bitwise_xor(Operand a, Operand b);
// By fewer places than there are bits; by others (negative ones, too) torch's results: 0 to the left, to the right the
// sign, which of an unsigned type is 0. By a constant a multiplication or division that compilers turn into a shift. No
// bool.
Tensor bitwise_left_shift(Operand a, Operand places);
Tensor bitwise_right_shift(Operand a, Operand places);
Tensor gcd(Operand a, Operand b);  // of integers, not negative
Tensor lcm(Operand a, Operand b);
// torch's view(dtype): the bits of each element as another type of the same size (f32 with i32 and u32, f16 and bf16
// with i16 and u16, f64 with i64 and u64, integers with each other). Numbers of f16 and bf16 are computed in f32, so
// their NaN keeps no payload; sign and payload of any NaN that was computed are the processor's. No derivative.
Tensor bitcast(Operand a, DType to);
// Of an integer's bits, as a number of its type.
Tensor population_count(Operand a);
Tensor count_leading_zeros(Operand a);  // as many as there are bits where it is 0

// ---- without NaN ----------------------------------------------------------------------------------
Tensor nansum(Operand a, Axes axes = {}, bool keepdim = false);
Tensor nanmean(Operand a, Axes axes = {}, bool keepdim = false);  // NaN where there is nothing else

// ---- order --------------------------------------------------------------------------------------
Tensor median(Operand a);  // of all elements, the lower of two; NaN where there is one. Equal ones share its derivative
Tensor nanmedian(Operand a);  // of those that are numbers
// Along an axis, and where it was: the first of equals.
Extreme median(Operand a, int axis, bool keepdim = false);
Extreme nanmedian(Operand a, int axis, bool keepdim = false);
Extreme kthvalue(Operand a, std::int64_t k, int axis = -1, bool keepdim = false);  // the k-th smallest from 1; NaN last
// The most frequent element, the smallest of several; and where the last of them is. In work n^2 of the axis.
Extreme mode(Operand a, int axis = -1, bool keepdim = false);
// "linear", "lower", "higher", "nearest" or "midpoint" between the elements beside q (n - 1). Several q are a new first
// axis. NaN among the elements gives NaN; nanquantile() leaves them out. Without an axis all elements are one row. q in
// [0, 1], of a's type where it is a tensor: a vector or a scalar, in which others give NaN.
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
// Where each of values [.., m] belongs in sorted [.., n] (or [n], for values of any shape): how many are smaller, or
// not larger with `right`. i64 like values. NaN is largest.
Tensor searchsorted(Operand sorted, Operand values, bool right = false);
Tensor bucketize(Operand values, Operand boundaries, bool right = false);  // boundaries [n], ascending

// Which elements are among test_elements: bool like `elements`. NaN is nowhere.
Tensor isin(Operand elements, Operand test_elements, bool invert = false);

// ---- counting -----------------------------------------------------------------------------------
// How many elements lie in each of `bins` equal parts of [min, max], which is the range of a's elements where both are
// the same (and one more to each side where that is empty): a's type [bins]. Others and NaN are not counted.
Tensor histc(Operand a, std::int64_t bins = 100, double min = 0, double max = 0);
// How often 0, 1, ... are in ids (integers, rank 1), up to `length`: i64 [length], or the sums of their weights.
// PyTorch's minlength is static here: larger ids and negative ones are not counted.
Tensor bincount(Operand ids, Dim length);
Tensor bincount(Operand ids, Operand weights, Dim length);  // of the type of the weights; f64 for integers

// ---- statistics and grids -------------------------------------------------------------------------
// The covariance of variables [variables, observations] (or one variable [observations]), floating.
Tensor cov(Operand a, int correction = 1);
Tensor corrcoef(Operand a);  // the same of variables divided by their deviations, within [-1, 1]
Tensor trapezoid(Operand y, double dx = 1, int axis = -1);             // the area below points dx apart
Tensor trapezoid(Operand y, Operand x, int axis = -1);                 // or at x: [n], or broadcasting with y
Tensor cumulative_trapezoid(Operand y, double dx = 1, int axis = -1);  // n - 1 areas so far
Tensor cumulative_trapezoid(Operand y, Operand x, int axis = -1);
// base^from to base^to in `steps` equal steps of the exponent.
Tensor logspace(Graph& g, double from, double to, int steps, double base = 10, DType dtype = DType::F32,
                const Tensor::At& at = Tensor::At::current());
// Vectors (or scalars) as grids: element [i, j, ..] of the k-th result is its k-th index into the k-th vector. "ij", or
// "xy", where the first two axes change places.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, std::string_view indexing = "ij",
                             const Tensor::At& at = Tensor::At::current());

}  // namespace lc
#include "lightcone/macros_on.h"
