// Rules for operations on complex numbers, whose operands and results are pairs of parts (complex_parts.cpp).
#include "lightcone/ops/complex/complex.h"

#include "lightcone/ops/complex/fft.h"
#include "lightcone/ops/special/special.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

// Returns the operands in one shape. In a reducer's body, captured or constant scalars meet tensors.
std::vector<Complex> operands(const Call& c, std::size_t n) {
  if (c.in.size() != 2 * n) c.refuse(str_cat("takes ", n, " complex operands"));
  Shape largest;
  for (const Tensor& t : c.in)
    if (t.shape().size() > largest.size()) largest = t.shape();
  std::vector<Complex> r;
  for (std::size_t k = 0; k < 2 * n; k += 2) r.push_back({to_shape(c.in[k], largest), to_shape(c.in[k + 1], largest)});
  for (const Complex& z : r)
    if (!(z.real.shape() == largest) || !(z.imag.shape() == largest)) c.refuse("shapes of the operands differ");
  return r;
}
std::vector<Tensor> given(const Complex& z) { return {z.real, z.imag}; }

template <Complex (*F)(const Complex&)>
std::vector<Tensor> unary_complex(const Call& c) {
  return given(F(operands(c, 1)[0]));
}
template <Complex (*F)(const Complex&, const Complex&)>
std::vector<Tensor> binary(const Call& c) {
  const std::vector<Complex> in = operands(c, 2);
  return given(F(in[0], in[1]));
}

Complex cube_root(const Complex& z) {
  const Tensor third = scalar_like(z.real, 1.0 / 3);
  return pow(z, Complex{third, scalar_like(third, 0)});
}
// -i log((x + i y) / sqrt(x^2 + y^2))
Complex angle_of(const Complex& y, const Complex& x) {
  const Complex r = log(Complex{x.real - y.imag, x.imag + y.real} / sqrt(x * x + y * y));
  return {r.imag, scalar_like(r.real, -1) * r.real};
}
// For a NaN, both parts are NaN.
Complex sign_of(const Complex& z) {
  const Complex r = sgn(z);
  const Tensor none = isnan(abs(z)), nan = scalar_like(r.real, kNaN);
  return {prim::where(none, nan, r.real), prim::where(none, nan, r.imag)};
}

// The real part is (x - y) (x + y), without the cancellation of x^2 - y^2; x and y are halved so that their sum is
// finite.
Complex square(const Complex& z) {
  const Tensor x = z.real * 0.5, y = z.imag * 0.5, product = z.real * z.imag;
  return {(x - y) * (x + y) * 4.0, product + product};
}

// Solves the upper half of the rows, then the lower half with the contribution of the upper half subtracted;
// recursively.
Complex solve_lower(const Complex& a, const Complex& b, bool unit) {
  const std::int64_t n = *a.real.extent(-1).constant(), half = n / 2;
  if (n == 0) return b;
  const auto block = [](const Complex& z, std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
    const auto cut = [&](const Tensor& t) { return t.slice(-2, r0, r1).slice(-1, c0, c1); };
    return Complex{cut(z.real), cut(z.imag)};
  };
  const auto rows = [](const Complex& z, std::int64_t from, std::int64_t to) {
    return Complex{z.real.slice(-2, from, to), z.imag.slice(-2, from, to)};
  };
  if (n == 1) return unit ? b : b / a;
  const Complex first = solve_lower(block(a, 0, half, 0, half), rows(b, 0, half), unit);
  const Complex below = block(a, half, n, 0, half), rest = rows(b, half, n);
  const Complex reduced{rest.real - (matmul(below.real, first.real) - matmul(below.imag, first.imag)),
                        rest.imag - (matmul(below.real, first.imag) + matmul(below.imag, first.real))};
  const Complex second = solve_lower(block(a, half, n, half, n), reduced, unit);
  return {cat({first.real, second.real}, -2), cat({first.imag, second.imag}, -2)};
}

std::vector<Tensor> triangular_solve(const Call& c) {
  constexpr std::int64_t kMost = 256;  // each row is written as separate operations
  if (c.in.size() != 4) c.refuse("takes two tensors of matrices");
  Complex a{c.in[0], c.in[1]}, b{c.in[2], c.in[3]};
  const Tensor& x = a.real;
  const bool left = c.flag("left_side");
  if (x.rank() < 2 || b.real.rank() != x.rank() || !(x.extent(-1) == x.extent(-2)) ||
      !(x.extent(-1) == b.real.extent(left ? -2 : -1)))
    c.refuse("its matrices do not fit");
  if (extents(x).back() > kMost) c.refuse(str_cat("complex systems have at most ", kMost, " rows"));
  const auto transposed = [](const Complex& z) { return Complex{z.real.transpose(-1, -2), z.imag.transpose(-1, -2)}; };
  const auto flipped = [](const Complex& z, IntList axes) { return Complex{flip(z.real, axes), flip(z.imag, axes)}; };
  bool lower = c.flag("lower");
  const std::string how = c.word("transpose_a", "NO_TRANSPOSE");
  if (how == "ADJOINT") a = conj(a);
  if (how == "TRANSPOSE" || how == "ADJOINT") a = transposed(a), lower = !lower;
  if (!left) a = transposed(a), b = transposed(b), lower = !lower;  // X A = B is A^T X^T = B^T
  if (!lower) a = flipped(a, {-2, -1}), b = flipped(b, {-2});       // from the last row to the first
  Complex solved = solve_lower(a, b, c.flag("unit_diagonal"));
  if (!lower) solved = flipped(solved, {-2});
  return given(left ? solved : transposed(solved));
}

