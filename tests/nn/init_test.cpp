// First values of parameters have the right distributions and structures, and the same bits on every machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "lightcone/base/error.h"
#include "lightcone/nn/init.h"
#include "lightcone/nn/parameter.h"
#include "lightcone/passes/passes.h"
#include "lightcone/random/random_bits.h"
#include "lightcone/runtime/program.h"
#include "on_device.h"
#include "statistics.h"

namespace lc::nn {
namespace {

using init::Extents;
using init::Source;
using init::Values;

constexpr double kUnlikely = 1.95;
const Source kSource{42, "layers.0.weight"};

// ---- the same bits --------------------------------------------------------------------------------

std::uint32_t checksum(const Values& v) {
  std::uint32_t h = 0;
  for (const float x : v) h = h * 31 + std::bit_cast<std::uint32_t>(x);
  return h;
}

// Checksums that were computed once, with GCC 12 on x86-64. Every compiler and processor must reproduce them.
TEST(Init, HasTheSameBitsOnEveryMachine) {
  EXPECT_EQ(checksum(init::uniform({1000}, kSource, -1, 1)), 797728893u);
  EXPECT_EQ(checksum(init::normal({100, 1000}, kSource)), 4147266000u);
  EXPECT_EQ(checksum(init::trunc_normal({1000}, kSource)), 1788985133u);
  EXPECT_EQ(checksum(init::orthogonal({24, 37}, kSource)), 683406245u);
  EXPECT_EQ(checksum(init::sparse({50, 40}, kSource, 0.3)), 2177099432u);
}

TEST(Init, IsAFunctionOfSeedAndName) {
  const auto v = init::normal({100}, kSource);
  EXPECT_EQ(init::normal({100}, kSource), v);
  EXPECT_NE(init::normal({100}, {43, "layers.0.weight"}), v);
  EXPECT_NE(init::normal({100}, {42, "layers.1.weight"}), v);
  const auto other = init::normal({100000}, {42, "layers.1.weight"});
  EXPECT_LT(std::fabs(correlation(init::normal({100000}, kSource), other)), 0.01);
  // the midpoint of one of 2^52 equal intervals, from two words
  const auto words = Philox::words(Philox::counter(0, -1), Philox::key(42, random_stream("layers.0.weight")));
  const double u = (static_cast<double>((std::uint64_t{words[0]} << 32 | words[1]) >> 12) + 0.5) * 0x1p-52;
  EXPECT_EQ(init::uniform({1}, kSource)[0], static_cast<float>(u));
}

TEST(Init, LoadsIntoAProgram) {
  Graph g;
  const Tensor w = parameter(g, "w", {3, 4}, DType::F32).value();
  g.output("y", prim::add(w, w));
  Program p = compile(g, generic() | test::device({.threads = 1}));
  const Values v = init::kaiming_uniform({3, 4}, {1, "w"});
  p.load("w", v.data(), v.size() * sizeof v[0]);
  const auto y = Context(p).run().get("y");
  for (std::size_t k = 0; k < v.size(); ++k) EXPECT_EQ(y[k], 2 * v[k]);
}

// ---- distributions ------------------------------------------------------------------------------------

TEST(Init, Uniform) {
  const auto v = init::uniform({400, 500}, kSource, -3, 5);
  EXPECT_LT(kolmogorov_smirnov(v, [](double x) { return (x + 3) / 8; }), kUnlikely);
  const auto [low, high] = std::minmax_element(v.begin(), v.end());
  EXPECT_GE(*low, -3);
  EXPECT_LT(*high, 5);
  for (const float x : init::uniform({1000}, kSource, 1, 1 + 0x1p-23)) ASSERT_EQ(x, 1);  // never the upper bound
  EXPECT_EQ(init::uniform({2}, kSource, 7, 7), (Values{7, 7}));
}

TEST(Init, Normal) {
  const auto v = init::normal({400, 500}, kSource, 2, 0.5);
  EXPECT_LT(kolmogorov_smirnov(v, [](double x) { return normal_below((x - 2) / 0.5); }), kUnlikely);
  const Moments m = moments(v);
  const auto n = static_cast<double>(v.size());
  EXPECT_NEAR(m.mean, 2, 4 * 0.5 / std::sqrt(n));
  EXPECT_NEAR(m.std, 0.5, 4 * 0.5 / std::sqrt(2 * n));
  EXPECT_NEAR(m.skewness, 0, 4 * std::sqrt(6 / n));
  EXPECT_NEAR(m.kurtosis, 3, 4 * std::sqrt(24 / n));
  EXPECT_EQ(init::normal({3}, kSource, 1, 0), (Values{1, 1, 1}));
}

// Normal numbers are quantiles: the distribution function gives the uniform number back, to the precision of f32.
TEST(Init, NormalNumbersAreQuantiles) {
  const auto u = init::uniform({200000}, kSource), z = init::normal({200000}, kSource);
  for (std::size_t k = 0; k < u.size(); ++k)
    ASSERT_NEAR(normal_below(static_cast<double>(z[k])), static_cast<double>(u[k]), 1.2e-7) << k;
}

TEST(Init, TruncatedNormal) {
  struct Case {
    double mean, std, low, high;
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const Case& c : {Case{0, 1, -2, 2}, Case{1, 0.5, 1.2, 4}, Case{0, 1, 7, 9}, Case{0, 1, -inf, -3},
                        Case{0, 0.02, -2, 2}, Case{5, 2, -inf, inf}}) {
    const auto v = init::trunc_normal({100000}, kSource, c.mean, c.std, c.low, c.high);
    const double side = c.low > c.mean ? -1 : 1;  // the side on which probabilities are accurate
    const auto p = [&](double x) { return normal_below(side * (x - c.mean) / c.std); };
    EXPECT_LT(kolmogorov_smirnov(v, [&](double x) { return (p(x) - p(c.low)) / (p(c.high) - p(c.low)); }), kUnlikely)
        << c.low << " " << c.high;
    const auto [low, high] = std::minmax_element(v.begin(), v.end());
    EXPECT_GE(*low, static_cast<float>(c.low));
    EXPECT_LE(*high, static_cast<float>(c.high));
  }
}

// ---- by the number of connections ----------------------------------------------------------------------

TEST(Init, Fans) {
  const auto f = init::calculate_fans({64, 32, 3, 5});
  EXPECT_EQ(f.in, 32 * 15);
  EXPECT_EQ(f.out, 64 * 15);
  EXPECT_EQ(init::calculate_fans({7, 9}).in, 9);
}

TEST(Init, Gains) {
  using enum init::Nonlinearity;
  EXPECT_EQ(init::calculate_gain(Linear), 1);
  EXPECT_EQ(init::calculate_gain(Sigmoid), 1);
  EXPECT_EQ(init::calculate_gain(Tanh), 5.0 / 3);
  EXPECT_EQ(init::calculate_gain(Relu), std::sqrt(2.0));
  EXPECT_EQ(init::calculate_gain(LeakyRelu), std::sqrt(2 / 1.0001));
  EXPECT_EQ(init::calculate_gain(LeakyRelu, 0.2), std::sqrt(2 / 1.04));
  EXPECT_EQ(init::calculate_gain(Selu), 0.75);
}

TEST(Init, XavierAndKaimingHaveTheirStandardDeviation) {
  const Extents shape{120, 80, 3, 3};  // fan in 720, fan out 1080
  const double n = 120 * 80 * 9;
  const auto uniform = [&](const Values& v, double std) {
    const double bound = std * std::sqrt(3.0);
    EXPECT_LT(kolmogorov_smirnov(v, [bound](double x) { return (x + bound) / (2 * bound); }), kUnlikely);
    for (const float x : v) ASSERT_LE(std::fabs(static_cast<double>(x)), bound * (1 + 1e-7));
  };
  const auto normal = [&](const Values& v, double std) {
    EXPECT_NEAR(moments(v).std, std, 4 * std / std::sqrt(2 * n));
    EXPECT_LT(kolmogorov_smirnov(v, [std](double x) { return normal_below(x / std); }), kUnlikely);
  };
  uniform(init::xavier_uniform(shape, kSource), std::sqrt(2.0 / 1800));
  uniform(init::xavier_uniform(shape, kSource, 3), 3 * std::sqrt(2.0 / 1800));
  normal(init::xavier_normal(shape, kSource, 2), 2 * std::sqrt(2.0 / 1800));
  uniform(init::kaiming_uniform(shape, kSource), std::sqrt(2.0 / 720));
  // the defaults of torch.nn.Linear and Conv
  uniform(init::kaiming_uniform(shape, kSource, {.a = std::sqrt(5.0)}), std::sqrt(1.0 / 3 / 720));
  uniform(init::kaiming_uniform(shape, kSource, {.mode = init::Fan::Out}), std::sqrt(2.0 / 1080));
  normal(init::kaiming_normal(shape, kSource, {.nonlinearity = init::Nonlinearity::Relu}), std::sqrt(2.0 / 720));
  normal(init::kaiming_normal(shape, kSource, {.mode = init::Fan::Out, .nonlinearity = init::Nonlinearity::Linear}),
         std::sqrt(1.0 / 1080));
}

// ---- structures -----------------------------------------------------------------------------------------

TEST(Init, Constants) {
  EXPECT_EQ(init::zeros({2, 2}), (Values{0, 0, 0, 0}));
  EXPECT_EQ(init::ones({3}), (Values{1, 1, 1}));
  EXPECT_EQ(init::constant({}, 2.5f), Values{2.5f});
  EXPECT_EQ(init::eye({2, 3}), (Values{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(init::eye({3, 2}), (Values{1, 0, 0, 1, 0, 0}));
}

TEST(Init, DiracGivesInputsBack) {
  EXPECT_EQ(init::dirac({2, 3, 3}), (Values{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(init::dirac({4, 1, 2}, 4), (Values{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(init::dirac({4, 2, 1}, 2), (Values{1, 0, 0, 1, 1, 0, 0, 1}));
  const Values v = init::dirac({2, 2, 3, 5});  // the centre of 3 x 5 is element 7
  for (std::size_t k = 0; k < v.size(); ++k) EXPECT_EQ(v[k], k == 7 || k == 3 * 15 + 7) << k;
}

TEST(Init, OrthogonalRowsOrColumns) {
  for (const Extents& shape :
       {Extents{64, 64}, Extents{100, 30}, Extents{30, 100}, Extents{16, 8, 3, 3}, Extents{1, 5}}) {
    const Values v = init::orthogonal(shape, kSource, 2);
    const auto rows = static_cast<std::size_t>(shape[0]), columns = v.size() / rows;
    const bool wide = rows < columns;
    const std::size_t count = std::min(rows, columns), n = std::max(rows, columns);
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const auto at = [&](std::size_t j) { return wide ? v[j * columns + i] : v[i * columns + j]; };
          dot += static_cast<double>(at(a)) * static_cast<double>(at(b)) / 4;
        }
        ASSERT_NEAR(dot, a == b, 1e-6) << a << ", " << b;
      }
  }
}

// The distribution is uniform: an element of a 3 x 3 matrix is a coordinate of a point on the sphere, so it is uniform
// in [-1, 1].
TEST(Init, OrthogonalIsEvenlyDistributed) {
  std::vector<Values> elements(9);
  for (std::int64_t seed = 0; seed < 4000; ++seed) {
    const Values v = init::orthogonal({3, 3}, {seed, "w"});
    for (std::size_t k = 0; k < 9; ++k) elements[k].push_back(v[k]);
  }
  for (const Values& e : elements) EXPECT_LT(kolmogorov_smirnov(e, [](double x) { return (x + 1) / 2; }), kUnlikely);
}

TEST(Init, SparseColumns) {
  const std::size_t rows = 50, columns = 400;
  const Values v = init::sparse({50, 400}, kSource, 0.31, 0.5);
  std::vector<double> zeros(rows);
  Values rest;
  for (std::size_t c = 0; c < columns; ++c) {
    int here = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      const float x = v[r * columns + c];
      here += x == 0, zeros[r] += x == 0;
      if (x != 0) rest.push_back(x);
    }
    EXPECT_EQ(here, 16);  // 15.5 rounded up
  }
  EXPECT_LT(std::fabs(chi_square(zeros, std::vector<double>(rows, 400 * 16.0 / 50))), 4);
  EXPECT_LT(kolmogorov_smirnov(rest, [](double x) { return normal_below(x / 0.5); }), kUnlikely);
  EXPECT_EQ(init::sparse({3, 3}, kSource, 1), Values(9, 0));
}

TEST(Init, EmptyShapes) {
  for (const Extents& shape : {Extents{0, 4}, Extents{4, 0}}) {
    EXPECT_TRUE(init::uniform(shape, kSource).empty());
    EXPECT_TRUE(init::kaiming_uniform(shape, kSource).empty());
    EXPECT_TRUE(init::xavier_normal(shape, kSource).empty());
    EXPECT_TRUE(init::orthogonal(shape, kSource).empty());
    EXPECT_TRUE(init::sparse(shape, kSource, 0.5).empty());
    EXPECT_TRUE(init::eye(shape).empty());
  }
  EXPECT_TRUE(init::dirac({2, 0, 3}).empty());
  EXPECT_TRUE(init::xavier_uniform({0, 0}, kSource).empty());
  EXPECT_EQ(init::normal({}, kSource).size(), 1u);
}

TEST(InitErrors, SayWhatIsWrong) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto says = [](const std::string& sentence, const std::function<void()>& f) {
    try {
      f();
      ADD_FAILURE() << "no error: " << sentence;
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()), sentence);
    }
  };
  says("uniform: [1, 0) has its bounds the wrong way round", [&] { init::uniform({2}, kSource, 1, 0); });
  says("uniform: low is nan, which is no finite f32", [&] { init::uniform({2}, kSource, nan, 0); });
  says("uniform: a shape [2, -1] has a negative extent", [&] { init::uniform({2, -1}, kSource); });
  says("normal: a shape [16777216, 16777217] has more than 2^48 elements", [&] {
    init::normal({1 << 24, (1 << 24) + 1}, kSource);
  });
  says("normal: std is -1; a standard deviation is not negative", [&] { init::normal({2}, kSource, 0, -1); });
  says("trunc_normal: std is 0; it must be positive", [&] { init::trunc_normal({2}, kSource, 0, 0); });
  says("trunc_normal: [1, 1] has no lower bound below its upper",
       [&] { init::trunc_normal({2}, kSource, 0, 1, 1, 1); });
  says("trunc_normal: [9, 10] begins more than 8 standard deviations from the mean 0: move the bounds or the mean",
       [&] { init::trunc_normal({2}, kSource, 0, 1, 9, 10); });
  says("calculate_fans: needs [out, in, ...], not [3]: one axis has no fans",
       [&] { init::kaiming_uniform({3}, kSource); });
  says("orthogonal: needs two axes or more, not [3]", [&] { init::orthogonal({3}, kSource); });
  says("eye: needs a matrix, not [2, 2, 2]", [&] { init::eye({2, 2, 2}); });
  says("dirac: needs the filters of a convolution, [out, in, k...] of rank 3 to 5, not [2, 2]", [&] {
    init::dirac({2, 2});
  });
  says("dirac: 3 outputs do not fall into 2 groups", [&] { init::dirac({3, 2, 1}, 2); });
  says("sparse: needs a matrix, not [2]", [&] { init::sparse({2}, kSource, 0.5); });
  says("sparse: a sparsity of 1.5 is outside [0, 1]", [&] { init::sparse({2, 2}, kSource, 1.5); });
}

}  // namespace
}  // namespace lc::nn
