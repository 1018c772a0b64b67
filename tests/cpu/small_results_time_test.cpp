// Loops take as long for any numbers.
//
// Exponentials of numbers far below zero, as of masked scores: Intel's processors with AVX-512 need microcode for a
// result that is too small for a number, which took 15 times as long for a loop of exp(); with AVX2 such results are
// computed apart from others. Maxima of maxima of numbers of any sign: GCC left chains of ?: as jumps, which a
// processor cannot predict.
//
// Processor time is compared with that of ordinary numbers, so that neither a slow machine nor a loaded one fails.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/backends/cpu/target/isa.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "processor_time.h"

using namespace lc;

namespace {

constexpr double kMost = 4;  // times as long; the faults that this test is for took 15

double least(double before, const std::function<void()>& f) { return std::min(before, test::seconds(f)); }

void expect_as_fast(const std::function<void()>& ordinary, const std::function<void()>& small, double most = kMost) {
  double of_ordinary = std::numeric_limits<double>::infinity(), of_small = of_ordinary;
  ordinary(), small();
  for (int i = 0; i < 3 || (i < 25 && of_small > most * of_ordinary); ++i)
    of_ordinary = least(of_ordinary, ordinary), of_small = least(of_small, small);
  EXPECT_LE(of_small, most * of_ordinary) << "ordinary numbers take " << of_ordinary << " s";
}

// Values of which every third is `odd`.
std::vector<float> with(float odd, std::size_t count) {
  std::vector<float> all(count);
  for (std::size_t k = 0; k < count; ++k) all[k] = k % 3 == 0 ? odd : -1.0f - 0.001f * static_cast<float>(k % 977);
  return all;
}

}  // namespace

TEST(SmallResults, Loops) {
  constexpr std::size_t kCount = 1 << 18;
  const bool llvm = !backends::cpu::find_llvm().path.empty();
  for (const char* compiler : {"", "llvm"})
    for (const bool base_2 : {false, true}) {
      if (*compiler && !llvm) continue;
      Graph g;
      const Tensor x = g.input("x", {static_cast<std::int64_t>(kCount)});
      g.output("y", base_2 ? exp2(x) : exp(x));
      const Program p = compile(g, generic() | cpu({.threads = 1, .jit = {.compiler = compiler}}));
      Context ordinary(p), small(p);
      ordinary.set("x", with(-2, kCount));
      for (const float odd : {-std::numeric_limits<float>::infinity(), -120.0f, -200.0f, -1e4f}) {
        if (backends::cpu::detect_isa() == backends::cpu::Isa::Generic) break;  // every number takes as long
        if (base_2 && odd == -120.0f) continue;
        SCOPED_TRACE(std::string(compiler) + (base_2 ? " exp2 " : " exp ") + std::to_string(odd));
        small.set("x", with(odd, kCount));
        expect_as_fast([&] { ordinary.run(); }, [&] { small.run(); });
        EXPECT_EQ(small.get("y")[0], 0);
      }
    }
}

TEST(SmallResults, MaskedScores) {
  constexpr std::int64_t kRows = 128, kDepth = 32;
  for (const Precision precision : {Precision::Highest, Precision::Medium}) {
    Graph g;
    const Tensor q = g.input("q", {2, 4, kRows, kDepth}), k = g.input("k", {2, 4, kRows, kDepth}),
                 v = g.input("v", {2, 4, kRows, kDepth}), mask = g.input("mask", {kRows, kRows}, DType::Bool);
    g.output("y", scaled_dot_product_attention(q, k, v, mask));
    const Program p = compile(g, generic() | cpu({.threads = 1, .precision = precision}));
    Context all(p), some(p);
    for (Context* c : {&all, &some})
      for (const char* name : {"q", "k", "v"}) c->set(name, with(0.5f, 2 * 4 * kRows * kDepth));
    std::vector<float> every(kRows * kRows, 1), third(every.size());
    for (std::size_t i = 0; i < third.size(); i += 3) third[i] = 1;
    all.set("mask", every), some.set("mask", third);
    expect_as_fast([&] { all.run(); }, [&] { some.run(); });
  }
}

TEST(UnpredictableNumbers, MaximaOfMaxima) {
  constexpr std::size_t kCount = 8 * 128 * 128;
  Graph g;
  const Tensor x = g.input("x", {1, 8, 128, 128});
  g.output("pooled", max_pool(relu(x), {2}));
  g.output("clipped", clamp(clamp(x * 2, -0.5, 1) + x, -1, 0.5));
  const Program p = compile(g, generic() | cpu({.threads = 1}));
  Context same(p), other(p);
  std::vector<float> any(kCount);
  std::uint32_t random = 1;  // its upper half has no period that a processor would find
  for (float& v : any) v = static_cast<float>((random = random * 1664525u + 1013904223u) >> 16) / 16384.0f - 2;
  same.set("x", std::vector<float>(kCount, 0.25f)), other.set("x", any);
  expect_as_fast([&] { same.run(); }, [&] { other.run(); }, 2);  // jumps took 4.5 times as long
}