std::vector<Tensor> compare_complex(const Call& c) {
  const std::vector<Complex> in = operands(c, 2);
  const std::string d = c.word("comparison_direction");
  if (d != "EQ" && d != "NE") c.refuse("complex numbers have no order");
  const Tensor same = eq(in[0], in[1]);
  return {d == "EQ" ? same : logical_not(same)};
}

// Returns the larger or smaller number, ordered by real part, then by imaginary part.
template <bool Largest>
std::vector<Tensor> extreme(const Call& c) {
  const std::vector<Complex> in = operands(c, 2);
  const Complex &a = in[Largest ? 1 : 0], &b = in[Largest ? 0 : 1];
  const Tensor less =
      logical_or(prim::less_than(a.real, b.real), logical_and(eq(a.real, b.real), prim::less_than(a.imag, b.imag)));
  return given(where(less, in[0], in[1]));
}

// Converts from or to real numbers; the imaginary part is lost.
std::vector<Tensor> convert_complex(const Call& c) {
  const Tensor real = prim::cast(c.x(), c.dtype());
  if (c.in.size() == 2) return {real};
  return {real, scalar_like(real, 0)};
}

std::vector<Tensor> transform(const Call& c) {
  const Integers n = c.integers("fft_length");
  const std::string type = c.word("fft_type");
  const auto axes = static_cast<int>(n.size());
  if (axes < 1 || axes > 3 || c.x().rank() < axes) c.refuse("takes one to three of the last axes");
  IntList all, others;
  for (int a = 1; a <= axes; ++a) all.push_back(-a);
  others.assign(all.begin() + 1, all.end());
  if (type == "RFFT" && c.in.size() == 1) return given(fft::fftn(fft::rfft(c.x(), n.back()), others));
  const Complex z = operands(c, 1)[0];
  if (type == "FFT") return given(fft::fftn(z, all));
  if (type == "IFFT") return given(fft::ifftn(z, all));
  if (type == "IRFFT") return {fft::irfft(fft::ifftn(z, others), n.back())};
  c.refuse(str_cat("'", type, "' is not a transform of these operands"));
}

std::vector<Tensor> split(const Call& c) { return given(view_as_complex(c.x())); }
std::vector<Tensor> join(const Call& c) { return {view_as_real(operands(c, 1)[0])}; }

}  // namespace

void add_complex(Rules& r) {
  r[kSplitComplex] = split;
  r[kJoinComplex] = join;
  r["stablehlo.real"] = [](const Call& c) { return std::vector{c.x()}; };  // real operands, also in the next rule
  r["stablehlo.imag"] = [](const Call& c) { return std::vector{scalar_like(c.x(), 0)}; };
  r["stablehlo.fft (complex)"] = transform;
  r["stablehlo.convert (complex)"] = convert_complex;
  r["stablehlo.compare (complex)"] = compare_complex;
  r["stablehlo.abs (complex)"] = [](const Call& c) { return std::vector{abs(operands(c, 1)[0])}; };
  r["stablehlo.multiply (complex)"] = binary < operator*>;
  r["stablehlo.divide (complex)"] = binary < operator/>;
  r["stablehlo.maximum (complex)"] = extreme<true>;
  r["stablehlo.minimum (complex)"] = extreme<false>;
  r["stablehlo.power (complex)"] = binary<lc::pow>;
  r["stablehlo.atan2 (complex)"] = binary<angle_of>;
  r["stablehlo.sign (complex)"] = unary_complex<sign_of>;
  r["stablehlo.exponential (complex)"] = unary_complex<lc::exp>;
  r["stablehlo.exponential_minus_one (complex)"] = unary_complex<lc::expm1>;
  r["stablehlo.log (complex)"] = unary_complex<lc::log>;
  r["stablehlo.log_plus_one (complex)"] = unary_complex<lc::log1p>;
  r["stablehlo.logistic (complex)"] = unary_complex<lc::sigmoid>;
  r["stablehlo.sqrt (complex)"] = unary_complex<lc::sqrt>;
  r["stablehlo.rsqrt (complex)"] = unary_complex<lc::rsqrt>;
  r["stablehlo.cbrt (complex)"] = unary_complex<cube_root>;
  r["stablehlo.sine (complex)"] = unary_complex<lc::sin>;
  r["stablehlo.cosine (complex)"] = unary_complex<lc::cos>;
  r["stablehlo.tan (complex)"] = unary_complex<lc::tan>;
  r["stablehlo.tanh (complex)"] = unary_complex<lc::tanh>;
  r["stablehlo.square (complex)"] = unary_complex<square>;
  r["stablehlo.triangular_solve (complex)"] = triangular_solve;
  r["chlo.square (complex)"] = unary_complex<square>;
  r["chlo.conj (complex)"] = unary_complex<lc::conj>;
  r["chlo.tan (complex)"] = unary_complex<lc::tan>;
  r["chlo.sinh (complex)"] = unary_complex<lc::sinh>;
  r["chlo.cosh (complex)"] = unary_complex<lc::cosh>;
  r["chlo.asin (complex)"] = unary_complex<lc::asin>;
  r["chlo.acos (complex)"] = unary_complex<lc::acos>;
  r["chlo.atan (complex)"] = unary_complex<lc::atan>;
  r["chlo.asinh (complex)"] = unary_complex<lc::asinh>;
  r["chlo.acosh (complex)"] = unary_complex<lc::acosh>;
  r["chlo.atanh (complex)"] = unary_complex<lc::atanh>;
}

}  // namespace lc::stablehlo
