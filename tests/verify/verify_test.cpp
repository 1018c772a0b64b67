// verify() names a guilty rule and shrinks the graph that shows it. The rules of generic() hold on NaN, infinities and
// both zeros.
#include "lightcone/verify/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/random_graph.h"

using namespace lc;

namespace {

Graph example() {
  Graph g;
  const Tensor x = g.input("x", {4, 7}), y = g.input("y", {4, 7}), w = g.input("w", {7, 3});
  g.output("out", softmax(matmul(gelu(x + y * 2.0), w), 1));
  g.output("sum", sum(x - y));
  return g;
}

// Builds the tensor of a pattern, the left or right side of a rule.
Tensor build(const Pat& p, const std::map<const PatNode*, Tensor>& variables, const Tensor& like) {
  if (p->kind == PatNode::Kind::Any) return variables.at(p.operator->());
  if (p->kind == PatNode::Kind::Literal) return full_like(like, p->value);
  std::vector<Tensor> in;
  for (const Pat& q : p->in) in.push_back(build(q, variables, like));
  return apply(p->op, in, SourceLocation::current());
}
void variables_of(const Pat& p, std::vector<const PatNode*>& v, std::vector<bool>& condition,
                  bool is_condition = false) {
  if (p->kind == PatNode::Kind::Any) {
    if (std::find(v.begin(), v.end(), p.operator->()) == v.end())
      v.push_back(p.operator->()), condition.push_back(is_condition);
    return;
  }
  for (std::size_t i = 0; i < p->in.size(); ++i) variables_of(p->in[i], v, condition, p->op == Op::Where && i == 0);
}

}  // namespace

TEST(Verify, RightCompilersPass) {
  const Graph g = example();
  const VerifyReport r = verify(g, generic() | cpu({.threads = 2}));
  EXPECT_TRUE(r.ok()) << r.str();
  std::vector<std::string> names;
  for (const VerifyReport::Checked& p : r.passes) {
    names.push_back(p.pass);
    EXPECT_GT(p.elements, 20u) << p.pass;
    EXPECT_TRUE(p.pass != "cpu" || p.fired.at("matmul") > 0);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"generic", "compile-loops", "fuse-attention", "inline-composites",
                                             "unroll-windows", "channels-last", "filter-gradients", "materialize-views",
                                             "match-attention", "prepare-contractions", "bf16-propagation", "cpu",
                                             "overlap-exchanges", "schedule-state-updates", "run-concurrently"}));
}

TEST(Verify, NamesTheGuiltyRuleAndShrinks) {
  const Pat x = any(), y = any();
  const Compiler wrong =
      rewrite("mine", {{"commute", x + y, y + x}, {"lose a sign", x * -1.0, x}, {"fine", maximum(x, x), x}});
  const Graph g = example();
  const VerifyReport r = verify(g, generic() | wrong | cpu({.threads = 1}));
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.fault->pass, "mine");
  EXPECT_EQ(r.fault->rule, "lose a sign");
  EXPECT_NE(r.fault->graph.find("mul"), std::string::npos) << r.fault->graph;
  EXPECT_LE(std::count(r.fault->graph.begin(), r.fault->graph.end(), '\n'), 6)
      << r.fault->graph;  // reduced from some thirty lines
  EXPECT_NE(r.str().find("lose a sign"), std::string::npos);
}

TEST(Verify, APassThatThrowsIsAFault) {
  const Compiler broken(Pass{"broken", [](const Graph&, PassLog&) -> Graph { throw Error("broken", "on purpose"); }});
  const Graph g = example();
  const VerifyReport r = verify(g, generic() | broken);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.fault->pass, "broken");
  EXPECT_NE(r.fault->problem.find("on purpose"), std::string::npos);
}

// If every value is undecided, nothing was verified.
TEST(Verify, NothingComparedIsNotOk) {
  Graph g;
  const Tensor x = g.input("x", {4});
  const Tensor even = prim::add(x, prim::mul(x, full_like(x, -1)));
  g.output("y", prim::cast(prim::sin(prim::recip(even)), DType::I32));
  const VerifyReport r = verify(g, generic(), {.wild = false});
  EXPECT_FALSE(r.fault.has_value()) << r.str();
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.str().find("NOTHING was compared"), std::string::npos) << r.str();
  // if a few values are decided, the others are counted and reported
  const Tensor some = g.input("z", {1});
  g.output("few", prim::add(some, some));
  const VerifyReport few = verify(g, generic(), {.trials = 1, .wild = false});
  EXPECT_TRUE(few.ok()) << few.str();
  ASSERT_EQ(few.passes.size(), 1u);
  EXPECT_EQ(few.passes[0].elements, 1u);
  EXPECT_EQ(few.passes[0].undecided, 4u);
  EXPECT_NE(few.str().find("4 of 5 undecided"), std::string::npos) << few.str();
  EXPECT_NE(few.str().find("MOST of it was not compared: the error bound decides 1 of 5"), std::string::npos);
  EXPECT_FALSE(verify(g, Compiler()).ok());
  EXPECT_FALSE(verify(Graph(), generic()).ok());
  Graph empty;
  empty.output("y", prim::exp2(empty.input("x", {0, 3})));
  EXPECT_TRUE(verify(empty, generic()).ok());
}

