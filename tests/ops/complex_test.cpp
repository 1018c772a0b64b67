// Complex numbers agree with std::complex, Fourier transforms of any length agree with the sums that define them, and
// their derivatives are right.
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

#include "error_of.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/ops/complex/complex.h"
#include "lightcone/ops/complex/fft.h"
#include "lightcone/passes/passes.h"
#include "lightcone/reference/interpreter.h"
#include "lightcone/runtime/program.h"
#include "on_device.h"

using namespace lc;

namespace {

using C = std::complex<double>;

std::vector<C> numbers(int n, std::uint32_t seed, double size = 3) {
  std::mt19937 r(seed);
  std::uniform_real_distribution<double> d(-size, size);
  std::vector<C> v;
  for (int k = 0; k < n; ++k) v.emplace_back(static_cast<float>(d(r)), static_cast<float>(d(r)));
  return v;
}

// A graph of complex inputs of one type, run by the reference or compiled.
class Checked {
 public:
  explicit Checked(DType type) : type_(type) {}
  Graph g;
  Complex input(const std::vector<C>& v, Shape s = {}) {
    if (s.empty()) s = {Dim(static_cast<std::int64_t>(v.size()))};
    Complex z;
    for (const bool imag : {false, true}) {
      const std::string name = str_cat("x", given_.size());
      Value x = make_value(type_, {});
      for (const Dim& d : s) x.shape.push_back(*d.constant());
      x.f.clear();
      for (const C& c : v) x.f.push_back(imag ? c.imag() : c.real());
      given_[name] = x;
      (imag ? z.imag : z.real) = g.input(name, s, type_);
    }
    return z;
  }
  std::vector<C> by_reference(const Complex& z) {
    g.output("re", z.real), g.output("im", z.imag);
    const auto r = interpret(g, given_).outputs;
    return joined(r.at("re").f, r.at("im").f);
  }
  std::vector<C> compiled(const Complex& z) {
    g.output("re", z.real), g.output("im", z.imag);
    Program p = compile(g, generic() | test::device());
    Context c(p);
    for (const auto& [name, x] : given_)
      if (type_ == DType::F64) c.set_bytes(name, x.f.data(), x.f.size() * sizeof(double));
      else c.set(name, std::vector<float>(x.f.begin(), x.f.end()));
    c.run();
    return joined(c.get_f64("re"), c.get_f64("im"));
  }

 private:
  static std::vector<C> joined(const std::vector<double>& re, const std::vector<double>& im) {
    std::vector<C> r;
    for (std::size_t k = 0; k < re.size(); ++k) r.emplace_back(re[k], im[k]);
    return r;
  }
  DType type_;
  std::map<std::string, Value> given_;
};

void expect_near(const std::vector<C>& a, const std::vector<C>& b, double relative, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t k = 0; k < a.size(); ++k)
    EXPECT_LE(std::abs(a[k] - b[k]), relative * (1 + std::abs(b[k])))
        << what << " " << k << ": " << a[k] << " " << b[k];
}

struct Function {
  const char* name;
  Complex (*ours)(const Complex&);
  C (*theirs)(const C&);
};
#define F(f)                                        \
  {                                                 \
    #f, lc::f, [](const C& z) { return std::f(z); } \
  }
const Function kFunctions[] = {
    F(exp),
    F(log),
    F(sqrt),
    F(sin),
    F(cos),
    F(tan),
    F(sinh),
    F(cosh),
    F(tanh),
    F(asin),
    F(acos),
    F(atan),
    F(asinh),
    F(acosh),
    F(atanh),
    F(conj),
    {"expm1", lc::expm1, [](const C& z) { return std::exp(z) - 1.0; }},
    {"log1p", lc::log1p, [](const C& z) { return std::log(1.0 + z); }},
    {"rsqrt", lc::rsqrt, [](const C& z) { return 1.0 / std::sqrt(z); }},
    {"sigmoid", lc::sigmoid, [](const C& z) { return 1.0 / (1.0 + std::exp(-z)); }},
    {"reciprocal", lc::reciprocal, [](const C& z) { return 1.0 / z; }},
    {"sgn", lc::sgn, [](const C& z) { return z / std::abs(z); }},
};
#undef F

