// A random integer expression keeps its value when it is simplified, and stays within its computed bounds.
#include "lightcone/core/dim.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "lightcone/base/error.h"

using namespace lc;
using i64 = std::int64_t;

namespace {

i64 floor_div(i64 x, i64 y) {
  const i64 q = x / y;
  return q - ((x % y != 0) && ((x < 0) != (y < 0)));
}

struct Pair {
  Dim dim;
  std::function<i64(const Bindings&)> plain;
};

struct Generator {
  std::mt19937 rng{1};
  std::vector<Dim> vars = {Dim::symbol("a", 0, 7), Dim::symbol("b", 1, 63), Dim::symbol("c", 0, 2),
                           Dim::index(0, Dim::symbol("b", 1, 63))};
  std::vector<std::string> names = {"a", "b", "c", "i0"};
  bool divides_by_a = false;  // if true, the expression has no value where a is 0

  i64 pick(i64 lo, i64 hi) { return std::uniform_int_distribution<i64>(lo, hi)(rng); }

  Pair leaf() {
    if (pick(0, 2) == 0) {
      const i64 c = pick(-9, 9);
      return {c, [c](const Bindings&) { return c; }};
    }
    const auto k = static_cast<std::size_t>(pick(0, 3));
    return {vars[k], [n = names[k]](const Bindings& e) { return e.find(n)->second; }};
  }

  Pair make(int depth) {
    if (depth == 0 || pick(0, 5) == 0) return leaf();
    const Pair a = make(depth - 1), b = make(depth - 1);
    const auto f = a.plain, g = b.plain;
    const i64 c = pick(1, 9);
    switch (pick(0, 9)) {
      case 0: return {a.dim + b.dim, [=](const Bindings& e) { return f(e) + g(e); }};
      case 1: return {a.dim - b.dim, [=](const Bindings& e) { return f(e) - g(e); }};
      case 2: return {a.dim * Dim(c), [=](const Bindings& e) { return f(e) * c; }};
      case 3: return {a.dim / Dim(c), [=](const Bindings& e) { return floor_div(f(e), c); }};
      case 4: return {a.dim % Dim(c), [=](const Bindings& e) { return f(e) - floor_div(f(e), c) * c; }};
      case 5: return {min(a.dim, b.dim), [=](const Bindings& e) { return std::min(f(e), g(e)); }};
      case 6: return {less(a.dim, b.dim), [=](const Bindings& e) { return i64{f(e) < g(e)}; }};
      case 7: return {max(a.dim, b.dim), [=](const Bindings& e) { return std::max(f(e), g(e)); }};
      case 8: {  // a symbolic divisor, which reshapes of symbolic shapes create, and one that may be 0
        const int k = pick(0, 2) ? 1 : 0;
        divides_by_a = divides_by_a || k == 0;
        const bool sum = k == 1 && pick(0, 1);  // b + c is like the length of a cache
        const Dim s = sum ? vars[1] + vars[2] : vars[k];
        const auto n = [sum, name = names[k]](const Bindings& e) {
          return e.find(name)->second + (sum ? e.find("c")->second : 0);
        };
        if (pick(0, 1)) return {a.dim / s, [=](const Bindings& e) { return floor_div(f(e), n(e)); }};
        return {a.dim % s, [=](const Bindings& e) { return f(e) - floor_div(f(e), n(e)) * n(e); }};
      }
      default: return {a.dim * b.dim, [=](const Bindings& e) { return f(e) * g(e); }};
    }
  }
};

}  // namespace

TEST(Dim, SimplificationKeepsTheValueAndBoundsHold) {
  Generator gen;
  for (int t = 0; t < 30000; ++t) {
    Pair p;
    gen.divides_by_a = false;
    try {
      p = gen.make(4);
    } catch (const Error&) {
      continue;  // a product overflowed
    }
    for (int k = 0; k < 8; ++k) {
      const i64 b = gen.pick(1, 63);
      const Bindings e{
          {"a", gen.pick(gen.divides_by_a, 7)}, {"b", b}, {"c", gen.pick(0, 2)}, {"i0", gen.pick(0, b - 1)}};
      const i64 x = p.dim.eval(e);
      ASSERT_EQ(x, p.plain(e)) << p.dim.str() << " a=" << e.at("a") << " b=" << b << " c=" << e.at("c")
                               << " i0=" << e.at("i0");
      ASSERT_LE(p.dim.bounds().lo, x) << p.dim.str();
      ASSERT_GE(p.dim.bounds().hi, x) << p.dim.str();
      const Dim fixed = p.dim.substitute([&](const std::string& n) { return std::optional<Dim>(e.at(n)); });
      ASSERT_EQ(fixed, Dim(x));
    }
  }
}

TEST(Dim, ReshapesCancel) {
  const Dim s = Dim::symbol("s", 1, 100);
  const Dim i = Dim::index(0, s), j = Dim::index(1, 12);
  const Dim flat = i * 12 + j;
  EXPECT_EQ(flat / Dim(12), i);
  EXPECT_EQ(flat % Dim(12), j);
  EXPECT_EQ((flat / Dim(3)) % Dim(4) * Dim(3) + flat % Dim(3), flat % Dim(12));
  EXPECT_EQ((flat / Dim(12)) * Dim(12) + flat % Dim(12), flat);
  const Dim k = Dim::index(2, s + 3);
  EXPECT_EQ((i * (s + 3) + k) / (s + 3), i);
  EXPECT_EQ((i * (s + 3) + k) % (s + 3), k);
  EXPECT_EQ(((j * s + i) * 5) / (s * 5), j);
  const Dim n = Dim::symbol("n", 0, 48), in = Dim::index(3, n);
  EXPECT_EQ((j * n + in) / n, j);  // no index exists if n is 0
  EXPECT_EQ((j * n + in) % n, in);
  EXPECT_EQ((s + 1) * (s + 1), s * s + s * 2 + 1);
  EXPECT_EQ(Dim::index(0, 8) / Dim(4) / Dim(2), Dim(0));
}