// The uncertainty of a remainder is that of its divisor times the quotient: 7092 mod 1/7092 is undecided.
TEST(Verify, ARemainderOfManyTimesTheDivisorIsUndecided) {
  Graph g;
  const Tensor x = g.input("x", {4});
  g.output("y", prim::mod(x, prim::recip(x)));
  Value in = make_value(DType::F32, {4});
  in.f = {-7092.00341796875, 1.25, 0, INFINITY};
  const Results want = interpret(g, {{"x", in}}, {}, Rounding::Wide, true);
  const Value& y = want.outputs.at("y");
  EXPECT_TRUE(std::isinf(y.error_at(0))) << y.at(0) << " within " << y.error_at(0);
  EXPECT_LT(y.error_at(1), 1e-5);
  EXPECT_FALSE(compare(want, run_values(g, {{"x", in}}, {}), 4).has_value());
}

// Whether such a small value is zero depends on rounding: exp2(-200) underflows f32.
TEST(Verify, ABoolOfWhatMayBeZeroIsUndecided) {
  Graph g;
  g.output("y", prim::cast(prim::exp2(g.input("x", {3})), DType::Bool));
  Value in = make_value(DType::F32, {3});
  in.f = {-200, -20, 1};
  const Value y = interpret(g, {{"x", in}}, {}, Rounding::Wide, true).outputs.at("y");
  EXPECT_TRUE(std::isinf(y.error_at(0)));
  EXPECT_EQ(y.error_at(1), 0);
  EXPECT_EQ(y.error_at(2), 0);
}

// A pass may compute in another type between a node's operands and its result, but the result must have the node's
// type.
TEST(Verify, APassMayComputeInAnotherTypeIfItCastsBack) {
  const auto in_double = [](bool back) {
    return Compiler(Pass{"double", [back](const Graph& src, PassLog&) {
                           return copy_graph(src, [&](Graph& dst, NodeId, Node n) -> Edge {
                             if (n.op == Op::SumReduce) {
                               const Tensor wide = prim::cast(Tensor(dst, n.in[0]), DType::F64),
                                            sum = prim::sum_reduce(wide, n.axis);
                               return back ? prim::cast(sum, DType::F32).edge() : sum.edge();
                             }
                             const NodeId id = dst.add(std::move(n));
                             return {id, View(dst[id].shape)};
                           });
                         }});
  };
  Graph g;
  g.output("y", prim::sum_reduce(g.input("x", {4, 9}), 1));
  EXPECT_TRUE(verify(g, in_double(true)).ok());
  try {
    transform(g, in_double(false));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("a pass turned [4] f32 into [4] f64"), std::string::npos) << e.what();
  }
}

TEST(Verify, ComparisonDoesNotForgive) {
  Value a = make_value(DType::F32, {3}), b = a;
  const auto differs = [&] { return compare({{{"y", a}}, {}}, {{{"y", b}}, {}}, 4).has_value(); };
  EXPECT_FALSE(differs());
  b.f = {0, NAN, 0};
  EXPECT_TRUE(differs());  // a NaN instead of a number
  a.f = {0, NAN, 0}, b.f = {0, 0, 0};
  EXPECT_TRUE(differs());  // a number instead of a NaN
  a.f = {0, 1, 2}, b.f = {0, 1, 2.0000001};
  EXPECT_TRUE(differs());  // no error is allowed if none is tracked
  b = make_value(DType::F32, {2});
  EXPECT_TRUE(differs());
  b = make_value(DType::F64, {3});
  EXPECT_TRUE(differs());
  EXPECT_TRUE(compare({{{"y", a}}, {}}, {{}, {}}, 4).has_value());  // the output is missing
  a = make_value(DType::F32, {2}), b = a;
  b.f[1] = 1;
  EXPECT_TRUE(compare({{}, {{"state", a}}}, {{}, {{"state", b}}}, 4).has_value());  // states are compared as well
  EXPECT_TRUE(compare({{}, {{"state", a}}}, {{}, {}}, 4).has_value());
  a.f = {1, 1}, a.error = {0, 1e-3};
  b.f = {1, 1.0039};
  EXPECT_FALSE(differs());  // four times the bound
  b.f = {1, 1.0041};
  EXPECT_TRUE(differs());  // more than four times the bound
  a.error = {0, INFINITY};
  VerifyReport::Checked stats;
  EXPECT_FALSE(compare({{{"y", a}}, {}}, {{{"y", b}}, {}}, 4, &stats).has_value());
  EXPECT_EQ(stats.elements, 1u);
  EXPECT_EQ(stats.undecided, 1u);
}

