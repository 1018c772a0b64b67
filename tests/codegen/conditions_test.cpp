// Loops over padded values read what lies inside without conditions (codegen/c/conditions.cpp): nothing outside of the
// operand is read, the numbers are right, and the loops have vectors.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "guarded.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/reference/interpreter.h"
#include "lightcone/runtime/program.h"
#include "processor_time.h"

using namespace lc;

namespace {

using Make = std::function<Tensor(const Tensor&)>;

Value numbers(DType t, std::vector<std::int64_t> shape) {
  std::mt19937 rng(5);
  std::uniform_int_distribution<int> whole(-100, 100);
  Value v = make_value(t, std::move(shape));
  for (double& x : v.f) x = whole(rng) / 8.0;
  for (std::int64_t& x : v.i) x = whole(rng);
  return v;
}

// Compares with the reference, the operand directly behind and directly before memory that cannot be read.
void expect_exact(DType t, const std::vector<std::int64_t>& shape, const std::vector<Make>& all) {
  Graph g;
  const Tensor x = g.input("x", Shape(shape.begin(), shape.end()), t);
  for (std::size_t k = 0; k < all.size(); ++k) g.output("y" + std::to_string(k), all[k](x));
  const std::map<std::string, Value> in{{"x", numbers(t, shape)}};
  const Results want = interpret(g, in, {}, Rounding::Wide, false);
  const Graph compiled = transform(g, generic() | cpu({.threads = 1})).graph;
  for (const auto side : {test::Against::Front, test::Against::Back}) {
    const Results got = test::run_guarded(compiled, in, {}, side);
    for (const auto& [output, y] : want.outputs) {
      ASSERT_EQ(got.outputs.at(output).f, y.f) << name(t) << " " << shape.back() << " " << output;
      ASSERT_EQ(got.outputs.at(output).i, y.i) << name(t) << " " << shape.back() << " " << output;
    }
  }
}

std::string source(const Make& make, const Shape& shape) {
  Graph g;
  g.output("y", make(g.input("x", shape)));
  const Graph compiled = transform(g, generic() | cpu({.threads = 1})).graph;
  std::string all;
  for (NodeId id = 0; id < compiled.size(); ++id)
    if (compiled[id].kernel) all += compiled[id].kernel->source();
  return all;
}

Tensor padded(const Tensor& x) { return relu(x).pad(1, 1, 1).pad(2, 1, 1); }

}  // namespace

TEST(Conditions, NothingOutsideIsRead) {
  std::vector<Make> all;
  for (const int before : {0, 1, 3, 20})
    for (const int after : {0, 2, 18})
      all.push_back([=](const Tensor& x) {
        return maximum(x, full_like(x, -3)).pad(1, before % 2, after % 3).pad(2, before, after);
      });
  for (const DType t : {DType::F32, DType::F64, DType::BF16, DType::I8})
    for (const std::int64_t width : {3, 17, 40, 65}) expect_exact(t, {2, 5, width}, all);
}

TEST(Conditions, StridesAndReversedWalksOfPaddedValues) {
  std::vector<Make> all;
  for (const int stride : {1, 2, 3}) {
    all.push_back([=](const Tensor& x) { return max_pool(x, {3}, {stride}, {1}); });
    all.push_back([=](const Tensor& x) { return max_pool(x, {5}, {stride}, {2}); });
    all.push_back([=](const Tensor& x) { return relu(x).pad(3, 4, 4).slice(3, 1, x.extent(3) + 5, stride); });
  }
  all.push_back([](const Tensor& x) { return flip(pad(x, 3, 2, 1), {3}) + pad(x, 3, 1, 2) * 2; });
  for (const std::int64_t width : {33, 64, 100}) expect_exact(DType::F32, {1, 3, 9, width}, all);
}

// Pieces of all sizes side by side along each axis, more of them than have loops of their own, and padded ones.
TEST(Conditions, PiecesOfConcatenations) {
  std::vector<Make> all;
  for (const int axis : {0, 1, 2})
    for (const int pieces : {2, 4, 9, 20})
      all.push_back([=](const Tensor& x) {
        std::vector<Tensor> parts;
        for (int k = 0; k < pieces; ++k) {
          const Tensor part = x.slice(axis, k % 2, x.extent(axis) - Dim(k % 3 ? 0 : 1)) * (k + 1);
          parts.push_back(k % 4 == 3 ? maximum(part, full_like(part, k))
                                           .pad(2 - axis / 2, 1, 2)
                                           .slice(2 - axis / 2, 1, part.extent(2 - axis / 2) + 1)
                                     : part);
        }
        return concat(parts, axis);
      });
  for (const DType t : {DType::F32, DType::F16, DType::I32})
    for (const std::int64_t width : {5, 40}) expect_exact(t, {3, 4, width}, all);
}

TEST(Conditions, AreOnlyAtTheBorder) {
  const std::string text = source(padded, {3, 40, 40});
  EXPECT_NE(text.find("for (long i1002 = 1L; i1002 < 41L; ++i1002)"), std::string::npos) << text;
}

// Times of loops of one thread: a padded copy took five times as long as a copy, and a concatenation of four values
// ten times, as a mask was computed for each element.
TEST(Conditions, LoopsHaveVectors) {
  constexpr double kMost = 3.5;
  const auto time = [&](const Make& make, const Shape& shape) {
    Graph g;
    g.output("y", make(g.input("x", shape)));
    const Program p = compile(g, generic() | cpu({.threads = 1}));
    Context c(p);
    std::vector<float> x(static_cast<std::size_t>(product(shape).constant().value()));
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k * 7919 % 4001) / 64 - 30;
    c.set("x", x).run();
    double least = 1;
    for (int k = 0; k < 20; ++k) least = std::min(least, test::seconds([&] { c.run(); }));
    return least;
  };
  const double copied = time([](const Tensor& x) { return relu(x) * 3; }, {16, 58, 58});
  EXPECT_LE(time([](const Tensor& x) { return padded(x) * 3; }, {16, 56, 56}), kMost * copied);
  const auto pieces = [](int axis) {
    return [axis](const Tensor& x) { return concat({x, x * 2, x * 3, x * 4}, axis); };
  };
  EXPECT_LE(time(pieces(0), {4, 58, 58}), kMost * copied);
  EXPECT_LE(time(pieces(2), {16, 58, 14}), 2 * kMost * copied);
}
