// Functions of one number stay within the bounds of docs/accuracy.md on edge values and random bits. MPFR checks the
// f64 judge.
//
// The program `accuracy` tries all of f32.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>

#include "accuracy.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/backends/cpu/target/target.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

struct Function {
  const char* name;
  Tensor (*build)(Operand);
  double (*exact)(double);
  double low, high;  // magnitudes, with uniformly distributed logarithms
  bool negative;     // also draws negative numbers
  double f32, f64;   // allowed relative errors
};

// For exp, an error of one unit in the last place of the argument x costs |x| units.
const std::vector<Function> kFunctions{
    {"exp", exp, std::exp, 1e-30, 80, true, 8e-6, 2e-14},
    {"exp2", exp2, std::exp2, 1e-30, 120, true, 5e-7, 1e-15},
    {"expm1", expm1, std::expm1, 1e-30, 80, true, 8e-6, 2e-14},
    {"log", log, std::log, 1e-30, 1e30, false, 5e-7, 1e-15},
    {"log2", log2, std::log2, 1e-30, 1e30, false, 5e-7, 1e-15},
    {"log10", log10, std::log10, 1e-30, 1e30, false, 5e-7, 1e-15},
    {"log1p", log1p, std::log1p, 1e-30, 1e30, false, 1e-6, 2e-15},
    {"sqrt", sqrt, std::sqrt, 1e-30, 1e30, false, 2e-7, 3e-16},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 1e-30, 1e30, false, 3e-7, 5e-16},
    {"sin", sin, std::sin, 1e-30, 100, true, 2e-6, 1e-13},
    {"cos", cos, std::cos, 1e-30, 100, true, 2e-6, 1e-13},
    {"tan", tan, std::tan, 1e-30, 100, true, 4e-6, 1e-13},
    {"tanh", tanh, std::tanh, 1e-30, 30, true, 2e-6, 2e-15},
    {"sinh", sinh, std::sinh, 1e-30, 80, true, 1e-5, 2e-14},
    {"cosh", cosh, std::cosh, 1e-30, 80, true, 1e-5, 2e-14},
    {"asin", asin, std::asin, 1e-30, 1, true, 1e-6, 2e-15},
    {"acos", acos, std::acos, 1e-30, 1, true, 1e-6, 2e-15},
    {"atan", atan, std::atan, 1e-30, 1e30, true, 5e-7, 1e-15},
    {"asinh", asinh, std::asinh, 1e-30, 1e30, true, 1e-6, 2e-15},
    {"acosh", acosh, std::acosh, 1, 1e30, false, 2e-6, 3e-15},
    {"atanh", atanh, std::atanh, 1e-30, 1, true, 2e-6, 5e-15},
    {"erf", erf, std::erf, 1e-30, 30, true, 5e-7, 2e-15},
    {"erfc", erfc, std::erfc, 1e-30, 8, true, 5e-7, 2e-14},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 1e-30, 80, true, 8e-6, 2e-14},
    {"logsigmoid", logsigmoid, [](double x) { return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); },
     1e-30, 80, true, 8e-6, 2e-14},
};

// Returns the largest relative error over `n` arguments, and its argument.
std::pair<double, double> worst(const Function& f, DType type, int n) {
  Graph g;
  g.output("y", to(f.build(to(g.input("x", {n}, type), type)), DType::F64));
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> magnitude(std::log(f.low), std::log(f.high));
  std::vector<double> wide;
  std::vector<float> narrow;
  for (int k = 0; k < n; ++k) {
    double x = std::exp(magnitude(random));
    if (k % 3 == 0) x = std::uniform_real_distribution<double>(f.low, std::min(f.high, 10.0))(random);
    if (f.negative && random() % 2) x = -x;
    if (type == DType::F32) x = static_cast<float>(x);
    wide.push_back(x);
    narrow.push_back(static_cast<float>(x));
  }
  Context c(compile(g, generic() | cpu()));
  if (type == DType::F32) c.set_bytes("x", narrow.data(), narrow.size() * 4);
  else c.set_bytes("x", wide.data(), wide.size() * 8);
  const std::vector<double> y = c.run().get_f64("y");
  std::pair<double, double> r{0, 0};
  const double tiny = type == DType::F32 ? 1e-37 : 1e-300;  // below it, precision is lost gradually
  for (std::size_t k = 0; k < y.size(); ++k) {
    const double want = f.exact(wide[k]);
    if (std::fabs(want) < tiny) continue;
    const double error = std::fabs(y[k] - want) / std::fabs(want);
    if (!(error <= r.first)) r = {error, wide[k]};
  }
  return r;
}

}  // namespace

