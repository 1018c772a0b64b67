// Functions of one number against the C library in double precision, over all magnitudes.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

struct Function {
  const char* name;
  Tensor (*build)(Operand);
  double (*exact)(double);
  double low, high;  // magnitudes, drawn evenly by their logarithm
  bool negative;     // numbers below 0 too
  double f32, f64;   // allowed relative error
};

// An error of one unit in the last place of an argument x costs exp |x| units.
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

// The largest relative error over `n` arguments, and where it is.
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
  const double tiny = type == DType::F32 ? 1e-37 : 1e-300;  // below which precision fades
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
      RecordProperty(cat(f.name, "_", name(type)), cat(error));
    }
}
