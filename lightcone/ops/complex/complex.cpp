// Complex numbers: parts, arithmetic.
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
Complex scale(const Complex& a, Operand by) { return {a.real * by, a.imag * by}; }

// By b scaled to a size of about 1, so that squares neither overflow nor vanish.
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
Complex where(Operand condition, const Complex& a, const Complex& b) {
  return {where(condition, a.real, b.real), where(condition, a.imag, b.imag)};
}

}  // namespace lc
