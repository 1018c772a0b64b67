// The typed face: the same answers as the untyped operations, and the same sentences.
#include <gtest/gtest.h>

#include "lightcone/lightcone.h"

using namespace lc;
namespace ty = lc::typed;

namespace {

template <class F>
std::string problem_of(const F& f) {
  try {
    f();
    return "";
  } catch (const Error& e) {
    return e.op() + ": " + e.problem();
  }
}
constexpr ty::Shape shape(std::initializer_list<ty::Dim> d) {
  ty::Shape s;
  for (const ty::Dim& x : d) s.push(x);
  return s;
}

}  // namespace

static_assert(std::is_same_v<decltype(matmul(ty::Tensor<float, 2, 3>(), ty::Tensor<float, 3, 4>())), ty::Tensor<float, 2, 4>>);
static_assert(std::is_same_v<decltype(matmul(ty::Tensor<float, "b", 2, 3>(), ty::Tensor<float, 3, 4>())), ty::Tensor<float, "b", 2, 4>>);
static_assert(std::is_same_v<decltype(ty::Tensor<float, 3, 1>() + ty::Tensor<float, 4>()), ty::Tensor<float, 3, 4>>);
static_assert(std::is_same_v<decltype(ty::Tensor<float, ty::dyn, 4>() + ty::Tensor<float, 3, 4>()), ty::Tensor<float, 3, 4>>);
static_assert(std::is_same_v<decltype(ty::sum<0, -1>(ty::Tensor<float, 2, 3, 4>())), ty::Tensor<float, 3>>);
static_assert(std::is_same_v<decltype(ty::sum(ty::Tensor<float, 2, 3>())), ty::Tensor<float>>);
static_assert(std::is_same_v<decltype(ty::argmax<1>(ty::Tensor<float, 2, 3>())), ty::Tensor<std::int64_t, 2>>);
static_assert(std::is_same_v<decltype(ty::Tensor<float, 2>() < ty::Tensor<float, 2>()), ty::Tensor<bool, 2>>);
static_assert(std::is_same_v<decltype(ty::conv2d<2, 1>(ty::Tensor<float, "n", 3, 8, 8>(), ty::Tensor<float, 16, 3, 3, 3>())), ty::Tensor<float, "n", 16, 4, 4>>);
static_assert(std::is_same_v<decltype(ty::concat<1>(ty::Tensor<float, 2, 3>(), ty::Tensor<float, 2, 5>())), ty::Tensor<float, 2, 8>>);
static_assert(std::is_same_v<decltype(ty::reshape<"b", 2, 3>(ty::Tensor<float, "b", 6>())), ty::Tensor<float, "b", 2, 3>>);
static_assert(std::is_same_v<decltype(ty::to<double>(ty::Tensor<float, 2>())), ty::Tensor<double, 2>>);
static_assert(sizeof(ty::Tensor<float, 1, 2, 3>) == sizeof(Tensor));

// The rule that runs in the compiler and the one that runs when the graph is built say the same.
TEST(Typed, OneSentenceAtCompileTimeAndAtRunTime) {
  Graph g;
  const Tensor a = g.input("a", {32, 784}), b = g.input("b", {512, 10}), c = g.input("c", {2, 3}), d = g.input("d", {2, 4}), x = g.input("x", {4, 4}), w = g.input("w", {3, 8});
  EXPECT_EQ(problem_of([&] { matmul(a, b); }), ty::infer_matmul(shape({32, 784}), shape({512, 10})).error.s);
  EXPECT_EQ(problem_of([&] { concat({c, d}, 0); }), ty::infer_concat(shape({2, 3}), shape({2, 4}), 0).error.s);
  EXPECT_EQ(problem_of([&] { c.reshape({4, 2}); }), ty::infer_reshape(shape({2, 3}), shape({4, 2})).error.s);
  EXPECT_EQ(problem_of([&] { sum(c, {2}); }), ty::bad_axis("sum", 2, shape({2, 3})).error.s);
  EXPECT_EQ(problem_of([&] { softmax(c, -3); }), ty::bad_axis("softmax", -3, shape({2, 3})).error.s);
  EXPECT_EQ(problem_of([&] { c + d; }), ty::infer_broadcast("operator+", shape({2, 3}), shape({2, 4})).error.s);
  EXPECT_EQ(problem_of([&] { linear(x, w); }), ty::infer_linear(shape({4, 4}), shape({3, 8})).error.s);
  EXPECT_EQ(problem_of([&] { broadcast_to(c, {4, 2, 5}); }), ty::infer_broadcast_to(shape({2, 3}), shape({4, 2, 5})).error.s);
  const int axes[] = {0, 0};
  EXPECT_EQ(problem_of([&] { c.permute({0, 0}); }), ty::infer_permute(shape({2, 3}), axes, 2).error.s);
  // extents known only now: the same sentence when the graph is built
  const auto p = ty::input<float, ty::dyn, ty::dyn>(g, "p", {32, 784});
  const auto q = ty::input<float, ty::dyn, ty::dyn>(g, "q", {512, 10});
  EXPECT_EQ(problem_of([&] { ty::matmul(p, q); }), "matmul: [32, 784] x [512, 10]: inner dimensions differ: 784 vs 512");
  EXPECT_EQ(problem_of([&] { static_cast<void>(p.as<"batch", 784>()); }), "as: a tensor of [32, 784] is not a [batch, 784]");
  EXPECT_EQ(problem_of([&] { static_cast<void>(p.as<32, 785>()); }), "as: a tensor of [32, 784] is not a [32, 785]");
  EXPECT_EQ(problem_of([&] { static_cast<void>(p.as<32, 784>()); }), "");
}

TEST(Typed, NamedExtentsAreBoundWhenItRuns) {
  Session cx;
  auto x = cx.tensor<"rows", 3>();
  const auto y = ty::sum<0>(x * 2.0).retrieve();
  cx.compile(generic() | cpu({.threads = 1}));
  EXPECT_THROW(cx.execute(), Error);  // rows has no value
  x.set(std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(cx.bind("rows", 2).execute().data(y), (std::vector<float>{10, 14, 18}));
  EXPECT_THROW(cx.bind("rows", 3).execute(), Error);  // six elements are not three rows
  EXPECT_THROW(cx.bind("rows", 5000), Error);         // beyond its bounds
  x.set(std::vector<float>{1, 2, 3});
  EXPECT_EQ(cx.bind("rows", 1).execute().data(y), (std::vector<float>{2, 4, 6}));
}

TEST(Typed, HandlesStayValidThroughEveryCompile) {
  Session cx;
  auto a = cx.tensor<2, 2>().set({{1, 2}, {3, 4}});
  const auto b = (a + a).retrieve("b");
  cx.compile(generic()).execute();
  EXPECT_EQ(cx.str(b), "[[2, 4],\n [6, 8]]");
  const auto c = ty::matmul(a, b).retrieve("c");
  cx.compile(generic() | cpu({.threads = 1})).execute();
  EXPECT_EQ(cx.data(b), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(cx.data(c), (std::vector<float>{14, 20, 30, 44}));
}
