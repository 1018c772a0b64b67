// Random numbers have Philox's known answers, the same bits on every instruction set and number of threads, and the
// right distributions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <set>

#include "counted_calls.h"
#include "error_of.h"
#include "lightcone/backends/cpu/target/isa.h"
#include "lightcone/composites/composites.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/random.h"
#include "lightcone/passes/passes.h"
#include "lightcone/random/random_bits.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/verify.h"
#include "on_device.h"
#include "statistics.h"

namespace lc {
namespace {

using Ints = std::vector<std::int64_t>;
using Draw = std::function<Tensor(Random&)>;

Compiler on_device(int threads = 1) { return generic() | test::device({.threads = threads}); }

// The result of one draw in the run number `step`.
struct Drawn {
  Drawn(const Draw& f, std::int64_t seed = 1, std::int64_t step = 0, const Compiler& c = on_device()) {
    Graph g;
    Random rng(g, seed);
    g.output("y", f(rng));
    Context run(compile(g, c));
    run.set("random.step", Ints{step}).run();
    value = run.value("y");
  }
  Value value;
  std::vector<double> numbers() const { return value.f; }
  Ints integers() const { return value.i; }
};

// ---- words ---------------------------------------------------------------------------------------

// The test vectors "philox4x32 10" of Random123 (tests/kat_vectors).
TEST(Philox, KnownAnswers) {
  using B = Philox::Block;
  EXPECT_EQ(Philox::words({0, 0, 0, 0}, {0, 0}), (B{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t all = 0xffffffff;
  EXPECT_EQ(Philox::words({all, all, all, all}, {all, all}), (B{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox::words({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (B{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamsAndSeedsHaveKeysOfTheirOwn) {
  std::set<Philox::Key> keys;
  for (std::int64_t seed = -50; seed < 50; ++seed)
    for (std::int64_t stream = 0; stream < 100; ++stream) keys.insert(Philox::key(seed, stream));
  EXPECT_EQ(keys.size(), 10000u);
  EXPECT_LT(random_stream("dropout"), 0);
  EXPECT_NE(random_stream("layer.0"), random_stream("layer.1"));
}

// A seed whose key is 0 for stream 0, because mix(0) is 0.
constexpr auto kSeedOfNothing = static_cast<std::int64_t>(0 - 0x9E3779B97F4A7C15u);

TEST(RandomBits, KnownAnswerThroughEveryWay) {
  Graph g;
  g.output("y", random_bits(g.input("step", {}, DType::I64), {4}, kSeedOfNothing));
  for (const Compiler& c : {Compiler(), on_device(), primitives_only(), primitives_only() | on_device()}) {
    Context run(compile(g, c));
    run.set("step", Ints{0}).run();
    EXPECT_EQ(run.get_i64("y"), (Ints{0x6627e8d5, static_cast<std::int32_t>(0xe169c58d),
                                      static_cast<std::int32_t>(0xbc57ac4c), static_cast<std::int32_t>(0x9b00dbd8)}));
  }
}

Ints words(const Graph& g, const Compiler& c, std::int64_t step, std::int64_t n) {
  Context run(compile(g, c));
  if (run.set("step", Ints{step}); n >= 0) run.bind("n", n);
  run.run();
  return run.get_i64("y");
}

// Compares the reference, the kernel with one and two threads, and the definition by primitives, interpreted and
// compiled.
TEST(RandomBits, OneAnswerOnEveryDevice) {
  const Dim n = Dim::symbol("n", 0, 50);
  struct Case {
    Shape shape;
    std::int64_t n;  // -1: the shape has no symbol
  };
  using Limits = std::numeric_limits<std::int64_t>;
  for (const Case& c : {Case{{}, -1}, Case{{0}, -1}, Case{{1}, -1}, Case{{3, 5, 7}, -1}, Case{{2, n}, 0},
                        Case{{2, n}, 1}, Case{{n, 3}, 17}, Case{{n + 1}, 50}}) {
    Graph g;
    g.output("y", random_bits(g.input("step", {}, DType::I64), c.shape, 7, 3));
    for (const std::int64_t step : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, (std::int64_t{5} << 32) + 9,
                                    Limits::max(), Limits::min(), -(std::int64_t{3} << 33)}) {
      Ints want;
      Bindings env;
      if (c.n >= 0) env["n"] = c.n;
      Value s = make_value(DType::I64, {});
      s.i = {step};
      want = interpret(g, {{"step", s}}, env).outputs.at("y").i;
      const Philox::Key key = Philox::key(7, 3);
      for (std::size_t k = 0; k < want.size(); ++k)
        ASSERT_EQ(want[k], static_cast<std::int32_t>(Philox::words(Philox::counter(k / 4, step), key)[k % 4]));
      for (const Compiler& how : {on_device(1), on_device(2), primitives_only(), primitives_only() | on_device()})
        EXPECT_EQ(words(g, how, step, c.n), want) << str(c.shape) << " at step " << step;
    }
  }
}

TEST(RandomBits, AKernelRunsThem) {
  Graph g;
  g.output("y", random_bits(g.input("step", {}, DType::I64), {1000}, 7));
  const Program p = compile(g, on_device());
  EXPECT_EQ(p.kernels(), 1u);
  EXPECT_EQ(p.interpreted(), 0u);
  EXPECT_EQ(fired(p.log(), "random_bits"), 1);
}

TEST(RandomBits, DrawingAllocatesNothing) {
  LIGHTCONE_CPU_ALONE();
  Graph g;
  Random rng(g, 1);
  g.output("y", rng.dropout(rng.normal({1000, 33}), 0.5));
  Context run(compile(g, on_device(2)));
  run.run();
  const long before = test::allocations();
  run.run();
  EXPECT_EQ(test::allocations(), before);
}

TEST(RandomBits, EveryInstructionSet) {
  constexpr std::uint64_t kFar = std::uint64_t{1} << 32, kStep = 3 * kFar - 1;
  for (const backends::cpu::Isa isa : backends::cpu::isas())
    for (const std::uint64_t first : {std::uint64_t{0}, kFar - 20, kFar * 77 + 5})
      for (std::size_t count = 0; count <= 150; ++count) {
        std::vector<std::int32_t> got(count + 1, -1);
        const Philox::Key key = Philox::key(static_cast<std::int64_t>(count), 1);
        const backends::cpu::RandomBlocks blocks{{key[0], key[1]}, kStep, first};
        backends::cpu::kernel_tables(isa).random->blocks(&blocks, static_cast<std::int64_t>(count), got.data());
        for (std::size_t k = 0; k < count; ++k) {
          const auto want = Philox::words(Philox::counter(first + k / 4, kStep), key)[k % 4];
          ASSERT_EQ(static_cast<std::uint32_t>(got[k]), want)
              << name(isa) << ", word " << k << " of " << count << " from block " << first;
        }
        EXPECT_EQ(got.back(), -1);
      }
}

TEST(RandomBits, ThreadsMakeNoDifference) {
  const auto bits = [](Random& r) { return r.bits({3, 100003}); };
  const Drawn one(bits, 5, 2, on_device(1)), two(bits, 5, 2, on_device(2));
  EXPECT_EQ(one.integers(), two.integers());
  const auto normal = [](Random& r) { return r.normal({100003}); };
  EXPECT_EQ(Drawn(normal, 5, 2, on_device(1)).numbers(), Drawn(normal, 5, 2, on_device(2)).numbers());
}

// Each of the 32 bits is set half of the time, and adjacent bits are independent.
TEST(RandomBits, Bits) {
  const Ints w = Drawn([](Random& r) { return r.bits({200000}); }, 11).integers();
  for (int bit = 0; bit < 32; ++bit) {
    double set = 0, same = 0;
    for (std::size_t k = 0; k + 1 < w.size(); ++k) {
      set += static_cast<double>(w[k] >> bit & 1);
      same += static_cast<double>((w[k] ^ w[k + 1]) >> bit & 1);
    }
    const double n = static_cast<double>(w.size()) - 1, deviation = std::sqrt(n) / 2;
    EXPECT_NEAR(set, n / 2, 4 * deviation) << "bit " << bit;
    EXPECT_NEAR(same, n / 2, 4 * deviation) << "bit " << bit;
  }
}

TEST(RandomBits, HaveNoDerivative) {
  Graph g;
  const Tensor step = g.input("step", {}, DType::I64), y = random_bits(step, {4}, 1);
  const std::vector<bool> wanted{true};
  const auto d = builtin::random_bits()->vjp({y.node().attributes, {&step, 1}, {&y, 1}, {&y, 1}, wanted});
  ASSERT_EQ(d.size(), 1u);
  EXPECT_FALSE(d[0].defined());
}

// ---- distributions ---------------------------------------------------------------------------------

constexpr int kMany = 200000;
constexpr double kUnlikely = 1.95;

TEST(Uniform, IsUniform) {
  const auto u = Drawn([](Random& r) { return r.uniform({kMany}); }, 21).numbers();
  EXPECT_LT(kolmogorov_smirnov(u, [](double x) { return x; }), kUnlikely);
  for (const double x : u) {
    ASSERT_TRUE(x >= 0 && x < 1);
    ASSERT_EQ(x * 0x1p24, std::floor(x * 0x1p24));
  }
  std::vector<double> seen(256), expected(256, kMany / 256.0);
  for (const double x : u) ++seen[static_cast<std::size_t>(x * 256)];
  EXPECT_LT(std::fabs(chi_square(seen, expected)), 4);
  EXPECT_LT(std::fabs(correlation(std::vector(u.begin(), u.end() - 1), std::vector(u.begin() + 1, u.end()))), 0.01);
}

// The compiled numbers equal the interpreter's bit for bit, because no operation rounds.
TEST(Uniform, IsTheSameEverywhere) {
  const auto u = [](Random& r) { return r.uniform({5, 9}); };
  const auto want = Drawn(u, 3, 4, Compiler()).numbers();
  EXPECT_EQ(Drawn(u, 3, 4).numbers(), want);
  EXPECT_EQ(Drawn(u, 3, 4, primitives_only() | on_device()).numbers(), want);
}

TEST(Uniform, StaysBelowItsUpperBound) {
  // the upper bound is the next number after 1: half of all draws would round up
  const auto near = Drawn([](Random& r) { return r.uniform({4096}, 1, 1 + 0x1p-23); }).numbers();
  for (const double x : near) ASSERT_EQ(x, 1);
  const auto two = Drawn([](Random& r) { return r.uniform({kMany}, -3, -3 + 0x1p-20); }).numbers();
  std::set<double> values(two.begin(), two.end());
  EXPECT_EQ(values.size(), 4u);  // 2^-22 apart
  EXPECT_EQ(*values.begin(), -3);
  EXPECT_LT(*values.rbegin(), -3 + 0x1p-20);
  for (const double x : Drawn([](Random& r) { return r.uniform({3}, 2.5, 2.5); }).numbers()) EXPECT_EQ(x, 2.5);
  const auto wide = Drawn([](Random& r) { return r.uniform({kMany}, -10, 30); }, 4).numbers();
  EXPECT_LT(kolmogorov_smirnov(wide, [](double x) { return (x + 10) / 40; }), kUnlikely);
}

TEST(Normal, IsNormal) {
  const auto z = Drawn([](Random& r) { return r.normal({2, kMany / 2}); }, 31).numbers();
  EXPECT_LT(kolmogorov_smirnov(z, normal_below), kUnlikely);
  const Moments m = moments(z);
  EXPECT_NEAR(m.mean, 0, 4 / std::sqrt(kMany));
  EXPECT_NEAR(m.std, 1, 4 / std::sqrt(2.0 * kMany));
  EXPECT_NEAR(m.skewness, 0, 4 * std::sqrt(6.0 / kMany));
  EXPECT_NEAR(m.kurtosis, 3, 4 * std::sqrt(24.0 / kMany));
  const auto [low, high] = std::minmax_element(z.begin(), z.end());
  EXPECT_GT(*high, 4);  // about six of 200000 are above
  EXPECT_LT(*low, -4);
  const auto other = Drawn([](Random& r) { return r.normal({kMany}, 5, 0.25); }, 31).numbers();
  EXPECT_LT(kolmogorov_smirnov(other, [](double x) { return normal_below((x - 5) / 0.25); }), kUnlikely);
  for (const double x : Drawn([](Random& r) { return r.normal({9}, -2, 0); }).numbers()) EXPECT_EQ(x, -2);
}

TEST(TruncatedNormal, IsTheMiddleOfANormalDistribution) {
  struct Case {
    double mean, std, low, high;
  };
  for (const Case& c : {Case{0, 1, -2, 2}, Case{1, 0.5, 1.2, 4}, Case{0, 1, 3.9, 5}, Case{0, 1, -kInf, -1},
                        Case{-4, 3, -kInf, kInf}, Case{0, 0.02, -2, 2}}) {
    const auto draw = [&](Random& r) { return r.truncated_normal({kMany}, c.mean, c.std, c.low, c.high); };
    const auto x = Drawn(draw, 41).numbers();
    const auto below = [&](double v) {  // uses the side on which probabilities are accurate
      const double side = c.low > c.mean ? -1 : 1;
      const auto p = [&](double at) { return normal_below(side * (at - c.mean) / c.std); };
      return (p(v) - p(c.low)) / (p(c.high) - p(c.low));
    };
    EXPECT_LT(kolmogorov_smirnov(x, below), kUnlikely) << c.low << " " << c.high;
    const auto [low, high] = std::minmax_element(x.begin(), x.end());
    EXPECT_GE(*low, static_cast<float>(c.low));
    EXPECT_LE(*high, static_cast<float>(c.high));
  }
}

TEST(Bernoulli, HappensAsOftenAsItShould) {
  for (const double p : {0.0, 0.001, 0.3, 0.5, 0.999, 1.0}) {
    const Drawn b([p](Random& r) { return r.bernoulli({kMany}, p); }, 51);
    ASSERT_EQ(b.value.dtype, DType::Bool);
    double yes = 0;
    for (const auto x : b.integers()) yes += static_cast<double>(x);
    EXPECT_NEAR(yes, p * kMany, 4 * std::sqrt(p * (1 - p) * kMany)) << p;
  }
  Graph g;
  Random rng(g, 1);
  const Tensor b = rng.bernoulli(g.input("p", {4, 5000}));
  EXPECT_EQ(b.dtype(), DType::F32);
  g.output("rows", sum(b, {1}));
  Context run(compile(g, on_device()));
  std::vector<float> p;
  for (const double row : {0.0, 1.0, 0.25, kNaN}) p.insert(p.end(), 5000, static_cast<float>(row));
  const auto rows = run.set("p", p).run().get("rows");
  EXPECT_EQ(rows[0], 0);
  EXPECT_EQ(rows[1], 5000);
  EXPECT_NEAR(rows[2], 1250, 4 * std::sqrt(5000 * 0.1875));
  EXPECT_EQ(rows[3], 0);
}

TEST(RandInt, IsEven) {
  const auto few = Drawn([](Random& r) { return r.randint(-3, 7, {kMany}); }, 61).integers();
  std::vector<double> seen(10), expected(10, kMany / 10.0);
  for (const auto x : few) {
    ASSERT_TRUE(x >= -3 && x < 7) << x;
    ++seen[static_cast<std::size_t>(x + 3)];
  }
  EXPECT_LT(std::fabs(chi_square(seen, expected)), 4);
  for (const auto x : Drawn([](Random& r) { return r.randint(5, 6, {10}); }).integers()) EXPECT_EQ(x, 5);
  using Limits = std::numeric_limits<std::int64_t>;
  struct Range {
    std::int64_t low, high;
  };
  constexpr std::int64_t kBillions = std::int64_t{1} << 31;
  constexpr std::int64_t kHuge = std::int64_t{1} << 61, kLast = Limits::max();
  for (const Range& c : {Range{0, kBillions}, Range{-5, kBillions - 4}, Range{Limits::min(), -1}, Range{0, kLast},
                         Range{kLast - 1000, kLast}, Range{-kHuge, kHuge}}) {
    const auto x = Drawn([&](Random& r) { return r.randint(c.low, c.high, {kMany}); }, 62).integers();
    std::vector<double> place;
    const auto above_low = [&](std::int64_t v) {
      return static_cast<double>(static_cast<std::uint64_t>(v) - static_cast<std::uint64_t>(c.low));
    };
    for (const auto v : x) {
      ASSERT_TRUE(v >= c.low && v < c.high) << v;
      place.push_back((above_low(v) + 0.5) / above_low(c.high));
    }
    EXPECT_LT(kolmogorov_smirnov(place, [](double p) { return p; }), kUnlikely) << c.low << " " << c.high;
  }
}

TEST(Categorical, ChoosesByTheSoftmax) {
  Graph g;
  Random rng(g, 71);
  const Tensor logits = g.input("logits", {6});
  g.output("y", rng.categorical(logits.reshape({1, 6}).expand({kMany, 6})));
  Context run(compile(g, on_device()));
  const std::vector<float> l{1, -1, 0, -std::numeric_limits<float>::infinity(), 3, 2.5};
  run.set("logits", l).run();
  double total = 0;
  for (const float x : l) total += std::exp(static_cast<double>(x));
  std::vector<double> seen(5), expected;
  for (const auto y : run.get_i64("y")) {
    ASSERT_NE(y, 3);
    ++seen[static_cast<std::size_t>(y > 3 ? y - 1 : y)];
  }
  for (const std::size_t k : {0, 1, 2, 4, 5}) expected.push_back(kMany * std::exp(static_cast<double>(l[k])) / total);
  EXPECT_LT(std::fabs(chi_square(seen, expected)), 4);
}

// With many equal classes, the sample is decided in the tail of the noise.
TEST(Categorical, ManyClassesAreEquallyLikely) {
  const auto y = Drawn([](Random& r) { return r.categorical(full(r.step().graph(), {20000, 500}, 0)); }, 72).integers();
  std::vector<double> seen(50), expected(50, 20000 / 50.0);
  for (const auto k : y) ++seen[static_cast<std::size_t>(k / 10)];
  EXPECT_LT(std::fabs(chi_square(seen, expected)), 4);
}

TEST(Permutation, IsOneAndEveryOrderIsLikely) {
  const auto p = Drawn([](Random& r) { return r.permutation(1000); }, 81).integers();
  EXPECT_EQ(std::set<std::int64_t>(p.begin(), p.end()).size(), 1000u);
  EXPECT_EQ(*std::max_element(p.begin(), p.end()), 999);
  Graph g;
  Random rng(g, 82);
  g.output("y", rng.permutation(4));
  Context run(compile(g, on_device()));
  std::map<Ints, double> orders;
  constexpr int kRuns = 4800;
  for (int k = 0; k < kRuns; ++k) ++orders[run.run().get_i64("y")];
  ASSERT_EQ(orders.size(), 24u);
  std::vector<double> seen, expected(24, kRuns / 24.0);
  for (const auto& [order, times] : orders) seen.push_back(times);
  EXPECT_LT(std::fabs(chi_square(seen, expected)), 4);
}

TEST(Dropout, DropsAndScales) {
  for (const double p : {0.1, 0.5, 0.9}) {
    const auto y = Drawn([p](Random& r) { return r.dropout(full(r.step().graph(), {kMany}, 3), p); }, 91).numbers();
    double dropped = 0;
    for (const double v : y) {
      dropped += v == 0;
      ASSERT_TRUE(v == 0 || v == static_cast<double>(3 * static_cast<float>(1 / (1 - p)))) << v;
    }
    EXPECT_NEAR(dropped, p * kMany, 4 * std::sqrt(p * (1 - p) * kMany));
  }
}

TEST(Dropout, AtTheEnds) {
  Graph g;
  Random rng(g, 1);
  const Tensor x = g.input("x", {4});
  EXPECT_EQ(rng.dropout(x, 0).edge(), x.edge());
  g.output("all", rng.dropout(x, 1));
  Context run(compile(g, on_device()));
  const auto y = run.set("x", std::vector<float>{1, -2, std::numeric_limits<float>::infinity(), 0}).run().get("all");
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 0);
  EXPECT_TRUE(std::isnan(y[2]));  // it is multiplied, as in PyTorch
  for (const DType t : {DType::F16, DType::BF16, DType::F64}) {
    const Tensor half = rng.dropout(full(g, {4}, 1, t), 0.5);
    EXPECT_EQ(half.dtype(), t);
  }
}

// ---- streams and steps -------------------------------------------------------------------------------

TEST(Streams, EqualCallsDrawDifferentNumbers) {
  Graph g;
  Random rng(g, 1);
  const Tensor x = full(g, {kMany}, 1);
  g.output("a", rng.dropout(x));
  g.output("b", rng.dropout(x));
  g.output("u", rng.uniform({kMany}));
  g.output("v", rng.uniform({kMany}));
  g.output("other", rng.normal({kMany}, 0, 1, "a name"));
  Context run(compile(g, on_device()));
  run.run();
  const auto a = run.get("a"), u = run.get("u");
  EXPECT_LT(std::fabs(correlation(a, run.get("b"))), 0.01);
  EXPECT_LT(std::fabs(correlation(u, run.get("v"))), 0.01);
  run.run();  // the next run draws new numbers
  EXPECT_LT(std::fabs(correlation(a, run.get("a"))), 0.01);
  EXPECT_LT(std::fabs(correlation(u, run.get("u"))), 0.01);
  EXPECT_EQ(run.get_i64("random.step"), Ints{2});
}

TEST(Streams, ANamedOneKeepsItsNumbers) {
  const auto alone = Drawn([](Random& r) { return r.uniform({50}, 0, 1, "mask"); }).numbers();
  const auto later = Drawn([](Random& r) {
    r.uniform({7});
    return r.uniform({50}, 0, 1, "mask");
  });
  EXPECT_EQ(alone, later.numbers());
  EXPECT_NE(alone, Drawn([](Random& r) { return r.uniform({50}, 0, 1, "another"); }).numbers());
  EXPECT_NE(alone, Drawn([](Random& r) { return r.uniform({50}, 0, 1, "mask"); }, 2).numbers());  // another seed
}

TEST(Steps, ASavedStateIsResumed) {
  Graph g;
  Random rng(g, 9, "noise.step");
  const Tensor x = g.input("x", {64});
  g.output("y", rng.dropout(x + rng.normal({64}), 0.25));
  g.output("order", rng.permutation(64));
  const std::vector<float> ones(64, 1);
  for (const Compiler& c : {Compiler(), on_device()}) {
    Program p = compile(g, c);
    Context run(p);
    run.set("x", ones).run().run().run();
    const Ints saved = run.get_i64("noise.step");
    EXPECT_EQ(saved, Ints{3});
    const auto next = run.run().get("y");
    const auto order = run.get_i64("order");
    Context set(p);
    set.set("x", ones).set("noise.step", saved).run();
    EXPECT_EQ(set.get("y"), next);
    EXPECT_EQ(set.get_i64("order"), order);
    p.load("noise.step", saved.data(), sizeof saved[0]);
    Context loaded(p);
    EXPECT_EQ(loaded.set("x", ones).run().get("y"), next);
    EXPECT_NE(loaded.run().get("y"), next);
    EXPECT_EQ(loaded.get_i64("noise.step"), Ints{5});
  }
}

TEST(Shapes, SymbolicAndEmpty) {
  const Dim n = Dim::symbol("n", 0, 300);
  Graph g;
  Random rng(g, 5);
  g.output("bits", rng.bits({n}));
  g.output("normal", rng.normal({n, 3}));
  g.output("order", rng.permutation(n));
  g.output("class", rng.categorical(rng.uniform({n, 4})));
  g.output("far", rng.randint(0, std::int64_t{1} << 40, {2, n}));
  g.output("cut", rng.truncated_normal({n}));
  g.output("none", rng.uniform({0, 4}));
  Context run(compile(g, on_device(2)));
  Ints longest;
  for (const std::int64_t at : {300, 17, 1, 0}) {
    run.bind("n", at).set("random.step", Ints{0}).run();
    const Ints bits = run.get_i64("bits");
    if (longest.empty()) longest = bits;
    EXPECT_EQ(bits, Ints(longest.begin(), longest.begin() + at));
    EXPECT_EQ(run.get("normal").size(), static_cast<std::size_t>(3 * at));
    EXPECT_EQ(run.get_i64("order").size(), static_cast<std::size_t>(at));
    EXPECT_EQ(run.get_i64("class").size(), static_cast<std::size_t>(at));
    EXPECT_EQ(run.get_i64("far").size(), static_cast<std::size_t>(2 * at));
    EXPECT_TRUE(run.get("none").empty());
  }
}

// Every draw agrees with the f64 reference: integers exactly, others within rounding.
TEST(Draws, AreVerified) {
  Graph g;
  Random rng(g, 13);
  const Tensor x = g.input("x", {6, 11});
  g.output("uniform", rng.uniform({6, 11}, -2, 5));
  g.output("normal", rng.normal(x.shape(), 1, 3));
  g.output("cut", rng.truncated_normal({40}));
  g.output("coin", rng.bernoulli({40}, 0.3));
  g.output("coins", rng.bernoulli(sigmoid(x)));
  g.output("whole", rng.randint(-7, 100, {40}));
  g.output("far", rng.randint(-7, std::int64_t{1} << 50, {40}));
  g.output("class", rng.categorical(x));
  g.output("order", rng.permutation(40));
  g.output("dropout", rng.dropout(x, 0.2));
  g.output("half", rng.dropout(to(x, DType::BF16), 0.2));
  for (const Compiler& c : {on_device(1), on_device(2)}) {
    const VerifyReport r = verify(g, c, {.trials = 2, .wild = false});
    EXPECT_TRUE(r.ok()) << r.str();
    EXPECT_GT(r.decided(), 0.95);
  }
}

// ---- errors ----------------------------------------------------------------------------------------

TEST(RandomErrors, SayWhatIsWrongAndWhere) {
  Graph g;
  Random rng(g, 1);
  const Tensor x = g.input("x", {3}), i = g.input("i", {3}, DType::I64), s = g.input("s", {});
  const auto says = [](const std::string& sentence, const std::function<void()>& f) {
    expect_error(f, sentence, "random_numbers_test.cpp");
  };
  says("bernoulli: a probability of 1.5 is outside [0, 1]", [&] { rng.bernoulli({3}, 1.5); });
  says("bernoulli: a probability of nan is outside [0, 1]", [&] { rng.bernoulli({3}, kNaN); });
  says("bernoulli: probabilities are floating, not i64", [&] { rng.bernoulli(i); });
  says("dropout: a probability of -0.1 is outside [0, 1]", [&] { rng.dropout(x, -0.1); });
  says("dropout: x is floating, not i64; convert it", [&] { rng.dropout(i, 0.5); });
  says("uniform: [2, 1) has its bounds the wrong way round", [&] { rng.uniform({3}, 2, 1); });
  says("uniform: low is nan, which is no finite f32", [&] { rng.uniform({3}, kNaN, 1); });
  says("uniform: high is 1e+39, which is no finite f32", [&] { rng.uniform({3}, 0, 1e39); });
  says("uniform: high - low is 6e+38, which is no finite f32",
       [&] { rng.uniform({3}, -0x1.c363cap+127, 0x1.c363ccp+127); });
  says("normal: std is -1; a standard deviation is not negative", [&] { rng.normal({3}, 0, -1); });
  says("normal: the mean is inf, which is no finite f32", [&] { rng.normal({3}, kInf); });
  says("truncated_normal: std is 0; it must be positive", [&] { rng.truncated_normal({3}, 0, 0); });
  says("truncated_normal: [2, 2] has no lower bound below its upper", [&] { rng.truncated_normal({3}, 0, 1, 2, 2); });
  says("truncated_normal: [5, 6] begins more than 4 standard deviations from the mean 0: move the bounds or the mean",
       [&] { rng.truncated_normal({3}, 0, 1, 5, 6); });
  says("randint: there is no number in [3, 3)", [&] { rng.randint(3, 3, {3}); });
  says("randint: [-1, 9223372036854775807) holds 2^63 numbers or more",
       [&] { rng.randint(-1, std::numeric_limits<std::int64_t>::max(), {3}); });
  says("categorical: logits need an axis of classes, the last one", [&] { rng.categorical(s); });
  says("categorical: logits are floating, not i64; convert them", [&] { rng.categorical(i); });
  says("permutation: of -1 numbers", [&] { rng.permutation(Dim(0) - 1); });
  says("uniform: a shape [2, -1] has a negative extent", [&] { rng.uniform({2, -1}); });
  says("random_bits: the step is one i64 without axes, not f32 [3]", [&] { random_bits(x, {3}, 1); });
  rng.uniform({3}, 0, 1, "once");
  says("normal: the stream 'once' was drawn from already, and would give the same numbers again",
       [&] { rng.normal({3}, 0, 1, "once"); });
  says("input: 'random.step' exists already; names are unique in a graph", [&] { Random again(g, 2); });
}

}  // namespace
}  // namespace lc