TEST(Complex, FunctionsAgreeWithTheStandardLibrary) {
  for (const Function& f : kFunctions)
    for (const DType type : {DType::F64, DType::F32}) {
      std::vector<C> v = numbers(60, 7);
      for (const C& z : numbers(20, 8, 1e-3)) v.push_back(z);
      for (const C& z : numbers(20, 9, 12)) v.push_back(z);
      std::vector<C> expected;
      for (const C& z : v) expected.push_back(f.theirs(z));
      Checked reference(type), compiled(type);
      const double relative = type == DType::F64 ? 1e-13 : 1e-6;
      expect_near(reference.by_reference(f.ours(reference.input(v))), expected, relative, f.name);
      expect_near(compiled.compiled(f.ours(compiled.input(v))), expected, relative, f.name);
    }
}

// Two rows of three, combined with scalars, real tensors, views and sums.
TEST(Complex, MixesWithRealNumbersAndMovesAsTensorsDo) {
  const std::vector<C> v = numbers(6, 3);
  const auto made = [&](const std::function<Complex(Graph&, const Complex&)>& f) {
    Checked c(DType::F64);
    return c.by_reference(f(c.g, c.input(v, {2, 3})));
  };
  const auto each = [&](const std::function<C(const C&)>& f) {
    std::vector<C> out;
    for (const C& z : v) out.push_back(f(z));
    return out;
  };
  using Z = const Complex&;
  const C i(0, 1);
  expect_near(made([](Graph&, Z z) { return 2.0 * z + 1; }), each([](const C& z) { return 2.0 * z + 1.0; }), 1e-15,
              "2z + 1");
  expect_near(made([](Graph&, Z z) { return 3 - z / 4.0; }), each([](const C& z) { return 3.0 - z / 4.0; }), 1e-15,
              "3 - z/4");
  expect_near(made([](Graph&, Z z) { return 1.0 / z - 2; }), each([](const C& z) { return 1.0 / z - 2.0; }), 1e-14,
              "1/z - 2");
  expect_near(made([](Graph&, Z z) {
                return z * full_like(z, {0, 1});
              }),
              each([&](const C& z) { return z * i; }), 0, "iz");
  // broadcasts a row of real numbers over two rows, and a column along a new axis
  expect_near(made([](Graph& g, Z z) { return z * arange(g, 3, DType::F64); }),
              {v[0] * 0.0, v[1], 2.0 * v[2], v[3] * 0.0, v[4], 2.0 * v[5]}, 1e-15, "z * real");
  expect_near(made([](Graph& g, Z z) { return z.slice(1, 0, 1) + arange(g, 2, DType::F64); }),
              {v[0], v[0] + 1.0, v[3], v[3] + 1.0}, 1e-15, "z + real");
  expect_near(made([](Graph&, Z z) { return sum(z, 0); }), {v[0] + v[3], v[1] + v[4], v[2] + v[5]}, 1e-15, "sum");
  expect_near(made([](Graph&, Z z) { return mean(z, 1); }), {(v[0] + v[1] + v[2]) / 3.0, (v[3] + v[4] + v[5]) / 3.0},
              1e-15, "mean");
  expect_near(made([](Graph&, Z z) { return cumsum(z, 0); }), {v[0], v[1], v[2], v[0] + v[3], v[1] + v[4], v[2] + v[5]},
              1e-15, "cumsum");
  expect_near(made([](Graph&, Z z) { return z[1]; }), {v[3], v[4], v[5]}, 0, "z[1]");
  expect_near(made([](Graph&, Z z) { return z.transpose(0, 1).reshape({6}).flip(0); }),
              {v[5], v[2], v[4], v[1], v[3], v[0]}, 0, "moved");
  expect_near(made([](Graph&, Z z) { return cat({z.select(1, 0).unsqueeze(1), z.slice(1, 1, 3)}, 1); }), v, 0, "cat");
  expect_near(made([](Graph&, Z z) { return stack({z[0], z[1]}); }), v, 0, "stack");
  expect_near(made([](Graph&, Z z) { return fft::fftshift(z, {1}); }), {v[2], v[0], v[1], v[5], v[3], v[4]}, 0,
              "fftshift");
  expect_near(made([](Graph&, Z z) { return z.each([](const Tensor& part) { return roll(part, 1, 1); }); }),
              {v[2], v[0], v[1], v[5], v[3], v[4]}, 0, "each");
}

