// Remainders by powers of two, floor(), ceil(), trunc() and round() as generated code have the bits of the C library's
// functions, and vectors: a call of fmod() for each number took 100 to 300 times as long.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "processor_time.h"

using namespace lc;

namespace {

// Numbers around every power of two, ties, numbers too small and too large for a fraction, and odd ones.
template <class T>
std::vector<T> numbers() {
  std::vector<T> all{0,
                     std::numeric_limits<T>::denorm_min(),
                     std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::max(),
                     std::numeric_limits<T>::infinity(),
                     std::numeric_limits<T>::quiet_NaN()};
  std::mt19937_64 random(7);
  std::uniform_real_distribution<T> fraction(1, 2);
  for (int e = -20; e < 70; ++e)
    for (const T f : {T(1), T(1.25), T(1.5), T(1.75), fraction(random), fraction(random)}) {
      all.push_back(std::ldexp(f, e));
      all.push_back(std::nextafter(all.back(), T(0)));
      all.push_back(std::nextafter(std::ldexp(f, e), std::numeric_limits<T>::max()));
    }
  for (int k = 0; k < 40; ++k) all.push_back(T(k) / 4);
  for (std::size_t k = all.size(); k-- > 0;) all.push_back(-all[k]);
  return all;
}

template <class T>
bool same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
void expect_exact(DType t, const char* compiler) {
  const std::vector<T> x = numbers<T>();
  Graph g;
  const Tensor in = g.input("x", {static_cast<std::int64_t>(x.size())}, t);
  g.output("floor", floor(in)), g.output("ceil", ceil(in)), g.output("trunc", trunc(in)), g.output("round", round(in));
  for (const double by : {1.0, 2.0, 1024.0, 3.0, 0.5})
    g.output("mod " + std::to_string(by), prim::mod(in, full_like(in, by)));
  const Program p = compile(g, generic() | cpu({.threads = 1, .jit = {.compiler = compiler}}));
  Context c(p);
  c.set("x", ArrayView{t, {static_cast<std::int64_t>(x.size())}, std::as_bytes(std::span(x))});
  c.run();
  const auto expect = [&](const std::string& name, auto f) {
    const auto bytes = c.bytes(name);
    for (std::size_t k = 0; k < x.size(); ++k) {
      T got;
      std::memcpy(&got, bytes.data() + k * sizeof(T), sizeof(T));
      ASSERT_TRUE(same<T>(got, f(x[k]))) << name << " of " << x[k] << " is " << got << compiler;
    }
  };
  expect("floor", [](T v) { return std::floor(v); });
  expect("ceil", [](T v) { return std::ceil(v); });
  expect("trunc", [](T v) { return std::trunc(v); });
  expect("round", [](T v) { return std::nearbyint(v); });
  for (const double by : {1.0, 2.0, 1024.0, 3.0, 0.5})
    expect("mod " + std::to_string(by), [by](T v) { return std::fmod(v, static_cast<T>(by)); });
}

std::vector<const char*> compilers() {
  std::vector<const char*> all{""};
  if (!backends::cpu::find_llvm().path.empty()) all.push_back("llvm");
  return all;
}

}  // namespace

TEST(Rounding, HasTheBitsOfTheLibrary) {
  for (const char* compiler : compilers()) expect_exact<float>(DType::F32, compiler);
  for (const char* compiler : compilers()) expect_exact<double>(DType::F64, compiler);
}

TEST(Rounding, HasVectors) {
  constexpr std::int64_t kCount = 1 << 16;
  constexpr double kMost = 40;  // times as long as a product
  std::vector<float> x(kCount);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k * 7919 % 4001) / 64 - 30;
  for (const char* compiler : compilers()) {
    const auto time = [&](const std::function<Tensor(Tensor)>& f) {
      Graph g;
      g.output("y", f(g.input("x", {kCount})));
      const Program p = compile(g, generic() | cpu({.threads = 1, .jit = {.compiler = compiler}}));
      Context c(p);
      c.set("x", x).run();
      double least = 1;
      for (int k = 0; k < 10; ++k) least = std::min(least, test::seconds([&] { c.run(); }));
      return least;
    };
    const double product = time([](const Tensor& t) { return t * 3; });
    EXPECT_LE(time([](const Tensor& t) { return floor(t); }), kMost * product) << compiler;
    EXPECT_LE(time([](const Tensor& t) { return ceil(t); }), kMost * product) << compiler;
    EXPECT_LE(time([](const Tensor& t) { return round(t); }), kMost * product) << compiler;
  }
}
