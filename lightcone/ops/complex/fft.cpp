// Fourier transforms as products with small matrices.
#include "lightcone/ops/complex/fft.h"

#include <cmath>
#include <numbers>

#include "lightcone/ops/internal.h"

namespace lc::fft {
namespace {

constexpr std::int64_t kMostDirect = 64;  // transforms up to this length use one matrix
constexpr double kTurn = 2 * std::numbers::pi;

// Returns e^(i turn t / n) for integers t in [0, n). The angle is rounded once, whatever the length.
Complex roots(Graph& g, const Shape& s, const Dim& t, std::int64_t n, double turn, DType type) {
  const Tensor angle = detail::mul(g.index(s, t, DType::F64), turn / static_cast<double>(n));
  return {prim::contiguous(prim::cast(cos(angle), type)), prim::contiguous(prim::cast(sin(angle), type))};
}

// A matrix [2n, 2n] that transforms [real parts | imaginary parts] into the same layout.
Tensor matrix(Graph& g, std::int64_t n, double sign, DType type) {
  const Dim t = Dim::index(0, n) * Dim::index(1, n) % Dim(n);
  const Complex w = roots(g, {n, n}, t, n, sign * kTurn, type);
  return prim::contiguous(cat({cat({w.real, w.imag}, 1), cat({detail::neg(w.imag), w.real}, 1)}, 0));
}

std::int64_t length(const Tensor& t, const char* op) {
  const auto n = t.extent(-1).constant();
  if (!n)
    throw Error(op, str_cat("the length of the axis is ", t.extent(-1), " in ", str(t.shape()),
                            ", and has to be a number: give the input a fixed size"));
  if (*n < 1) throw Error(op, str_cat("the axis of ", str(t.shape()), " is empty: it needs at least one element"));
  return *n;
}

Complex direct(const Complex& x, std::int64_t n, double sign) {
  const Tensor y = matmul(cat({x.real, x.imag}, -1), matrix(x.real.graph(), n, sign, x.dtype()));
  return {narrow(y, -1, 0, n), narrow(y, -1, n, n)};
}

Complex each(const Complex& x, const auto& f) { return {f(x.real), f(x.imag)}; }
Complex transposed(const Complex& x) {
  return each(x, [](const Tensor& t) { return t.transpose(-1, -2); });
}
Shape with_end(const Shape& s, std::initializer_list<std::int64_t> end) {
  Shape r(s.begin(), s.end() - 1);
  r.insert(r.end(), end.begin(), end.end());
  return r;
}

Complex transform(const Complex& x, double sign);

// For prime n, 2 j k = j^2 + k^2 - (k - j)^2 turns the transform into a convolution, computed by longer transforms.
Complex bluestein(const Complex& x, std::int64_t n, double sign) {
  std::int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  Graph& g = x.real.graph();
  const Dim k = Dim::index(0, n);
  const Complex chirp = roots(g, {n}, k * k % Dim(2 * n), n, sign * std::numbers::pi, x.dtype());
  const auto filled = [&](const Tensor& t) { return pad(t, {0, static_cast<int>(m - n)}); };
  // conj(chirp) at 0, 1, ..., n - 1 and, wrapped around, at -1, -2, ...
  const Complex wave = each(conj(chirp), [&](const Tensor& t) {
    return cat({t, zeros(g, {m - 2 * n + 1}, t.dtype()), flip(narrow(t, 0, 1, n - 1), {0})}, 0);
  });
  const Complex y = transform(each(x * chirp, filled), -1) * transform(wave, -1);
  const Complex back = each(transform(y, 1), [&](const Tensor& t) { return narrow(t, -1, 0, n); });
  return scale(back * chirp, full(g, {}, 1.0 / static_cast<double>(m), x.dtype()));
}

// Computes the sums over j of x_j e^(sign 2 pi i j k / n) along the last axis.
Complex transform(const Complex& x, double sign) {
  const std::int64_t n = length(x.real, "fft");
  if (n <= kMostDirect) return direct(x, n, sign);
  std::int64_t b = kMostDirect;
  while (n % b) --b;
  if (b == 1) return bluestein(x, n, sign);
  const std::int64_t a = n / b;
  // With j = j1 b + j2 for x and k = k1 + a k2 for the result: transform over j1 for each j2, multiply by e^(sign 2 pi
  // i j2 k1 / n), transform over j2 for each k1.
  const Complex rows = transposed(each(x, [&](const Tensor& t) { return t.reshape(with_end(t.shape(), {a, b})); }));
  const Dim t = Dim::index(0, b) * Dim::index(1, a) % Dim(n);
  const Complex twiddled = transform(rows, sign) * roots(x.real.graph(), {b, a}, t, n, sign * kTurn, x.dtype());
  const Complex y = transposed(direct(transposed(twiddled), b, sign));
  return each(y, [&](const Tensor& u) { return u.reshape(with_end(x.shape(), {n})); });
}

// Moves the axis to the end and cuts or zero-pads it to n elements.
Tensor prepared(const Tensor& x, Length n, int dim, const char* op) {
  if (x.rank() == 0) throw Error(op, "a scalar has no axis");
  const Tensor t = movedim(x, dim, -1);
  const std::int64_t has = length(t, op), wanted = n.value_or(has);
  if (wanted < 1) throw Error(op, str_cat("a length is at least 1, not ", wanted));
  if (wanted <= has) return narrow(t, -1, 0, wanted);
  return pad(t, {0, static_cast<int>(wanted - has)});
}
double factor(Norm norm, std::int64_t n, bool forward) {
  const double size = static_cast<double>(n);
  if (norm == Norm::Ortho) return 1 / std::sqrt(size);
  return (norm == Norm::Forward) == forward ? 1 / size : 1;
}
Tensor finished(const Tensor& t, double by, int dim) { return movedim(by == 1 ? t : detail::mul(t, by), -1, dim); }

Complex whole(const Complex& z, Length n, int dim, Norm norm, bool forward, const char* op) {
  const OpScope scope(op, Tensor::At::current());
  const Complex x = each(complex(z.real, z.imag), [&](const Tensor& t) { return prepared(t, n, dim, op); });
  const double by = factor(norm, length(x.real, op), forward);
  return each(transform(x, forward ? -1 : 1), [&](const Tensor& t) { return finished(t, by, dim); });
}

}  // namespace

Complex fft(const Complex& x, Length n, int dim, Norm norm) { return whole(x, n, dim, norm, true, "fft"); }
Complex ifft(const Complex& x, Length n, int dim, Norm norm) { return whole(x, n, dim, norm, false, "ifft"); }

Complex rfft(Operand a, Length n, int dim, Norm norm) {
  const OpScope scope("rfft", a.at);
  const Tensor x = prepared(a->dtype() == DType::F64 ? a.tensor : prim::cast(a, DType::F32), n, dim, "rfft");
  const std::int64_t size = length(x, "rfft");
  const Complex all = transform({x, detail::mul(x, 0)}, -1);
  const Complex half = each(all, [&](const Tensor& t) { return narrow(t, -1, 0, size / 2 + 1); });
  // The transform of real numbers has a real first element and, for an even length, a real middle one.
  const Tensor twice = x.graph().index({size / 2 + 1}, Dim::index(0, size / 2 + 1) * Dim(2) % Dim(size), DType::I32);
  const Tensor imag = where(eq(twice, 0), 0.0, half.imag);
  const double by = factor(norm, size, true);
  return {finished(half.real, by, dim), finished(imag, by, dim)};
}

Tensor irfft(const Complex& z, Length n, int dim, Norm norm) {
  const OpScope scope("irfft", Tensor::At::current());
  const Tensor probe = movedim(z.real, dim, -1);
  const std::int64_t size = n.value_or(2 * (length(probe, "irfft") - 1));
  if (size < 1) throw Error("irfft", str_cat("a length is at least 1, not ", size));
  const Complex half =
      each(complex(z.real, z.imag), [&](const Tensor& t) { return prepared(t, size / 2 + 1, dim, "irfft"); });
  // Elements after the middle are the conjugates of those before it, in reverse order.
  const std::int64_t rest = size - (size / 2 + 1);
  const auto mirrored = [&](const Tensor& t) { return flip(narrow(t, -1, 1, rest), {-1}); };
  const Complex all{cat({half.real, mirrored(half.real)}, -1), cat({half.imag, detail::neg(mirrored(half.imag))}, -1)};
  return finished(transform(rest > 0 ? all : half, 1).real, factor(norm, size, false), dim);
}

Complex fftn(const Complex& x, const IntList& dims, Norm norm) {
  Complex r = x;
  for (const int d : dims) r = fft(r, {}, d, norm);
  return r;
}
Complex ifftn(const Complex& x, const IntList& dims, Norm norm) {
  Complex r = x;
  for (const int d : dims) r = ifft(r, {}, d, norm);
  return r;
}

namespace {
Tensor rolled(const Operand& x, const IntList& dims, const char* op, bool forward) {
  Tensor r = x;
  for (const int d : dims) {
    const std::int64_t n = length(movedim(r, d, -1), op);
    r = roll(r, forward ? n / 2 : -(n / 2), d);
  }
  return r;
}
}  // namespace

Tensor fftshift(Operand x, const IntList& dims) {
  const OpScope scope("fftshift", x.at);
  return rolled(x, dims, "fftshift", true);
}
Tensor ifftshift(Operand x, const IntList& dims) {
  const OpScope scope("ifftshift", x.at);
  return rolled(x, dims, "ifftshift", false);
}
Complex fftshift(const Complex& z, const IntList& dims) { return {fftshift(z.real, dims), fftshift(z.imag, dims)}; }
Complex ifftshift(const Complex& z, const IntList& dims) { return {ifftshift(z.real, dims), ifftshift(z.imag, dims)}; }

Tensor fftfreq(GraphOf in, std::int64_t n, double d) {
  const OpScope scope("fftfreq", in.at);
  const Dim k = Dim::index(0, n), negative = less(Dim((n - 1) / 2), k);
  const Tensor t = in.graph.index({n}, k - negative * Dim(n), DType::F64);
  return prim::cast(detail::mul(t, 1 / (static_cast<double>(n) * d)), DType::F32);
}
Tensor rfftfreq(GraphOf in, std::int64_t n, double d) {
  const OpScope scope("rfftfreq", in.at);
  return prim::cast(detail::mul(arange(in, Dim(n / 2 + 1), DType::F64), 1 / (static_cast<double>(n) * d)), DType::F32);
}

}  // namespace lc::fft
