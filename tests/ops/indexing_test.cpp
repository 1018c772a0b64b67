// Indexing gives torch's values, types and gradients (tests/goldens/indexing.txt), and inputs without a torch answer
// behave as documented.
#include "lightcone/ops/indexing/indexing.h"

#include "error_of.h"
#include "on_device.h"
#include "torch_cases.h"

using namespace lc;

namespace {

using T = const std::vector<Tensor>&;

#define B(n, ...)                                                   \
  {                                                                 \
    n, [](Graph&, T t) { return std::vector<Tensor>{__VA_ARGS__}; } \
  }
#define G(n, ...)                                                   \
  {                                                                 \
    n, [](Graph& g, T) { return std::vector<Tensor>{__VA_ARGS__}; } \
  }
#define P(n, ...)                       \
  {                                     \
    n, [](Graph&, T t) {                \
      const auto [p, q] = __VA_ARGS__;  \
      return std::vector<Tensor>{p, q}; \
    }                                   \
  }
#define Q(n, ...)                                                         \
  {                                                                       \
    n, [](Graph&, T t) {                                                  \
      const Unique u = __VA_ARGS__;                                       \
      return std::vector<Tensor>{u.values, u.inverse, u.counts, u.count}; \
    }                                                                     \
  }
#define R(n)                                                      \
  B("scatter_reduce " n, scatter_reduce(t[0], 0, t[1], t[2], n)), \
      B("scatter_reduce " n " alone", scatter_reduce(t[0], 0, t[1], t[2], n, false))
#define N(n)                                                  \
  B("index_reduce " n, index_reduce(t[0], 1, t[1], t[2], n)), \
      B("index_reduce " n " alone", index_reduce(t[0], 1, t[1], t[2], n, false))
// clang-format off
const TorchBuilders kBuilders{
    B("index", lc::index(t[0], {t[1], t[2]})), B("index one", lc::index(t[0], {t[1]})),
    B("index_put", index_put(t[0], {t[1], t[2]}, t[3])), B("index_put accumulate", index_put(t[0], {t[1], t[2]}, t[3], true)), B("index_put one", index_put(t[0], {t[1]}, t[2])),
    B("index_fill", index_fill(t[0], 1, t[1], t[0].dtype() == DType::I64 ? -2 : -2.5)), B("take", take(t[0], t[1])), B("put", put(t[0], t[1], t[2])), B("put accumulate", put(t[0], t[1], t[2], true)),
    B("take_along_dim", take_along_dim(t[0], t[1], 1)), B("take_along_dim flat", take_along_dim(t[0], t[1])),
    R("sum"), R("prod"), R("mean"), R("amax"), R("amin"), N("prod"), N("mean"), N("amax"), N("amin"),
    B("masked_scatter", masked_scatter(t[0], t[1], t[2])),
    B("diag 0", diag(t[0])), B("diag 1", diag(t[0], 1)), B("diag -2", diag(t[0], -2)), B("diag_embed 0", diag_embed(t[0])), B("diag_embed 1", diag_embed(t[0], 1)), B("diag_embed -2", diag_embed(t[0], -2)),
    B("diag_embed axes", diag_embed(t[0], 1, 0, 2)), B("diag_embed swapped", diag_embed(t[0], 1, 2, 0)),
    B("diagonal_scatter 0", diagonal_scatter(t[0], t[1])), B("diagonal_scatter 1", diagonal_scatter(t[0], t[1], 1)), B("diagonal_scatter -2", diagonal_scatter(t[0], t[1], -2)), B("diagonal_scatter axes", diagonal_scatter(t[0], t[1], -1, 2, 0)),
    B("select_scatter", select_scatter(t[0], t[1], 1, -2)), B("slice_scatter", slice_scatter(t[0], t[1], 1, 1, -1)), B("slice_scatter step", slice_scatter(t[0], t[1], 0, -4, 100, 3)), B("slice_scatter none", slice_scatter(t[0], t[1], 0, 4, 2)),
    G("tril_indices 0", tril_indices(g, 3, 4)), G("tril_indices 1", tril_indices(g, 3, 4, 1)), G("tril_indices -2", tril_indices(g, 3, 4, -2)), G("triu_indices 0", triu_indices(g, 4, 3)), G("triu_indices 1", triu_indices(g, 4, 3, 1)), G("triu_indices -2", triu_indices(g, 4, 3, -2)),
    P("nonzero", nonzero(t[0])), P("nonzero 2", argwhere(t[0], 2)), P("masked_select", masked_select(t[0], t[1], 5)), P("masked_select 2", masked_select(t[0], t[1], 2)),
    Q("unique", unique(t[0])), Q("unique 2", unique(t[0], 2)), Q("unique_consecutive", unique_consecutive(t[0])),
};
// clang-format on

TEST(Indexing, AnswersAsTorchDoes) {
  hold_against_torch("indexing.txt", kBuilders, {.f64 = 1e-12, .slopes = 1e-10}, 80);
}

// torch refuses these indices: here, reads out of range give 0 and writes are ignored. Negative indices count from the
// end in reductions, too.
TEST(Indexing, OutOfRange) {
  Graph g;
  const Tensor a = g.input("a", {4}), i = g.input("i", {3}, DType::I64), v = g.input("v", {3});
  lc::index(a, {i}).retrieve("index");
  take(a, i).retrieve("take");
  index_put(a, {i}, v, true).retrieve("put");
  scatter_reduce(a, 0, i, v, "amax").retrieve("amax");
  masked_scatter(a, ne(a, full_like(a, 9)), v).retrieve("masked");
  std::map<std::string, Value> in{
      {"a", make_value(DType::F32, {4})}, {"i", make_value(DType::I64, {3})}, {"v", make_value(DType::F32, {3})}};
  in["a"].f = {1, 2, 3, 4}, in["i"].i = {-5, 4, -1}, in["v"].f = {10, 20, 30};
  using V = std::vector<double>;
  const auto look = [](const std::map<std::string, Value>& r) {
    EXPECT_EQ(r.at("index").f, (V{0, 0, 4}));
    EXPECT_EQ(r.at("take").f, (V{0, 0, 4}));
    EXPECT_EQ(r.at("put").f, (V{1, 2, 3, 34}));
    EXPECT_EQ(r.at("amax").f, (V{1, 2, 3, 30}));
    EXPECT_EQ(r.at("masked").f, (V{10, 20, 30, 0}));
  };
  look(interpret(g, in).outputs);
  look(run_values(transform(g, generic() | test::device({.threads = 2})).graph, in, {}).outputs);
}

// Symbolic sizes.
TEST(Indexing, SymbolicSizes) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 12);
  const Tensor a = g.input("a", {n, 3}), i = g.input("i", {n}, DType::I64), w = g.input("w", {5, 3});
  const Nonzero z = nonzero(a, 4);
  g.output("places", z.indices), g.output("count", z.count);
  g.output("amax", index_reduce(w, 0, i, a, "amax"));
  g.output("put", index_put(w, {i}, a, true));
  for (const std::int64_t size : {1, 5, 12}) {
    const VerifyReport r =
        verify(g, generic() | test::device({.threads = 2}), {.trials = 2, .wild = false, .sizes = {{"n", size}}});
    EXPECT_TRUE(r.ok()) << r.str();
  }
}

