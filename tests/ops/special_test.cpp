// Special functions, bit operations and statistics give torch's values, types and gradients
// (tests/goldens/special.txt).
#include "lightcone/ops/special/special.h"

#include <cmath>

#include "error_of.h"
#include "on_device.h"
#include "torch_cases.h"

using namespace lc;

namespace {

using T = const std::vector<Tensor>&;

Tensor some_q(const Tensor& t) {
  std::vector<Tensor> q;
  for (const double v : {0.0, 0.3, 0.5, 0.81, 1.0}) q.push_back(full(t.graph(), {}, v, t.dtype()));
  return stack(q, 0);
}

#define U(f)                                             \
  {                                                      \
    #f, [](Graph&, T t) { return std::vector{f(t[0])}; } \
  }
#define D(f)                                                   \
  {                                                            \
    #f, [](Graph&, T t) { return std::vector{f(t[0], t[1])}; } \
  }
#define B(n, ...)                                                   \
  {                                                                 \
    n, [](Graph&, T t) { return std::vector<Tensor>{__VA_ARGS__}; } \
  }
#define G(n, ...)                                                   \
  {                                                                 \
    n, [](Graph& g, T) { return std::vector<Tensor>{__VA_ARGS__}; } \
  }
#define E(n, ...)                       \
  {                                     \
    n, [](Graph&, T t) {                \
      const auto [p, q] = __VA_ARGS__;  \
      return std::vector<Tensor>{p, q}; \
    }                                   \
  }
#define Q(n)                                                   \
  B("quantile " n, quantile(t[0], some_q(t[0]), 1, false, n)), \
      B("nanquantile " n, nanquantile(t[0], some_q(t[0]), 1, false, n))
// clang-format off
const TorchBuilders kBuilders{
    U(lgamma), U(digamma), U(erfinv), U(i0), U(sinc), U(deg2rad), U(rad2deg), D(ldexp),
    B("polygamma 0", polygamma(0, t[0])), B("polygamma 1", polygamma(1, t[0])), B("polygamma 2", polygamma(2, t[0])), B("polygamma 3", polygamma(3, t[0])), B("polygamma 6", polygamma(6, t[0])),
    E("frexp", frexp(t[0])), D(isin), B("isin not", isin(t[0], t[1], true)),
    B("addcmul", addcmul(t[0], t[1], t[2], -0.5)), B("addcdiv", addcdiv(t[0], t[1], t[2], 2)), B("addcmul whole", addcmul(t[0], t[1], t[2], 3)),
    D(copysign), B("copysign number", copysign(t[0], -0.0)), D(nextafter), D(heaviside), D(fmax), D(fmin), D(isclose), B("isclose nan", isclose(t[0], t[1], 0.1, 0.5, true)), D(allclose),
    U(bitwise_not), D(bitwise_and), D(bitwise_or), D(bitwise_xor), D(bitwise_left_shift), D(bitwise_right_shift), D(gcd), D(lcm),
    B("nansum", nansum(t[0], {1})), B("nanmean", nanmean(t[0], {1}, true)), B("median all", median(t[0])), B("nanmedian all", nanmedian(t[0])),
    E("median", median(t[0], 1)), E("nanmedian", nanmedian(t[0], 1, true)), E("kthvalue", kthvalue(t[0], 2, 0)), E("kthvalue keep", kthvalue(t[0], 4, -1, true)), E("mode", mode(t[0], 1)),
    Q("linear"), Q("lower"), Q("higher"), Q("nearest"), Q("midpoint"), B("quantile one", quantile(t[0], 0.35, 0, true)), B("quantile all", quantile(t[0], 0.35)), B("quantile all keep", quantile(t[0], t[1], {}, true)),
    E("cummax", cummax(t[0], 1)), E("cummin", cummin(t[0], -1)), D(searchsorted), D(bucketize), B("searchsorted right", searchsorted(t[0], t[1], true)), B("bucketize right", bucketize(t[0], t[1], true)),
    B("histc", histc(t[0], 4, -1, 3)), B("histc range", histc(t[0], 5)), B("bincount", bincount(t[0], 6)), B("bincount weights", bincount(t[0], t[1], 6)),
    U(cov), B("cov 0", cov(t[0], 0)), U(corrcoef), B("trapezoid", trapezoid(t[0], 0.5, 0)), B("trapezoid x", trapezoid(t[0], t[1])), B("cumulative_trapezoid", cumulative_trapezoid(t[0], 0.5, 0)), B("cumulative_trapezoid x", cumulative_trapezoid(t[0], t[1])),
    G("logspace", logspace(g, -2, 2, 5)), G("logspace 2", logspace(g, 0, 4, 4, 2, DType::F64)), {"meshgrid", [](Graph&, T t) { return meshgrid(t); }}, {"meshgrid xy", [](Graph&, T t) { return meshgrid(t, "xy"); }},
};
// clang-format on

TEST(Special, AnswersAsTorchDoes) { hold_against_torch("special.txt", kBuilders, {.f64 = 1e-12, .slopes = 1e-10}, 80); }

// If a product were rounded in one place and not in another, its floor and its remainder would not fit.
TEST(Special, TheFloorOfAProductIsWhole) {
  for (const DType type : {DType::F32, DType::F64}) {
    Graph g;
    const Tensor a = g.input("a", {64}, type), b = g.input("b", {64}, type);
    floor(a * b).retrieve("floor");
    to(floor(a * b), DType::I64).retrieve("whole");
    std::map<std::string, Value> in{{"a", make_value(type, {64})}, {"b", make_value(type, {64})}};
    for (int k = 0; k < 64; ++k) {
      const double x = 0.3 + 0.01 * k;
      in["a"].f[static_cast<std::size_t>(k)] = type == DType::F32 ? static_cast<float>(x) : x;
      in["b"].f[static_cast<std::size_t>(k)] = k % 7;
    }
    const auto r = run_values(transform(g, generic() | test::device({.threads = 1})).graph, in, {}).outputs;
    for (std::size_t k = 0; k < 64; ++k) {
      const double x = in["a"].f[k], y = in["b"].f[k];
      const double product = type == DType::F32 ? static_cast<float>(x) * static_cast<float>(y) : x * y;
      EXPECT_EQ(r.at("floor").f[k], std::floor(product)) << x << " * " << y;
      EXPECT_EQ(r.at("whole").i[k], static_cast<std::int64_t>(std::floor(product))) << x << " * " << y;
    }
  }
}

// Compares all bits, which the goldens' tolerance does not.
TEST(Special, NextAfterIsTheNeighbour) {
  Graph g;
  const Tensor x = g.input("x", {400}), y = g.input("y", {400});
  nextafter(x, y).retrieve("next");
  std::map<std::string, Value> in{{"x", make_value(DType::F32, {400})}, {"y", make_value(DType::F32, {400})}};
  for (int k = 0; k < 400; ++k) {
    in["x"].f[static_cast<std::size_t>(k)] =
        std::ldexp(k % 3 ? 1.0F : 1.7F + 0.001F * static_cast<float>(k), k - 180) * (k % 2 ? 1 : -1);
    in["y"].f[static_cast<std::size_t>(k)] = k % 5 < 2 ? kInf : -1e-3;
  }
  for (double& v : in["x"].f) v = static_cast<float>(v);
  const auto r = run_values(transform(g, generic() | test::device({.threads = 1})).graph, in, {}).outputs;
  for (std::size_t k = 0; k < 400; ++k)
    EXPECT_EQ(r.at("next").f[k], std::nextafter(static_cast<float>(in["x"].f[k]), static_cast<float>(in["y"].f[k])))
        << in["x"].f[k] << " to " << in["y"].f[k];
}

// Zeros and slopes that cancellation would destroy.
TEST(Special, KeepsItsDigits) {
  Graph g;
  const Tensor x = g.input("x", {4}, DType::F64), t = g.input("t", {3}, DType::F64);
  lgamma(x).retrieve("lgamma");
  gradient(sum(sinc(t)), t).retrieve("slope");
  std::map<std::string, Value> in{{"x", make_value(DType::F64, {4})}, {"t", make_value(DType::F64, {3})}};
  in["x"].f = {1 + 0x1p-30, 2 - 0x1p-30, 1, 2};
  in["t"].f = {1e-8, 0.015, 0.017};
  const auto r = interpret(g, in).outputs;
  for (std::size_t k = 0; k < 4; ++k) {
    const double want = std::lgamma(in["x"].f[k]);
    EXPECT_NEAR(r.at("lgamma").f[k], want, 1e-14 * std::abs(want)) << k;
  }
  const auto slope = [](double v) {  // the slope of the series of sin(u) / u
    const double u = 3.141592653589793 * v, s = u * u;
    return 3.141592653589793 * u * (-1.0 / 3 + s * (1.0 / 30 - s * (1.0 / 840 - s / 45360)));
  };
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_NEAR(r.at("slope").f[k], slope(in["t"].f[k]), 1e-11 * std::abs(slope(in["t"].f[k])));
}

// Without the CPU's kernel, the definition is computed.
TEST(Special, BitsByTheirDefinition) {
  Graph g;
  const Tensor a = g.input("a", {4}, DType::I64), b = g.input("b", {4}, DType::I64);
  bitwise_xor(a, b).retrieve("xor");
  std::map<std::string, Value> in{{"a", make_value(DType::I64, {4})}, {"b", make_value(DType::I64, {4})}};
  in["a"].i = {-1, INT64_MIN, 0x0123456789ABCDEF, 5}, in["b"].i = {INT64_MAX, 1, -0x0FEDCBA987654321, 3};
  const auto r = run_values(transform(g, primitives_only()).graph, in, {}).outputs;
  for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(r.at("xor").i[k], in["a"].i[k] ^ in["b"].i[k]);
}

TEST(Special, Mistakes) {
  Graph g;
  const Tensor a = g.input("a", {3, 4}), i = g.input("i", {3}, DType::I64), none = g.input("none", {2, 0});
  const auto expect = [](const std::function<void()>& f, const std::string& sentence) {
    expect_error(f, sentence, "special_test.cpp");
  };
  expect([&] { bitwise_and(a, a); }, "bitwise_and: is for integers and bool, not f32");
  expect([&] { bitwise_left_shift(prim::cast(i, DType::Bool), prim::cast(i, DType::Bool)); },
         "bitwise_left_shift: is for integers, not bool");
  expect([&] { addcdiv(i, i, i); }, "addcdiv: divides floating types, not i64 by i64");
  expect([&] { median(none, 1); }, "median: axis 1 of [2, 0] has no elements");
  expect([&] { kthvalue(a, 5); }, "kthvalue: k is 5, axis 1 of [3, 4] has 4 elements");
  expect([&] { quantile(a, 1.5); }, "quantile: q is in [0, 1], not 1.5");
  expect([&] { quantile(a, 0.5, {}, false, "nearer"); },
         "quantile: interpolation is \"linear\", \"lower\", \"higher\", \"nearest\" or \"midpoint\", not \"nearer\"");
  expect([&] { quantile(i, 0.5); }, "quantile: needs a floating type, not i64");
  expect(
      [&] {
        searchsorted(a, g.input("v", {2, 5}));
      },
      "searchsorted: [3, 4] and values [2, 5] differ before the last axis");
  expect([&] { histc(a, 0); }, "histc: 0 bins");
  expect([&] { bincount(a, 4); }, "bincount: needs a vector of integers, not f32 [3, 4]");
  expect(
      [&] {
        cov(g.input("c", {2, 2, 2}));
      },
      "cov: needs [variables, observations] or [observations], not [2, 2, 2]");
  expect([&] { trapezoid(a, i); }, "trapezoid: 3 points for axis 1 of [3, 4]");
  expect([&] { meshgrid({a}); }, "meshgrid: needs vectors, not [3, 4]");
}

TEST(Special, EveryPassAgreesOnWildNumbers) { EXPECT_GT(verify_cases("special.txt", kBuilders), 1000u); }

}  // namespace