TEST(OpsAccuracy, RelativeErrorOverAllMagnitudes) {
  for (const Function& f : kFunctions)
    for (const DType type : {DType::F32, DType::F64}) {
      const auto [error, at] = worst(f, type, 20000);
      const double allowed = type == DType::F32 ? f.f32 : f.f64;
      EXPECT_LE(error, allowed) << f.name << " of " << name(type) << " at " << at;
      RecordProperty(str_cat(f.name, "_", name(type)), str_cat(error));
    }
}

namespace {

// Edge cases: powers of two, 0 and their neighbours; numbers next to multiples of pi / 2, where sines and cosines lose
// most digits, and of ln 2; numbers where formulas change; denormals; random bits.
std::vector<float> samples(std::size_t random_ones) {
  std::vector<float> x;
  const auto around = [&](double v) {
    for (const double signed_v : {v, -v}) {
      const auto f = static_cast<float>(signed_v);
      for (const float next : {f, std::nextafter(f, std::numeric_limits<float>::infinity()),
                               std::nextafter(f, -std::numeric_limits<float>::infinity())})
        x.push_back(next);
    }
  };
  x = {0.0f, -0.0f, std::nanf("")};
  for (int e = -149; e < 128; ++e) around(std::exp2(e)), around(1.5 * std::exp2(e));
  for (int k = 1; k < 400; ++k) around(k * std::numbers::pi / 2), around(k * std::numbers::ln2 / 2);
  for (int e = 8; e < 127; ++e)  // multiples of a quarter turn at all magnitudes
    around(std::round(std::exp2(e) / (std::numbers::pi / 2)) * (std::numbers::pi / 2));
  for (const double edge : {0.01, 0.1,  0.25, 0.375, 0.5,  0.55, 0.66, 0.75, 0.99, 2.41421356, 3.0,
                            4.0,  20.0, 87.3, 88.7,  89.4, 1e4,  1e6,  1e7,  1e8,  3e38})
    around(edge);
  std::mt19937 random(11);
  while (random_ones-- > 0) {
    const auto f = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(f)) x.push_back(f);
    x.push_back(std::uniform_real_distribution<float>(-12, 12)(random));
  }
  return x;
}

using Answers = std::map<std::string, std::vector<float>>;

// All functions of one vector of numbers in one program.
Graph everything(std::int64_t n) {
  Graph g;
  const Tensor x = g.input("x", {n}, DType::F32);
  for (const accuracy::Function& f : accuracy::functions()) g.output(f.name, f.build(x));
  return g;
}
Answers compiled(const std::vector<float>& x, const CpuOptions& options) {
  Context c(compile(everything(static_cast<std::int64_t>(x.size())), generic() | cpu(options)));
  c.set_bytes("x", x.data(), x.size() * sizeof(float)).run();
  Answers r;
  for (const accuracy::Function& f : accuracy::functions()) r[f.name] = c.get(f.name);
  return r;
}

void expect_within_bounds(const std::vector<float>& x, const Answers& answers, const std::string& what) {
  for (const accuracy::Function& f : accuracy::functions()) {
    std::vector<double> want(x.size());
    f.exact(x.data(), want.data(), static_cast<long>(x.size()));
    const accuracy::Worst w = accuracy::worst(f, x, answers.at(f.name), want);
    EXPECT_LE(w.ulps, f.bound) << what << ": " << f.name << " of " << str_cat(x[w.at]) << " is "
                               << str_cat(answers.at(f.name)[w.at]) << ", not " << str_cat(want[w.at]);
  }
}

}  // namespace