TEST(Complex, AnInfinitePartTimesARealNumberLeavesTheOtherOneAlone) {
  Checked c(DType::F64);
  const std::vector<C> r = c.by_reference(c.input({{INFINITY, 1}}) * 2.0);
  EXPECT_EQ(r[0], C(INFINITY, 2));
}

TEST(Complex, ErrorsOfViewsNameTheCallersLine) {
  Checked c(DType::F64);
  const Complex z = c.input(numbers(6, 3), {2, 3});
  EXPECT_PRED2(contains, error_of([&] { z.reshape({5}); }), "complex_test.cpp");
}

// Each part is accurate by itself, not only relative to the larger one.
TEST(Complex, SmallPartsKeepTheirDigits) {
  const std::vector<C> v = {{1e-9, 2}, {2, 1e-9}, {1 + 1e-9, 1e-9}, {-1, 1e-12}, {30, 1e-3}, {1e-5, 1e-7}};
  for (const char* name : {"log", "sqrt", "tanh", "asin", "atanh", "asinh"})
    for (const Function& f : kFunctions) {
      if (f.name != std::string(name)) continue;
      Checked c(DType::F64);
      const std::vector<C> r = c.by_reference(f.ours(c.input(v)));
      for (std::size_t k = 0; k < v.size(); ++k) {
        const C e = f.theirs(v[k]);
        EXPECT_LE(std::abs(r[k].real() - e.real()), 1e-9 * std::abs(e.real()) + 1e-24) << name << v[k] << r[k] << e;
        EXPECT_LE(std::abs(r[k].imag() - e.imag()), 1e-9 * std::abs(e.imag()) + 1e-24) << name << v[k] << r[k] << e;
      }
    }
}

TEST(Complex, SpecialNumbers) {
  const double inf = kInf;
  Checked c(DType::F64);
  const Complex z = c.input({{-1, 0.0}, {-1, -0.0}, {0, 0}, {-inf, 3}, {5, inf}, {1000, 0}});
  const Complex r = sqrt(z);
  const std::vector<C> roots = c.by_reference(r);
  EXPECT_EQ(roots[0], C(0, 1));
  EXPECT_EQ(roots[1], C(0, -1));  // the other side of the branch cut
  EXPECT_EQ(roots[2], C(0, 0));
  EXPECT_EQ(roots[4], C(inf, inf));
  Checked d(DType::F64);
  const std::vector<C> powers =
      d.by_reference(exp(d.input({{-1, 0.0}, {-1, -0.0}, {0, 0}, {-inf, 3}, {5, 1}, {1000, 0}})));
  EXPECT_EQ(powers[3], C(0, 0));
  EXPECT_EQ(powers[5], C(inf, 0));
  Checked p(DType::F64);
  const std::vector<C> at_zero =
      p.by_reference(pow(p.input({{0, 0}, {0, 0}, {2, 0}}), p.input({{0, 0}, {2, 1}, {-1, 0}})));
  EXPECT_EQ(at_zero[0], C(1, 0));
  EXPECT_EQ(at_zero[1], C(0, 0));
  EXPECT_NEAR(std::abs(at_zero[2] - C(0.5, 0)), 0, 1e-15);
}