// A scatter whose values are the base that it writes into: the inverse of a permutation, for instance. The result
// cannot take over the base's memory.
TEST(Indexing, AScatterMayReadItsBaseTwice) {
  Graph g;
  const Tensor x = g.input("x", {6}) + 1, i = g.input("i", {6}, DType::I64);
  scatter(x, 0, i, x).retrieve("moved");
  scatter_add(x, 0, i, x).retrieve("added");
  std::map<std::string, Value> in{{"x", make_value(DType::F32, {6})}, {"i", make_value(DType::I64, {6})}};
  in["x"].f = {0, 1, 2, 3, 4, 5}, in["i"].i = {1, 0, 3, 2, 5, 4};
  const auto r = run_values(transform(g, generic() | test::device({.threads = 2})).graph, in, {}).outputs;
  EXPECT_EQ(r.at("moved").f, (std::vector<double>{2, 1, 4, 3, 6, 5}));
  EXPECT_EQ(r.at("added").f, (std::vector<double>{3, 3, 7, 7, 11, 11}));
}

// An axis behind the index that has one element when the program runs.
TEST(Indexing, RowsMayHaveOneElement) {
  Graph g;
  const Dim d = Dim::symbol("d", 1, 100);
  const Tensor x = g.input("x", {2, 3, d}), i = g.input("i", {2}, DType::I64);
  index_select(x, 1, i).retrieve("y");
  std::map<std::string, Value> in{{"x", make_value(DType::F32, {2, 3, 1})}, {"i", make_value(DType::I64, {2})}};
  in["x"].f = {0, 1, 2, 3, 4, 5}, in["i"].i = {1, 2};
  for (const bool compiler : {true, false}) {
    const Graph p = transform(g, generic() | test::device({.threads = 1, .compiler = compiler})).graph;
    EXPECT_EQ(run_values(p, in, {{"d", 1}}).outputs.at("y").f, (std::vector<double>{1, 2, 4, 5}));
  }
}

TEST(Indexing, Mistakes) {
  Graph g;
  const Tensor a = g.input("a", {3, 4}), i = g.input("i", {2}, DType::I64), m = g.input("m", {3, 4}, DType::Bool);
  const auto expect = [](const std::function<void()>& f, const std::string& sentence) {
    expect_error(f, sentence, "indexing_test.cpp");
  };
  expect([&] { lc::index(a, {i, i, i}); }, "index: 3 indices for [3, 4]");
  expect(
      [&] { lc::index(a, {m}); },
      "index: an index is a mask: where(), masked_fill() and masked_scatter() write by masks, masked_select() reads");
  expect([&] { take(a, a); }, "take: indices are integers, not f32");
  expect([&] { index_put(a, {i}, i); }, "index_put: the source is i64, the tensor f32; convert one");
  expect([&] { index_put(a, {i}, g.input("v", {3, 4})); }, "index_put: [3, 4] and [2, 4] differ at axis 0: 3 vs 2");
  expect(
      [&] {
        scatter_reduce(a, 0, g.input("k", {3, 4}, DType::I64), a, "max");
      },
      "scatter_reduce: reduce is \"sum\", \"prod\", \"mean\", \"amax\" or \"amin\", not \"max\"");
  expect(
      [&] {
        scatter_reduce(a, 0, g.input("l", {4, 4}, DType::I64), a, "sum");
      },
      "scatter_reduce: a source [3, 4] is smaller than its index [4, 4]");
  expect([&] { select_scatter(a, g.input("s", {3}), 1, 4); }, "select_scatter: index 4 of axis 1 of [3, 4]");
  expect([&] { slice_scatter(a, a, 1, 1); }, "slice_scatter: a source [3, 4], not [3, 3]");
  expect([&] { diagonal_scatter(a, g.input("d", {2})); }, "diagonal_scatter: a source [2], not [3]");
  expect([&] { nonzero(a, -1); }, "nonzero: a capacity of -1");
  expect([&] { masked_select(a, a); }, "masked_select: a mask is bool, not f32");
}

TEST(Indexing, EveryPassAgreesOnWildNumbers) { EXPECT_GT(verify_cases("indexing.txt", kBuilders), 1000u); }

}  // namespace
