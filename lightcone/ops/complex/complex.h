// Complex numbers as pairs of real tensors, with PyTorch's functions for them.
//
// Graphs hold only real numbers, so a complex tensor is a pair of parts with one shape and type, f32 or f64. Functions
// that move data (views, cat, gather, where ...) apply to each part. The parts broadcast and promote like operands. The
// derivatives of a real loss with respect to the parts are the parts of PyTorch's gradient.
//
// Functions that lose digits to cancellation in f32 (log, sqrt, asin and similar, tanh, quotients) are computed in f64
// and rounded once. The formulas are from W. Kahan, "Branch cuts for complex elementary functions", 1987, which also
// defines the side of a cut on which a signed zero lies.
#pragma once

#include "lightcone/macros_off.h"

#include <complex>
#include <vector>

#include "lightcone/ops/ops.h"

namespace lc {

struct Complex {
  Tensor real, imag;
  DType dtype() const { return real.dtype(); }  // type of each part
  Shape shape() const { return real.shape(); }
  int rank() const { return real.rank(); }
  Dim extent(int axis) const { return real.extent(axis); }

  using At = Tensor::At;
  // Applies a function that moves elements to both parts: z.each([](const Tensor& part) { return roll(part, 1, 0); }).
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
  Complex select(int axis, Dim index, const At& at = At::current()) const;  // removes the axis
  Complex operator[](const IndexAt& i) const { return {real[i], imag[i]}; }
  Complex flip(int axis, const At& at = At::current()) const;
};

// ---- construction and parts ------------------------------------------------------------------------
Complex complex(Operand real, Operand imag);  // the parts broadcast and promote, integers and 16-bit floats to f32
Complex polar(Operand abs, Operand angle);    // abs e^(i angle)
Complex view_as_complex(Operand a);           // [.., 2] -> [..]
Tensor view_as_real(const Complex& z);        // [..] -> [.., 2], PyTorch's memory layout of complex tensors
Complex conj(const Complex& z);
Tensor abs(const Complex& z);    // infinite if a part is
Tensor angle(const Complex& z);  // in (-pi, pi]

// ---- arithmetic -------------------------------------------------------------------------------------
Complex operator+(const Complex& a, const Complex& b);
Complex operator-(const Complex& a, const Complex& b);
Complex operator-(const Complex& a);
Complex operator*(const Complex& a, const Complex& b);
Complex operator/(const Complex& a, const Complex& b);  // NaN if b = 0
// Arithmetic with real tensors and numbers, which have no imaginary part: z * x multiplies both parts by x, so that an
// infinite part does not make the other NaN (PyTorch multiplies by x + 0i and does get NaN).
Complex operator+(const Complex& a, const TensorOrNumber& b);
Complex operator+(const TensorOrNumber& a, const Complex& b);
Complex operator-(const Complex& a, const TensorOrNumber& b);
Complex operator-(const TensorOrNumber& a, const Complex& b);
Complex operator*(const Complex& a, const TensorOrNumber& b);
Complex operator*(const TensorOrNumber& a, const Complex& b);
Complex operator/(const Complex& a, const TensorOrNumber& b);
Complex operator/(const TensorOrNumber& a, const Complex& b);
// A constant of the shape and type of z: z * full_like(z, {0, 1}).
Complex full_like(const Complex& z, std::complex<double> v);
Complex scale(const Complex& a, Operand by);  // a times real numbers
Complex reciprocal(const Complex& a);
Complex matmul(const Complex& a, const Complex& b);
Tensor eq(const Complex& a, const Complex& b);
Complex where(Operand condition, const Complex& a, const Complex& b);

// ---- reductions and concatenation -------------------------------------------------------------------
Complex sum(const Complex& a, const Axes& axes = {}, bool keepdim = false);
Complex mean(const Complex& a, const Axes& axes = {}, bool keepdim = false);
Complex cumsum(const Complex& a, int axis);
Complex cat(const std::vector<Complex>& all, int dim = 0, const Tensor::At& at = Tensor::At::current());
Complex stack(const std::vector<Complex>& all, int dim = 0, const Tensor::At& at = Tensor::At::current());

// ---- functions: principal values, with PyTorch's branch cuts -------------------------------------------
Complex exp(const Complex& a);
Complex expm1(const Complex& a);
Complex log(const Complex& a);
Complex log1p(const Complex& a);
Complex sqrt(const Complex& a);
Complex rsqrt(const Complex& a);
Complex pow(const Complex& a, const Complex& b);  // 1 for b = 0, else 0 for a = 0
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