TEST(Complex, Arithmetic) {
  const std::vector<C> a = numbers(20, 1), b = numbers(20, 2);
  const auto check = [&](const char* name, Complex (*ours)(const Complex&, const Complex&), auto theirs) {
    std::vector<C> expected;
    for (std::size_t k = 0; k < a.size(); ++k) expected.push_back(theirs(a[k], b[k]));
    Checked c(DType::F64);
    const Complex p = c.input(a), q = c.input(b);
    expect_near(c.by_reference(ours(p, q)), expected, 1e-13, name);
    Checked d(DType::F32);
    const Complex x = d.input(a), y = d.input(b);
    expect_near(d.compiled(ours(x, y)), expected, 4e-6, name);
  };
  check("+", lc::operator+, [](C x, C y) { return x + y; });
  check("-", lc::operator-, [](C x, C y) { return x - y; });
  check("*", lc::operator*, [](C x, C y) { return x * y; });
  check("/", lc::operator/, [](C x, C y) { return x / y; });
  check("pow", lc::pow, [](C x, C y) { return std::pow(x, y); });
  // squares of the divisor would overflow
  Checked c(DType::F64);
  const Complex x = c.input({{1e200, 2e200}}), y = c.input({{3e200, -1e200}});
  expect_near(c.by_reference(x / y), {C(0.1, 0.7)}, 1e-14, "large quotient");
}

TEST(Complex, PartsArePromotedAndChecked) {
  Graph g;
  const Complex z = complex(g.input("a", {3}, DType::I32), g.input("b", {2, 1}, DType::F16));
  EXPECT_EQ(z.dtype(), DType::F32);
  EXPECT_EQ(str(z.shape()), "[2, 3]");
  EXPECT_EQ(str(view_as_real(z).shape()), "[2, 3, 2]");
  EXPECT_EQ(str(view_as_complex(view_as_real(z)).shape()), "[2, 3]");
  const Tensor three = g.input("c", {4, 3});
  EXPECT_NE(error_of([&] { view_as_complex(three); }).find("the last axis has two elements"), std::string::npos);
}

std::vector<C> sums(const std::vector<C>& x, double sign) {
  const std::size_t n = x.size();
  std::vector<C> r;
  for (std::size_t k = 0; k < n; ++k) {
    std::complex<long double> s = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const long double t = sign * 2 * std::numbers::pi_v<long double> * static_cast<long double>(j * k % n) /
                            static_cast<long double>(n);
      s += std::complex<long double>(x[j]) * std::complex<long double>(std::cos(t), std::sin(t));
    }
    r.emplace_back(s);
  }
  return r;
}
double norm_of(const std::vector<C>& v) {
  double s = 0;
  for (const C& c : v) s += std::norm(c);
  return std::sqrt(s);
}
void expect_close(const std::vector<C>& a, const std::vector<C>& b, double relative, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  std::vector<C> d;
  for (std::size_t k = 0; k < a.size(); ++k) d.push_back(a[k] - b[k]);
  EXPECT_LE(norm_of(d), relative * (1e-300 + norm_of(b))) << what;
}

// Lengths for the direct sum, products of small factors, large primes and multiples of them.
TEST(Fft, EveryKindOfLength) {
  for (const int n : {1, 2, 3, 16, 61, 64, 65, 67, 100, 128, 134, 210, 256, 257, 400, 1024, 1031}) {
    const std::vector<C> x = numbers(n, static_cast<std::uint32_t>(n));
    const std::string what = str_cat("of ", n);
    Checked wide(DType::F64);
    expect_close(wide.compiled(fft::fft(wide.input(x))), sums(x, -1), 1e-13, what);
    Checked narrow(DType::F32);
    expect_close(narrow.compiled(fft::fft(narrow.input(x))), sums(x, -1), 1e-6, what);
    Checked back(DType::F64);
    expect_close(back.compiled(fft::ifft(fft::fft(back.input(x)))), x, 1e-13, what);
  }
  const std::vector<C> x = numbers(67, 5);
  Checked reference(DType::F64);
  expect_close(reference.by_reference(fft::fft(reference.input(x))), sums(x, -1), 1e-13, "the reference");
}