// A wrong next value of a state is found although no output depends on it.
TEST(Verify, LooksAtStates) {
  Graph g;
  const Tensor s = g.input("s", {4}), x = g.input("x", {4});
  g.assign(s, prim::add(s, prim::mul(x, full_like(x, -1))));
  g.output("y", prim::sum_reduce(x, 0));
  const Pat p = any();
  const VerifyReport r = verify(g, rewrite("mine", {{"lose a sign", p * -1.0, p}}));
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.fault->rule, "lose a sign");
}

// Both sides of each exact rule give the same bits for numbers that break algebra.
TEST(Rules, ExactRulesAreExact) {
  const double odd[] = {NAN,  INFINITY, -INFINITY, 0.0,    -0.0,  1,     -1,  0.5, 3,
                        1e30, -1e30,    1e-38,     -1e-38, 1e-45, 65504, 255, 7,   -3};
  int checked = 0;
  for (const Rule& rule : generic_rules()) {
    if (!rule.to) continue;
    EXPECT_EQ(rule.policy, Policy::Exact) << rule.name;
    std::vector<const PatNode*> names;
    std::vector<bool> condition;
    variables_of(rule.from, names, condition);
    for (const DTypeInfo& type_info : kDTypes) {
      const DType t = type_info.dtype;
      if (t == DType::Bool) continue;
      if ((rule.dtypes == For::Floats && !is_float(t)) || (rule.dtypes == For::Integers && is_float(t))) continue;
      Graph g;
      std::map<const PatNode*, Tensor> variables;
      std::map<std::string, Value> values;
      const std::int64_t n = std::size(odd) * std::size(odd);
      for (std::size_t v = 0; v < names.size(); ++v) {
        const DType type = condition[v] ? DType::Bool : t;
        const std::string name = str_cat("v", v);
        variables[names[v]] = g.input(name, {n}, type);
        Value value = make_value(type, {n});
        for (std::int64_t k = 0; k < n; ++k) {
          const double x =
              odd[static_cast<std::size_t>(v % 2 ? k / static_cast<std::int64_t>(std::size(odd)) : k) % std::size(odd)];
          if (is_float(type)) value.f[static_cast<std::size_t>(k)] = x;
          else
            value.i[static_cast<std::size_t>(k)] = type == DType::Bool ? k % 2
                                                   : std::isfinite(x) && std::abs(x) < 1e6
                                                       ? static_cast<std::int64_t>(std::abs(x))
                                                       : 3;
        }
        std::vector<std::byte> stored(value.size() * size_of(type));
        write_value(value, stored.data());
        values[name] = read_value(stored.data(), type, {n});
      }
      if (variables.empty()) continue;
      try {
        const Tensor like = variables[names.back()];
        g.output("from", build(rule.from, variables, like));
        g.output("to", build(*rule.to, variables, like));
      } catch (const Error&) {
        continue;  // the operation does not support the dtype
      }
      const Results r = interpret(g, values, {}, Rounding::Storage);
      const Value &a = r.outputs.at("from"), &b = r.outputs.at("to");
      for (std::size_t k = 0; k < a.size(); ++k, ++checked) {
        const double x = a.at(k), y = b.at(k);
        EXPECT_TRUE((std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y)))
            << rule.name << " on " << name(t) << " " << k << ": " << x << " vs " << y;
      }
    }
  }
  EXPECT_GT(checked, 1000);
}

