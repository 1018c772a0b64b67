// Complex numbers as two real tensors, and what torch has for them.
//
// A graph knows real numbers alone: a complex tensor is a pair of parts of one shape and type, f32 or f64, and whatever
// moves data (views, cat, gather, where ...) is done to each part. The parts broadcast and promote as operands do.
// Derivatives are those of the two parts: of a real loss, the parts of torch's gradient.
//
// Functions that lose digits in f32 by cancellation (log, sqrt, asin and their kind, tanh, quotients) are computed in
// f64 and rounded once. Formulas: W. Kahan, "Branch cuts for complex elementary functions", 1987, which also says on
// which side of a cut a signed zero lies.
#pragma once

#include "lightcone/macros_off.h"

#include <complex>
#include <vector>

#include "lightcone/ops/ops.h"

namespace lc {

struct Complex {
  Tensor real, imag;
  DType dtype() const { return real.dtype(); }  // of the parts
  Shape shape() const { return real.shape(); }
  int rank() const { return real.rank(); }
  Dim extent(int axis) const { return real.extent(axis); }

  using At = Tensor::At;
  // What moves elements, done to both parts: z.each([](const Tensor& part) { return roll(part, 1, 0); }).
  template <class F>
  Complex each(const F& f) const {
    return {f(real), f(imag)};
  }
  Complex reshape(const Shape& to, const At& at = At::current()) const;
  Complex expand(const Shape& to, const At& at = At::current()) const;
  Complex permute(const std::vector<int>& axes, const At& at = At::current()) const;
  Complex transpose(int a, int b, const At& at = At::current()) const;
  Complex unsqueeze(int axis, const At& at = At::current()) const;
  Complex squeeze(int axis, const At& at = At::current()) const;
  Complex slice(int axis, Dim begin, Dim end, std::int64_t step = 1, const At& at = At::current()) const;
  Complex select(int axis, Dim index, const At& at = At::current()) const;  // the axis goes away
  Complex operator[](const IndexAt& i) const { return {real[i], imag[i]}; }
  Complex flip(int axis, const At& at = At::current()) const;
};

// ---- making and taking apart ------------------------------------------------------------------------
// The parts broadcast and promote, integers and halves to f32.
Complex complex(Operand real, Operand imag);
Complex polar(Operand abs, Operand angle);  // abs e^(i angle)
Complex view_as_complex(Operand a);         // [.., 2] -> [..]
Tensor view_as_real(const Complex& z);      // [..] -> [.., 2], as torch lays complex tensors out in memory
Complex conj(const Complex& z);
Tensor abs(const Complex& z);    // infinite where a part is
Tensor angle(const Complex& z);  // in (-pi, pi]

// ---- arithmetic -------------------------------------------------------------------------------------
Complex operator+(const Complex& a, const Complex& b);
Complex operator-(const Complex& a, const Complex& b);
Complex operator-(const Complex& a);
Complex operator*(const Complex& a, const Complex& b);
Complex operator/(const Complex& a, const Complex& b);  // NaN for b = 0
// With real tensors and numbers, which have no imaginary part: z * x is both parts times x, so that an infinite part
// makes no NaN of the other one (torch multiplies by x + 0i, and gets one).
Complex operator+(const Complex& a, const TensorOrNumber& b);
Complex operator+(const TensorOrNumber& a, const Complex& b);
Complex operator-(const Complex& a, const TensorOrNumber& b);
Complex operator-(const TensorOrNumber& a, const Complex& b);
Complex operator*(const Complex& a, const TensorOrNumber& b);
Complex operator*(const TensorOrNumber& a, const Complex& b);
Complex operator/(const Complex& a, const TensorOrNumber& b);
Complex operator/(const TensorOrNumber& a, const Complex& b);
// The same number everywhere, of the shape and type of z: z * full_like(z, {0, 1}).
Complex full_like(const Complex& z, std::complex<double> v);
Complex scale(const Complex& a, Operand by);  // a times real numbers
Complex reciprocal(const Complex& a);
Complex matmul(const Complex& a, const Complex& b);
Tensor eq(const Complex& a, const Complex& b);
Complex where(Operand condition, const Complex& a, const Complex& b);

// ---- sums, and several as one -------------------------------------------------------------------------
Complex sum(const Complex& a, const Axes& axes = {}, bool keepdim = false);
Complex mean(const Complex& a, const Axes& axes = {}, bool keepdim = false);
Complex cumsum(const Complex& a, int axis);
Complex cat(const std::vector<Complex>& all, int dim = 0, const Tensor::At& at = Tensor::At::current());
Complex stack(const std::vector<Complex>& all, int dim = 0, const Tensor::At& at = Tensor::At::current());

// ---- functions: principal values, cuts as in torch ----------------------------------------------------
Complex exp(const Complex& a);
Complex expm1(const Complex& a);
Complex log(const Complex& a);
Complex log1p(const Complex& a);
Complex sqrt(const Complex& a);
Complex rsqrt(const Complex& a);
Complex pow(const Complex& a, const Complex& b);  // 1 for b = 0; of a = 0 otherwise 0
Complex sigmoid(const Complex& a);
Complex sgn(const Complex& a);  // a / |a|, 0 for 0
Complex sin(const Complex& a);
Complex cos(const Complex& a);
Complex tan(const Complex& a);
Complex sinh(const Complex& a);
Complex cosh(const Complex& a);
Complex tanh(const Complex& a);
Complex asin(const Complex& a);
Complex acos(const Complex& a);
Complex atan(const Complex& a);
Complex asinh(const Complex& a);
Complex acosh(const Complex& a);
Complex atanh(const Complex& a);

}  // namespace lc
#include "lightcone/macros_on.h"
