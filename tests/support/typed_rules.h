// Fixture of the typed API's tests: random shapes, and a comparison of one untyped operation with its typed rule.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"

namespace typed_rules {
namespace ty = lc::typed;
using lc::DType;
using lc::Error;
using lc::Graph;
using lc::Tensor;

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

// Compares an untyped operation with its typed rule: both must give the same shape or the same error message.
class Rules : public ::testing::Test {
 protected:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  ty::Shape any(int low = 0, int high = 4) {
    static const ty::Dim extents[] = {0, 1, 1, 2, 2, 3, 4, 6, "batch", "seq"};
    ty::Shape s;
    for (int n = pick(low, high); n > 0; --n) s.push(extents[pick(0, 9)]);
    return s;
  }
  ty::Shape near(ty::Shape s) {  // a copy with up to two axes changed
    for (int k = pick(0, 2); k > 0 && s.rank > 0; --k) s.d[pick(0, s.rank - 1)] = any(1, 1).d[0];
    return s;
  }
  Tensor tensor(const ty::Shape& s) {
    return ty::make_input(g_, lc::str_cat("t", count_++).c_str(), s, DType::F32, {}, ty::At::current());
  }
  template <class F>
  void same(const ty::Inferred& rule, const F& f) {
    std::string got;
    const std::string problem = problem_of([&] { got = str(f().shape()); });
    // '?' is an extent like batch + 1, which only the untyped operation can name
    const std::string_view said = rule.error.s;
    // PyTorch, and so the untyped operations, accept axes 0 and -1 of a scalar, and a scalar as an index. The typed
    // rules reject both.
    if (said.ends_with(" is not an axis of []") || said.ends_with("the index has rank 1, not []")) return;
    if (const auto open = said.find('?'); open != said.npos)
      ASSERT_EQ(problem.substr(0, said.rfind('[', open)), said.substr(0, said.rfind('[', open)));
    else ASSERT_EQ(problem, said) << "the operation gives " << got;
    if (!rule.ok()) {
      ++failed_;
      return;
    }
    ++passed_;
    ty::Text want;
    want.add(rule.out);
    // '?' is an extent that the typed rule leaves to graph construction
    if (std::string_view(want.s).find('?') == std::string_view::npos) {
      ASSERT_EQ(got, want.s);
    }
  }
  void TearDown() override {  // both outcomes must occur often, or the test proves nothing
    EXPECT_GT(passed_, 200);
    EXPECT_GT(failed_, 200);
  }
  Graph g_;
  std::mt19937 random_{5};
  int count_ = 0, passed_ = 0, failed_ = 0;
};

// Checks that the static type of `t` agrees with its dtype and shape.
template <class E, ty::Dim... D>
void kept(const ty::Tensor<E, D...>& t, int line) {
  EXPECT_EQ(t.dtype(), (ty::Tensor<E, D...>::static_dtype)) << "line " << line;
  ty::Text want;
  want.add(ty::Tensor<E, D...>::static_shape);
  EXPECT_EQ(str(t.shape()), want.s) << "line " << line;
}
template <class T>
concept Pieces = requires { std::tuple_size<T>::value; };
template <Pieces P>  // checks each element of a tuple
void kept(const P& parts, int line) {
  std::apply([line](const auto&... part) { (kept(part, line), ...); }, parts);
}
#define KEPT(...) typed_rules::kept(__VA_ARGS__, __LINE__)

}  // namespace typed_rules