TEST(Fft, RealOnesAreHalfOfTheOthers) {
  for (const int n : {1, 2, 5, 8, 31, 64, 90, 131}) {
    std::vector<C> x = numbers(n, static_cast<std::uint32_t>(n));
    for (C& c : x) c = c.real();
    std::vector<C> half = sums(x, -1);
    half.resize(static_cast<std::size_t>(n / 2 + 1));
    Checked c(DType::F64);
    const std::vector<C> got = c.compiled(fft::rfft(c.input(x).real));
    expect_close(got, half, 1e-13, str_cat("of ", n));
    EXPECT_EQ(got.front().imag(), 0) << n;  // exactly, as PyTorch has it
    if (n % 2 == 0) {
      EXPECT_EQ(got.back().imag(), 0) << n;
    }
    Checked d(DType::F64);
    const Tensor back = fft::irfft(fft::rfft(d.input(x).real), n);
    expect_close(d.compiled({back, back * 0.0}), x, 1e-13, str_cat("back of ", n));
  }
}

TEST(Fft, LengthsAxesAndNorms) {
  const std::vector<C> x = numbers(12, 3);  // [3, 4]
  Checked c(DType::F64);
  const Complex z = c.input(x, {3, 4});
  EXPECT_EQ(str(fft::fft(z, 7, 0).shape()), "[7, 4]");
  EXPECT_EQ(str(fft::rfft(z.real, 7).real.shape()), "[3, 4]");
  EXPECT_EQ(str(fft::irfft(z).shape()), "[3, 6]");
  // over both axes: rows, then columns
  std::vector<C> expected(12);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto row = sums({x.begin() + static_cast<long>(4 * i), x.begin() + static_cast<long>(4 * i + 4)}, -1);
    std::ranges::copy(row, expected.begin() + static_cast<long>(4 * i));
  }
  for (std::size_t j = 0; j < 4; ++j) {
    const auto column = sums({expected[j], expected[4 + j], expected[8 + j]}, -1);
    for (std::size_t i = 0; i < 3; ++i) expected[4 * i + j] = column[i] / std::sqrt(12.0);
  }
  expect_close(c.compiled(fft::fftn(z, {-1, -2}, fft::Norm::Ortho)), expected, 1e-13, "both axes");
  // truncated, and padded with zeros
  Checked d(DType::F64);
  const Complex y = d.input(numbers(6, 4));
  std::vector<C> longer = numbers(6, 4), shorter = longer;
  longer.resize(9), shorter.resize(4);
  for (C& v : longer) v /= 9;
  expect_close(d.compiled(fft::fft(y, 9, 0, fft::Norm::Forward)), sums(longer, -1), 1e-13, "longer");
  Checked e(DType::F64);
  expect_close(e.compiled(fft::fft(e.input(numbers(6, 4)), 4)), sums(shorter, -1), 1e-13, "shorter");
  Graph g;
  const Tensor open = g.input("x", {Dim::symbol("n", 1, 9)}), none = g.input("y", {0});
  EXPECT_PRED2(contains, error_of([&] { fft::rfft(open); }),
               "rfft: the length of the axis is n in [n], and has to be a number: give the input a fixed size");
  EXPECT_PRED2(contains, error_of([&] { fft::rfft(none); }),
               "rfft: the axis of [0] is empty: it needs at least one element");
  EXPECT_NE(error_of([&] { fft::rfft(open, -2); }).find("rfft"), std::string::npos);
}