TEST(Dim, WhatRoundsUpHasOneForm) {
  const Dim s = Dim::symbol("s", 1, 100);
  EXPECT_EQ(Dim(0) - (Dim(0) - s) / Dim(2), (s + 1) / Dim(2));
  EXPECT_EQ(Dim(0) - (Dim(0) - s * 2 - 1) / Dim(3), (s * 2 + 3) / Dim(3));
}

// Threads that construct equal expressions concurrently share them.
TEST(Dim, ThreadsInternTheSameExpressions) {
  constexpr int kThreads = 4, kExpressions = 400;
  std::vector<std::vector<Dim>> made(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<Dim>& mine : made)
    threads.emplace_back([&mine] {
      const Dim n = Dim::symbol("n_of_threads", 1, 4096);
      for (int k = 1; k <= kExpressions; ++k) {
        const Dim i = Dim::index(k, n + k);
        mine.push_back((i * (n + k) + n) / (n + 7) + min(i, n * k) % (n + 3) * less(n, k));
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::vector<Dim>& mine : made) EXPECT_EQ(mine, made[0]);
  EXPECT_EQ(made[0][11].str(), made[1][11].str());
}

TEST(Dim, OverflowIsAnError) {
  EXPECT_THROW(Dim(i64{1} << 40) * Dim(i64{1} << 40), Error);
  EXPECT_THROW(Dim(3) / Dim(0), Error);
  const Dim n = Dim::symbol("n", 1, 9);
  EXPECT_THROW(n.eval({}), Error);
  // a long division whose terms reach 2^84 is abandoned
  EXPECT_NO_THROW(n * n * n * n * n * n * n * n / (n + 4096));
}

// A bound beyond 2^62 proves nothing, and asking for such a proof is not an error.
TEST(Dim, WhatHasNoBoundIsNotBelow) {
  const Dim n = Dim::symbol("n", 1, 9), any = Dim::symbol("any", -3, 3);
  const Dim open = n / any;
  EXPECT_FALSE(provably_below(open * 4, n));
  EXPECT_FALSE(provably_below(open, n - 20));
  const Dim below = less(open * 2, n);
  EXPECT_EQ(below.eval({{"n", 8}, {"any", -1}}), 1);
  EXPECT_EQ(below.eval({{"n", 8}, {"any", 1}}), 0);
}

TEST(Dim, AConditionTimesItselfIsItself) {
  const Dim n = Dim::symbol("n", 1, 9), k = Dim::symbol("k", 1, 9), below = less(n, k);
  EXPECT_EQ(below * below, below);
  EXPECT_EQ(below * less(k, 5) * below * 3, less(k, 5) * below * 3);
  EXPECT_FALSE(n * n == n);
}

// Shared subexpressions are stored once; written out, the expression would have 2^60 symbols.
TEST(Dim, WhatIsSharedStaysShort) {
  Dim d = Dim::symbol("n", 1, 4096), before = d;
  std::size_t longest = 0;
  int made = 0;
  const auto grow = [&] {
    before = d, d = (d * 3 + 1) / (before % Dim(7) + 2);
    longest = std::max(longest, d.str().size());
  };
  EXPECT_THROW(for (; made < 60; ++made) grow(), Error);
  EXPECT_GT(made, 8);
  EXPECT_LT(longest, 1000u);
  EXPECT_GT(before.parts(), Dim::kMostParts / 16);
  EXPECT_LE(before.parts(), Dim::kMostParts);
}

// Walking an expression uses stack in proportion to its depth, so the depth is limited.
TEST(Dim, NestedTooDeepIsAnError) {
  Dim d = Dim::symbol("n", 1, i64{1} << 60);
  EXPECT_THROW(for (int k = 0; k < 100000; ++k) d = (d + 1) / Dim::symbol("by", 2, 3), Error);
  EXPECT_LE(d.depth(), Dim::kDeepest);
  EXPECT_GT(d.depth(), 200);
}

TEST(Dim, ProductsOfManySumsAreAnError) {
  Dim d = 1;
  EXPECT_THROW(for (int k = 0; k < 64; ++k) d = d * (Dim::symbol("n" + std::to_string(k), 1, 2) + 1), Error);
  EXPECT_LE(d.terms().size(), Dim::kMostTerms);
}

// Long names are abbreviated by hashes; expressions that differ only deep inside still have different names.
TEST(Dim, LongNamesAreStillDifferent) {
  const auto made = [](i64 last) {
    Dim d = Dim::symbol("n", 1, 4096);
    for (i64 k = 0; k < 40; ++k) d = (d * 5 + k) / (Dim::symbol("m", 1, 9) + (k == 3 ? last : 0));
    return d;
  };
  EXPECT_EQ(made(1), made(1));
  EXPECT_NE(made(1), made(2));
  EXPECT_NE(made(1).str(), made(2).str());
  EXPECT_EQ(made(1) + made(2), made(2) + made(1));
  EXPECT_LT(made(1).str().size(), 1000u);
}