// Graphs that resemble the left side of a rule but must not match.
TEST(Rules, MatchNothingElse) {
  Graph g;
  const Tensor x = g.input("x", {2}), one = full_like(x, 1), minus = full_like(x, -1);
  const Tensor wide = x.unsqueeze(0).expand({2, 2}).reshape({4});
  g.output("padded one", prim::mul(wide, one.pad(0, 1, 1)));
  g.output("padded zero", prim::add(wide, full_like(x, -0.0).pad(0, 1, 1)));
  g.output("turned between", prim::mul(prim::mul(x, minus).flip(0), minus));
  g.output("turned maximum", prim::maximum(x, x.flip(0)));
  g.output("plus zero", prim::add(x, full_like(x, 0)));  // -0 + 0 is 0
  g.output("minus zero", prim::mul(x, full_like(x, 0)));
  g.output("narrow and back", prim::cast(prim::cast(x, DType::BF16), DType::F32));
  const Tensor n = full(g, {2}, (1 << 24) + 1, DType::I32), m = full(g, {2}, 0x1p53, DType::I64);
  const Tensor i = g.input("i", {2}, DType::I32);
  g.output("through f32 and back", prim::cast(prim::cast(prim::add(i, n), DType::F32), DType::I32));
  g.output("beyond double", prim::add(m, full_like(m, 1)));
  const Graph tidy = transform(g, generic()).graph;
  Value whole = make_value(DType::I32, {2});
  whole.i = {0, 2};
  for (const std::vector<double>& v : {std::vector<double>{3.3f, -5}, {-0.0, 7}, {INFINITY, -INFINITY}, {NAN, 2}}) {
    Value in = make_value(DType::F32, {2});
    in.f = v;
    const std::map<std::string, Value> inputs = {{"x", in}, {"i", whole}};
    const Results want = interpret(g, inputs, {}, Rounding::Storage),
                  got = interpret(tidy, inputs, {}, Rounding::Storage);
    EXPECT_EQ(want.outputs.at("beyond double").i[0], (std::int64_t{1} << 53) + 1);
    for (const auto& [name, w] : want.outputs) {
      EXPECT_EQ(w.i, got.outputs.at(name).i) << name;
      if (!is_float(w.dtype)) continue;
      for (std::size_t k = 0; k < w.size(); ++k) {
        const double a = w.f[k], b = got.outputs.at(name).f[k];
        EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)))
            << name << " of " << v[0] << ", " << v[1] << " at " << k << ": " << b << ", not " << a;
      }
    }
  }
}

#if defined(__GLIBC__)
// Rules own their patterns: destroying them frees all their memory.
TEST(Compilers, PatternsEndWithTheirRules) {
  const auto make = [] {
    const Pat x = any();
    const Compiler c = rewrite("twice", {{"x * 1 * 1", x * 1.0 * 1.0, x}, {"sqrt(x + x) * 0", sqrt(x + x) * 0.0, x}});
    return c.passes().size() + generic().passes().size();
  };
  make();
  const std::size_t held = mallinfo2().uordblks;
  for (int k = 0; k < 100; ++k) make();
  EXPECT_LT(mallinfo2().uordblks, held + (8 << 10));
}
#endif

TEST(Compilers, StatisticsSkippingAndRepeating) {
  Graph g;
  const Tensor x = g.input("x", {3});
  g.output("y", prim::mul(prim::mul(x, full_like(x, 1)), full_like(x, 1)));
  const Compiled done = transform(g, generic());
  EXPECT_EQ(done.graph.str().find("mul"), std::string::npos);
  ASSERT_EQ(done.log.size(), 1u);
  EXPECT_EQ(done.log[0].fired.at("x * 1"), 2);
  EXPECT_NE(report(done.log).find("generic"), std::string::npos);
  EXPECT_NE(transform(g, generic(), {.skip = {"generic"}, .observe = {}}).graph.str().find("mul"), std::string::npos);
  EXPECT_NE(g.str().find("mul"), std::string::npos);  // the user's graph is unchanged
  EXPECT_NE(g.dot().find("digraph"), std::string::npos);
}

// An f16 result may overflow if the allowed rounding reaches beyond the largest number, and only to that side.
TEST(Compare, OverflowIsAllowedWhereRoundingReachesIt) {
  const auto differs = [](double want, double error, double got) {
    Results a, b;
    a.outputs["y"] = make_value(DType::F16, {1});
    b.outputs["y"] = make_value(DType::F16, {1});
    a.outputs["y"].f[0] = want, a.outputs["y"].error = {error}, b.outputs["y"].f[0] = got;
    return compare(a, b, 1).has_value();
  };
  EXPECT_FALSE(differs(65000, 1000, kInf));
  EXPECT_FALSE(differs(-65000, 1000, -kInf));
  EXPECT_TRUE(differs(65000, 1000, -kInf));
  EXPECT_TRUE(differs(65000, 100, kInf));
  EXPECT_TRUE(differs(60000, 1000, kInf));
  EXPECT_TRUE(differs(65000, 1000, kNaN));
}
