// Generated kernels convert every f16 and bf16 number correctly, in whole vectors and at the ends of rows, for every
// processor that the C text distinguishes.
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "data.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/jit/jit.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/codegen/interpret/vectors.h"
#include "lightcone/core/op_eval.h"
#include "lightcone/core/tensor.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

// Returns compilers for this processor (the empty name) and for older ones, LLVM if present, and "none", the
// interpreter of the kernel IR.
std::vector<std::string> compilers(const TempDir& dir) {
  std::vector<std::string> all = {"", "none"};
  if (!backends::cpu::find_llvm().path.empty()) all.emplace_back(backends::cpu::kLlvm);
#ifdef __x86_64__
  for (const char* target : {"-march=x86-64", "-march=haswell"}) {
    // the file name shows whether the compiler is clang
    all.push_back(
        dir / str_cat(std::filesystem::canonical(backends::cpu::find_compiler()).filename().string(), "-", all.size()));
    spit(all.back(), str_cat("#!/bin/sh\nexec ", backends::cpu::find_compiler(), " \"$@\" ", target, "\n"));
    ::chmod(all.back().c_str(), 0755);
  }
#endif
  return all;
}

std::vector<float> run(const Graph& g, const std::vector<float>& x, const std::string& compiler) {
  const Program p = compile(g, generic() | cpu({.threads = 1, .jit = {.compiler = compiler, .cache_dir = "off"}}));
  Context c(p);
  c.set("x", std::span<const float>(x)).run();
  return c.get("y");
}

