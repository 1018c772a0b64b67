// Complex numbers: parts and arithmetic.
#include "lightcone/ops/complex/complex.h"

#include "lightcone/ops/internal.h"
#include "lightcone/ops/special/special.h"

namespace lc {

Complex complex(Operand real, Operand imag) {
  const OpScope scope("complex", real.at);
  const detail::Pair p = detail::promoted(real, imag, "complex");
  const auto part = [](const Tensor& t) { return t.dtype() == DType::F64 ? t : prim::cast(t, DType::F32); };
  return {part(p.a), part(p.b)};
}

Complex polar(Operand abs, Operand angle) {
  const OpScope scope("polar", abs.at);
  const Complex p = complex(abs, angle);
  return {p.real * cos(p.imag), p.real * sin(p.imag)};
}

Complex view_as_complex(Operand a) {
  const OpScope scope("view_as_complex", a.at);
  if (a->rank() == 0 || !(a->extent(-1) == Dim(2)))
    throw Error("view_as_complex",
                str_cat(str(a->shape()), ": the last axis has two elements, real and imaginary part"));
  return complex(select(a, -1, 0), select(a, -1, 1));
}
Tensor view_as_real(const Complex& z) { return stack({z.real, z.imag}, -1); }

Complex conj(const Complex& z) { return {z.real, detail::neg(z.imag)}; }
Tensor abs(const Complex& z) { return hypot(z.real, z.imag); }
Tensor angle(const Complex& z) { return atan2(z.imag, z.real); }

Complex operator+(const Complex& a, const Complex& b) { return {a.real + b.real, a.imag + b.imag}; }
Complex operator-(const Complex& a, const Complex& b) { return {a.real - b.real, a.imag - b.imag}; }
Complex operator-(const Complex& a) { return {detail::neg(a.real), detail::neg(a.imag)}; }
Complex operator*(const Complex& a, const Complex& b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
Complex operator+(const Complex& a, const TensorOrNumber& b) { return complex(a.real + b, a.imag); }
Complex operator+(const TensorOrNumber& a, const Complex& b) { return b + a; }
Complex operator-(const Complex& a, const TensorOrNumber& b) { return complex(a.real - b, a.imag); }
Complex operator-(const TensorOrNumber& a, const Complex& b) { return -b + a; }
Complex operator*(const Complex& a, const TensorOrNumber& b) { return {a.real * b, a.imag * b}; }
Complex operator*(const TensorOrNumber& a, const Complex& b) { return b * a; }
Complex operator/(const Complex& a, const TensorOrNumber& b) { return {a.real / b, a.imag / b}; }
Complex operator/(const TensorOrNumber& a, const Complex& b) { return reciprocal(b) * a; }
Complex full_like(const Complex& z, std::complex<double> v) {
  return {full_like(z.real, v.real()), full_like(z.imag, v.imag())};
}
Complex scale(const Complex& a, Operand by) { return {a.real * by, a.imag * by}; }

// Scales b to magnitude about 1, so that squares neither overflow nor underflow.
Complex operator/(const Complex& a, const Complex& b) {
  const Tensor size = maximum(abs(b.real), abs(b.imag));
  const Complex unit{b.real / size, b.imag / size};
  const Tensor square = unit.real * b.real + unit.imag * b.imag;
  const Complex product = a * conj(unit);
  return {product.real / square, product.imag / square};
}
Complex reciprocal(const Complex& a) {
  const Tensor one = full_like(a.real, 1);
  return Complex{one, detail::mul(one, 0)} / a;
}

Complex matmul(const Complex& a, const Complex& b) {
  return {matmul(a.real, b.real) - matmul(a.imag, b.imag), matmul(a.real, b.imag) + matmul(a.imag, b.real)};
}

Tensor eq(const Complex& a, const Complex& b) { return logical_and(eq(a.real, b.real), eq(a.imag, b.imag)); }
Complex Complex::reshape(const Shape& to, const At& at) const { return {real.reshape(to, at), imag.reshape(to, at)}; }
Complex Complex::expand(const Shape& to, const At& at) const { return {real.expand(to, at), imag.expand(to, at)}; }
Complex Complex::permute(const std::vector<int>& axes, const At& at) const {
  return {real.permute(axes, at), imag.permute(axes, at)};
}
Complex Complex::transpose(int a, int b, const At& at) const {
  return {real.transpose(a, b, at), imag.transpose(a, b, at)};
}
Complex Complex::unsqueeze(int axis, const At& at) const {
  return {real.unsqueeze(axis, at), imag.unsqueeze(axis, at)};
}
Complex Complex::squeeze(int axis, const At& at) const { return {real.squeeze(axis, at), imag.squeeze(axis, at)}; }
Complex Complex::slice(int axis, Dim begin, Dim end, std::int64_t step, const At& at) const {
  return {real.slice(axis, begin, end, step, at), imag.slice(axis, begin, end, step, at)};
}
Complex Complex::select(int axis, Dim index, const At& at) const {
  return {real.select(axis, index, at), imag.select(axis, index, at)};
}
Complex Complex::flip(int axis, const At& at) const { return {real.flip(axis, at), imag.flip(axis, at)}; }

Complex sum(const Complex& a, const Axes& axes, bool keepdim) {
  return {sum(a.real, axes, keepdim), sum(a.imag, axes, keepdim)};
}
Complex mean(const Complex& a, const Axes& axes, bool keepdim) {
  return {mean(a.real, axes, keepdim), mean(a.imag, axes, keepdim)};
}
Complex cumsum(const Complex& a, int axis) { return {cumsum(a.real, axis), cumsum(a.imag, axis)}; }

namespace {

Complex joined(const std::vector<Complex>& all, int dim, const Tensor::At& at,
               Tensor (*join)(const std::vector<Tensor>&, int, const Tensor::At&)) {
  std::vector<Tensor> real, imag;
  for (const Complex& z : all) real.push_back(z.real), imag.push_back(z.imag);
  return {join(real, dim, at), join(imag, dim, at)};
}

}  // namespace

Complex cat(const std::vector<Complex>& all, int dim, const Tensor::At& at) { return joined(all, dim, at, cat); }
Complex stack(const std::vector<Complex>& all, int dim, const Tensor::At& at) { return joined(all, dim, at, stack); }

Complex where(Operand condition, const Complex& a, const Complex& b) {
  return {where(condition, a.real, b.real), where(condition, a.imag, b.imag)};
}

}  // namespace lc