TEST(OpsAccuracy, WithinDocumentedBoundsThroughC) {
  const std::vector<float> x = samples(30000);
  expect_within_bounds(x, compiled(x, {.threads = 1}), "compiled");
}
TEST(OpsAccuracy, WithinDocumentedBoundsThroughLlvm) {
  if (const backends::cpu::LlvmFound found = backends::cpu::find_llvm(); found.path.empty())
    GTEST_SKIP() << found.problem;
  const std::vector<float> x = samples(30000);
  expect_within_bounds(x, compiled(x, {.threads = 1, .jit = {.compiler = "llvm"}}), "LLVM");
}
// The definitions themselves, computed in f64, against which verify() checks everything.
TEST(OpsAccuracy, DefinitionsAreWithinTheBounds) {
  const std::vector<float> x = samples(1000);
  const auto n = static_cast<std::int64_t>(x.size());
  const Results r = interpret(everything(n), {{"x", read_value(x.data(), DType::F32, {n})}});
  Answers answers;
  for (const auto& [name, value] : r.outputs) answers[name].assign(value.f.begin(), value.f.end());
  expect_within_bounds(x, answers, "definition");
}
namespace {

double root_mean_square(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum / static_cast<double>(x.size()));
}
// Computes `f` in f32 for numbers that are spread evenly from low to high.
std::vector<float> spread_over(Tensor (*f)(Operand), float low, float high, std::vector<float>& x) {
  constexpr std::int64_t n = 1 << 16;
  x.resize(n);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = low + (high - low) * (static_cast<float>(k) + 0.5f) / n;
  Graph g;
  g.output("y", f(g.input("x", {n}, DType::F32)));
  Context c(compile(g, generic() | cpu({.threads = 1})));
  return c.set("x", x).run().get("y");
}
Tensor plain_gelu(Operand x) { return gelu(x); }

}  // namespace

