// 8-bit floats convert and round as PyTorch's do (tests/goldens/float8.txt), in the reference, as primitives,
// interpreted, compiled and on another device.
#include <cmath>
#include <limits>

#include "error_of.h"
#include "golden_cases.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "on_device.h"

using namespace lc;

namespace {

constexpr DType kBoth[] = {DType::F8E4M3FN, DType::F8E5M2};

}  // namespace

TEST(Float8, ByTheReference) {
  const Cases c = cases_of("float8.txt");
  ASSERT_GT(c.want.size(), 20u);
  expect_answers(c, interpreted(c, {}), "the reference");
  expect_answers(c, interpreted(c, generic()), "the reference behind generic()");
}

TEST(Float8, ByTheirDefinitions) {
  const Cases c = cases_of("float8.txt");
  expect_answers(c, interpreted(c, primitives_only()), "the twelve");
}

TEST(Float8, ByKernels) {
  const Cases c = cases_of("float8.txt");
  expect_answers(c, compiled(c, "none"), "the kernel IR's interpreter");
  if (!backends::cpu::find_llvm().path.empty()) expect_answers(c, compiled(c, "llvm"), "LLVM");
  expect_answers(c, run_values(transform(c.g, generic() | test::device({.threads = 2})).graph, c.in, {}).outputs,
                 "the device");
}

// NaN of either sign stays NaN, and no other value is NaN. E4M3FN has no infinities.
TEST(Float8, NaNAndInfinities) {
  for (const DType t : kBoth) {
    Graph g;
    const Tensor bits = g.input("bits", {256}, DType::U8), x = g.input("x", {3});
    g.output("nan", isnan(bitcast(bits, t))), g.output("inf", isinf(bitcast(bits, t)));
    g.output("cast", prim::cast(prim::cast(x, t), DType::F32));
    std::map<std::string, Value> in{{"bits", make_value(DType::U8, {256})}, {"x", make_value(DType::F32, {3})}};
    for (int k = 0; k < 256; ++k) in["bits"].i[static_cast<std::size_t>(k)] = k;
    in["x"].f = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1e30};
    for (const auto& r : {interpret(g, in).outputs, interpret(transform(g, primitives_only()).graph, in).outputs,
                          run_values(transform(g, generic() | test::device()).graph, in, {}).outputs}) {
      for (int k = 0; k < 256; ++k) {
        const int size = k & 0x7f;
        EXPECT_EQ(r.at("nan").i[static_cast<std::size_t>(k)], t == DType::F8E4M3FN ? size == 0x7f : size > 0x7c) << k;
        EXPECT_EQ(r.at("inf").i[static_cast<std::size_t>(k)], t == DType::F8E5M2 && size == 0x7c) << k;
      }
      const auto& y = r.at("cast").f;
      EXPECT_TRUE(std::isnan(y[0]));
      EXPECT_EQ(y[1], t == DType::F8E5M2 ? std::numeric_limits<double>::infinity() : 448);
      EXPECT_EQ(y[2], t == DType::F8E5M2 ? -std::numeric_limits<double>::infinity() : -448);
    }
  }
}

// Each operation is computed in f32 and rounded once; sums are f32 until the end.
TEST(Float8, ArithmeticIsRoundedOnce) {
  for (const DType t : kBoth) {
    Graph g;
    const Tensor x = g.input("x", {64}, t), y = g.input("y", {64}, t), a = g.input("a", {5, 64}, t);
    for (const auto& [name, f] : std::map<std::string, Tensor>{{"add", x + y},
                                                               {"mul", x * y},
                                                               {"div", x / y},
                                                               {"exp", exp(x)},
                                                               {"sum", sum(x)},
                                                               {"product", matmul(a, x)},
                                                               {"softmax", softmax(a, 1)}}) {
      EXPECT_EQ(f.dtype(), t) << name;
      g.output(name, f);
    }
    const VerifyReport r = verify(g, generic() | test::device({.threads = 2}), {.trials = 4});
    EXPECT_TRUE(r.ok()) << r.str();
    EXPECT_GT(r.decided(), 0.3) << r.str();
  }
}

// A layer with 8-bit weights and a scale per row, as in checkpoints.
TEST(Float8, WeightsWithAScale) {
  Graph g;
  const Tensor w = g.parameter("w", {24, 32}, DType::F8E4M3FN);
  const Tensor s = g.parameter("s", {24, 1}, DType::F32), x = g.input("x", {3, 32});
  g.output("y", matmul(x, (prim::cast(w, DType::F32) * s).permute({1, 0})));
  const VerifyReport r = verify(g, generic() | test::device({.threads = 2}), {.trials = 2, .wild = false});
  EXPECT_TRUE(r.ok()) << r.str();
  EXPECT_GT(r.decided(), 0.99) << r.str();
}

TEST(Float8, Mistakes) {
  Graph g;
  const Tensor a = g.input("a", {3}, DType::F8E4M3FN), b = g.input("b", {3});
  expect_error([&] { a + b; }, "operator+: f8_e4m3fn and f32 are brought to no common type, as in PyTorch; cast one",
               "float8_test.cpp");
}