// Returns every half, the midpoint to the next one, and the numbers just below and above that midpoint.
std::vector<float> around(DType t) {
  std::vector<float> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto h = static_cast<std::uint16_t>(bits), next = static_cast<std::uint16_t>(bits + 1);
    const auto v = static_cast<float>(load_f64(&h, t, 0)), w = static_cast<float>(load_f64(&next, t, 0));
    const float middle = std::isfinite(w) ? v + (w - v) / 2 : v * 1.001f;
    for (const float f : {v, middle, std::nextafterf(middle, v), std::nextafterf(middle, w)}) all.push_back(f);
  }
  all.push_back(1.0f / 3);  // makes the count no multiple of the vector width
  return all;
}
float rounded(float f, DType t) {
  std::uint16_t h = 0;
  store_f64(&h, t, 0, f);
  return static_cast<float>(load_f64(&h, t, 0));
}
bool same(float a, float b) { return std::isnan(a) ? std::isnan(b) : std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

TEST(Halves, AreRoundedToTheNearestWhereverTheyStand) {
  const TempDir dir;
  for (const DType t : {DType::F16, DType::BF16}) {
    const std::vector<float> x = around(t);
    const auto n = static_cast<std::int64_t>(x.size());
    Graph stored, between, loaded;
    stored.output("y", prim::cast(stored.input("x", {n}), t));
    between.output("y", prim::mul(prim::cast(prim::cast(between.input("x", {n}), t), DType::F32),
                                  prim::cast(prim::cast(between.input("one", {1}), t), DType::F32).expand({n})));
    loaded.output("y", prim::cast(prim::add(loaded.input("x", {n}, t), full(loaded, {n}, -0.0, t)), DType::F32));
    for (const std::string& compiler : compilers(dir))
      for (const Graph* g : {&stored, &between, &loaded}) {
        const Program p =
            compile(*g, generic() | cpu({.threads = 1, .jit = {.compiler = compiler, .cache_dir = "off"}}));
        Context c(p);
        c.set("x", std::span<const float>(x));
        if (g == &between) c.set("one", std::span<const float>(std::vector<float>{1}));
        const std::vector<float> y = c.run().get("y");
        for (std::size_t k = 0; k < x.size(); ++k)
          ASSERT_TRUE(same(rounded(x[k], t), y[k]))
              << name(t) << " by '" << compiler << "': " << x[k] << " became " << y[k];
      }
  }
}

// Halves are summed in f32: in f16 itself a sum of 4,096 ones would be 2,048.
TEST(Halves, AreSummedInF32) {
  const TempDir dir;
  for (const DType t : {DType::F16, DType::BF16})
    for (const std::string& compiler : compilers(dir)) {
      Graph g;
      const Tensor x = g.input("x", {3, 4096}, t);
      g.output("y", prim::cast(prim::sum_reduce(x, 1), DType::F32));
      EXPECT_EQ(run(g, std::vector<float>(3 * 4096, 1), compiler), std::vector<float>(3, 4096));
      Graph columns;
      columns.output("y", prim::cast(prim::sum_reduce(columns.input("x", {4096, 33}, t), 0), DType::F32));
      EXPECT_EQ(run(columns, std::vector<float>(33 * 4096, 1), compiler), std::vector<float>(33, 4096));
    }
}

// Two optimizations that a compiler does not find by itself: conversions of sixteen numbers at once, and a single
// rounding at the end of an operation of many steps.
TEST(Halves, AreConvertedByVectors) {
  for (const DType t : {DType::F16, DType::BF16}) {
    Graph g;
    g.output("y", prim::mul(g.input("x", {64, 100}, t), g.input("z", {64, 100}, t)));
    const Graph done = transform(g, generic() | cpu({.threads = 1, .compiler = false})).graph;
    std::string text;
    for (NodeId id = 0; id < done.size(); ++id)
      if (done[id].op == Op::Kernel) text += done[id].kernel->source();
    const std::string type(name(t));
    EXPECT_NE(text.find("lc_" + type + "_to_f32_v("), text.npos) << text;
    EXPECT_NE(text.find("lc_f32_to_" + type + "_v("), text.npos) << text;
    const std::size_t whole = text.find("if (w == 16) for");
    ASSERT_NE(whole, text.npos) << text;
    EXPECT_EQ(text.substr(whole, text.find("if (w > ", whole) - whole).find("lc_round"), text.npos) << text;
  }
}

// The interpreter of the kernel IR computes by vectors: each number in double precision, rounded once.
TEST(Vectors, RoundDoublePrecisionOnce) {
  constexpr std::size_t kNumbers = 1 << 17;
  std::mt19937 rng(38);
  for (const DType t : {DType::F32, DType::F16, DType::BF16, DType::F8E4M3FN, DType::F8E5M2}) {
    std::vector<float> a(kNumbers), b(kNumbers), got(kNumbers);
    for (std::size_t k = 0; k < kNumbers; ++k) {
      const std::uint32_t x = static_cast<std::uint32_t>(rng()), y = static_cast<std::uint32_t>(rng());
      a[k] = static_cast<float>(load_f64(&x, t, 0)), b[k] = static_cast<float>(load_f64(&y, t, 0));
      if (k % 3 == 1 && t == DType::F32) a[k] = static_cast<float>(static_cast<int>(x)) * 0x1p-25f;  // in [-64, 64]
    }
    for (const Op op : {Op::Add, Op::Mul, Op::Div, Op::Recip, Op::Sqrt, Op::Maximum, Op::Minimum, Op::Exp, Op::Exp2}) {
      codegen::vectors::apply(op, t, t, a.data(), b.data(), nullptr, kNumbers, got.data());
      for (std::size_t k = 0; k < kNumbers; ++k) {
        std::uint64_t stored = 0;
        store_f64(&stored, t, 0, eval_of(op).f(a[k], b[k], 0));
        const auto want = static_cast<float>(load_f64(&stored, t, 0));
        ASSERT_TRUE(std::memcmp(&want, &got[k], sizeof want) == 0 || (std::isnan(want) && std::isnan(got[k])))
            << info(op).name << " of " << a[k] << ", " << b[k] << " as " << name(t) << ": " << got[k];
      }
    }
    codegen::vectors::mul_add(t, a.data(), b.data(), a.data(), kNumbers, got.data());
    for (std::size_t k = 0; k < kNumbers; ++k) {
      std::uint64_t stored = 0;
      store_f64(&stored, t, 0, std::fma(double{a[k]}, double{b[k]}, double{a[k]}));
      const auto want = static_cast<float>(load_f64(&stored, t, 0));
      ASSERT_TRUE(want == got[k] || (std::isnan(want) && std::isnan(got[k]))) << a[k] << " " << b[k] << " " << name(t);
    }
  }
}