// Checks the average error, too: a correctly rounded result has 0.29 units on average; erf's former quotient of
// polynomials had 1.0.
TEST(OpsAccuracy, ErfRoundsLittle) {
  for (const float low : {-4.0f, 0.0f, 1.0f, 2.0f}) {
    std::vector<float> x;
    const std::vector<float> y = spread_over(erf, low, low < 0 ? 0.0f : low + 1, x);
    std::vector<double> units;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double want = std::erf(double{x[k]});
      units.push_back((y[k] - want) / std::exp2(std::floor(std::log2(std::abs(want))) - 23));
    }
    EXPECT_LE(root_mean_square(units), 0.45) << "from " << low;
  }
}
TEST(OpsAccuracy, ErfIsOddAndKeepsItsEnds) {
  constexpr float inf = std::numeric_limits<float>::infinity(), tiny = std::numeric_limits<float>::denorm_min();
  std::vector<float> x{0.0f,
                       tiny,
                       1000 * tiny,
                       0x1p-126f,
                       1e-20f,
                       0.3f,
                       std::nextafter(1.0f, 0.0f),
                       1.0f,
                       1.7f,
                       3.9f,
                       std::nextafter(4.0f, 0.0f),
                       4.0f,
                       std::nextafter(4.0f, 5.0f),
                       1e30f,
                       inf};
  const std::size_t n = x.size();
  for (std::size_t k = 0; k < n; ++k) x.push_back(-x[k]);
  x.push_back(std::nanf(""));
  Graph g;
  const Tensor in = g.input("x", {static_cast<std::int64_t>(x.size())});
  g.output("erf", erf(in)), g.output("gelu", gelu(in));
  Context c(compile(g, generic() | cpu({.threads = 1})));
  const std::vector<float> y = c.set("x", x).run().get("erf"), z = c.get("gelu");
  for (std::size_t k = 0; k < n; ++k)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(y[k]) ^ 0x80000000u, std::bit_cast<std::uint32_t>(y[n + k])) << x[k];
  EXPECT_EQ(std::bit_cast<std::uint32_t>(y[0]), 0u);
  EXPECT_EQ(y[2], std::erf(x[2]));
  for (const std::size_t k : {n - 4, n - 3, n - 2, n - 1}) EXPECT_EQ(y[k], 1.0f) << x[k];
  EXPECT_TRUE(std::isnan(y.back()));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(z[n]), 0x80000000u);  // gelu(-0) is -0
  EXPECT_EQ(z[n - 2], 1e30f);
  EXPECT_EQ(z[n - 1], inf);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(z[2 * n - 2]), 0x80000000u);  // so is gelu far on the left
  EXPECT_TRUE(std::isnan(z.back()));
}
// The arguments of gelu in Whisper's encoder are mostly negative. There, 0.5 x (1 + erf(x / sqrt(2))) loses digits:
// with an erf of 1.0 units, 0.57 of 2^-24 x on average.
TEST(OpsAccuracy, GeluRoundsLittleLeftOfZero) {
  std::vector<float> x;
  const std::vector<float> y = spread_over(plain_gelu, -4, -1, x);
  std::vector<double> of_x;
  for (std::size_t k = 0; k < x.size(); ++k)
    of_x.push_back((y[k] - 0.5 * x[k] * std::erfc(-x[k] * std::numbers::sqrt2 / 2)) / x[k] * 0x1p24);
  EXPECT_LE(root_mean_square(of_x), 0.2);
}
// Chains of 512 products had 1.7 times the error of PyTorch (MKL) at k = 1536. AMX sums in its own way and is excluded.
TEST(OpsAccuracy, ProductsOfManyRowsRoundLittle) {
  constexpr std::int64_t m = 48, n = 64;
  for (const backends::cpu::Isa isa :
       {backends::cpu::Isa::Generic, backends::cpu::Isa::Avx2, backends::cpu::Isa::Avx512, backends::cpu::Isa::Neon})
    for (const std::int64_t k : {384, 1536}) {
      backends::cpu::Target target = isa;
      target.amx = false;
      if (!backends::cpu::runs_here(target)) continue;
      std::mt19937 random(5);
      std::normal_distribution<float> normal;
      std::vector<float> x(static_cast<std::size_t>(m * k)), w(static_cast<std::size_t>(n * k));
      for (std::vector<float>* v : {&x, &w})
        for (float& f : *v) f = normal(random);
      Graph g;
      g.output("y", linear(g.input("x", {m, k}), g.input("w", {n, k})));
      Context c(compile(g, generic() | cpu({.threads = 1, .target = target})));
      const std::vector<float> y = c.set("x", x).set("w", w).run().get("y");
      std::vector<double> want, error;
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < k; ++l)
            sum += double{x[static_cast<std::size_t>(i * k + l)]} * double{w[static_cast<std::size_t>(j * k + l)]};
          want.push_back(sum);
          error.push_back(y[want.size() - 1] - want.back());
        }
      EXPECT_LE(root_mean_square(error), 2.8e-7 * root_mean_square(want)) << str(target) << " " << k;
    }
}
// The double-precision functions are accurate enough to judge samples and the long run.
TEST(OpsAccuracy, DoublePrecisionIsAJudge) {
#if !LIGHTCONE_MPFR
  GTEST_SKIP() << "built without MPFR: tools/setup.sh installs libmpfr-dev";
#else
  const std::vector<float> x = samples(300);
  for (const accuracy::Function& f : accuracy::functions()) {
    std::vector<double> got(x.size());
    f.exact(x.data(), got.data(), static_cast<long>(x.size()));
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double want = f.digits(x[k]).number();
      if (std::isnan(want) && std::isnan(got[k])) continue;
      const bool both_too_large = std::fabs(want) > 1e39 && std::fabs(got[k]) > 1e39 && want * got[k] > 0;
      if (want == got[k] || both_too_large || (std::fabs(want) < 1e-60 && std::fabs(got[k]) < 1e-60)) continue;
      EXPECT_LE(std::fabs(got[k] - want), 0x1p-40 * std::fabs(want)) << f.name << " of " << str_cat(x[k]);
    }
  }
#endif
}