TEST(Fft, Frames) {
  // 20 samples in frames of 8 with hop 4, centred and windowed
  std::vector<C> x = numbers(20, 11);
  std::vector<double> s;
  for (C& v : x) v = v.real(), s.push_back(v.real());
  std::vector<C> expected(5 * 6);
  for (int frame = 0; frame < 6; ++frame) {
    std::vector<C> f;
    for (int k = 0; k < 8; ++k) {
      int at = 4 * frame + k - 4;
      at = at < 0 ? -at : at > 19 ? 38 - at : at;
      f.emplace_back(s[static_cast<std::size_t>(at)] * (0.5 - 0.5 * std::cos(2 * std::numbers::pi * k / 8)));
    }
    const auto y = sums(f, -1);
    for (std::size_t k = 0; k < 5; ++k) expected[k * 6 + static_cast<std::size_t>(frame)] = y[k];
  }
  Checked c(DType::F64);
  const Complex z =
      fft::stft(c.input(x).real, {.n_fft = 8, .hop_length = 4}, fft::hann_window(c.g, 8, true, DType::F64));
  EXPECT_EQ(str(z.shape()), "[5, 6]");
  expect_close(c.compiled(z), expected, 1e-13, "stft");
  // a window of 5 equals a window of 8 with one zero before it and two after it
  const std::vector<C> padded{0, 1, 2, 3, 4, 5, 0, 0};
  const auto windowed = [&](const std::vector<C>& window) {
    Checked w(DType::F64);
    return w.by_reference(fft::stft(w.input(x).real, {.n_fft = 8, .hop_length = 4}, w.input(window).real));
  };
  EXPECT_EQ(windowed({1, 2, 3, 4, 5}), windowed(padded));
  EXPECT_NE(std::abs(windowed(padded)[1]), 0);
  Checked wrong(DType::F64);
  const Tensor in = wrong.input(x).real, window = wrong.input(padded).real;
  EXPECT_PRED2(contains, error_of([&] { fft::stft(in, {}); }), "stft: it needs the length of a frame: {.n_fft = 400}");
  EXPECT_PRED2(contains, error_of([&] { fft::stft(in, {.n_fft = 4}, window); }),
               "stft: a window [8] for frames of n_fft = 4: it has one axis of 1 to 4 elements");
  Checked d(DType::F32);
  const Tensor f = fft::fftfreq(d.g, 5, 0.5), r = fft::rfftfreq(d.g, 5, 0.5);
  const auto got = d.by_reference({f, f});
  EXPECT_NEAR(got[2].real(), 0.8, 1e-6);
  EXPECT_NEAR(got[3].real(), -0.8, 1e-6);
  EXPECT_EQ(str(r.shape()), "[3]");
  Checked five(DType::F64);
  const Complex z5 = five.input({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}});
  const std::vector<C> shifted = five.by_reference({fft::fftshift(z5.real, {0}), fft::ifftshift(z5.real, {-1})});
  EXPECT_EQ(shifted[0], C(3, 2));  // 3 4 0 1 2 and 2 3 4 0 1
  EXPECT_EQ(shifted[4], C(2, 1));
}

// The power of a signal equals that of its transform, so the derivative is 2 x, for any length.
TEST(Fft, HasADerivative) {
  for (const int n : {12, 67, 130}) {
    Graph g;
    const Tensor x = g.input("x", {n}, DType::F64);
    const Complex z = fft::fft({x, x * 0.0}, {}, -1, fft::Norm::Ortho);
    const Tensor power = sum(z.real * z.real + z.imag * z.imag, {0});
    g.output("slope", gradients(power, {x})[0]);
    Program p = compile(g, generic() | test::device());
    Context c(p);
    std::vector<double> v;
    for (const C& z : numbers(n, 2)) v.push_back(z.real());
    c.set_bytes("x", v.data(), v.size() * sizeof(double)).run();
    const auto slope = c.get_f64("slope");
    for (std::size_t k = 0; k < v.size(); ++k) EXPECT_NEAR(slope[k], 2 * v[k], 1e-10) << n;
  }
}

}  // namespace
