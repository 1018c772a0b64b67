// Linear algebra gives torch's values, types and gradients (tests/goldens/linalg.txt), and singular or empty matrices
// behave as documented.
#include "lightcone/ops/linalg/linalg.h"

#include <algorithm>
#include <cmath>

#include "differences.h"
#include "error_of.h"
#include "lightcone/runtime/program.h"
#include "on_device.h"
#include "torch_cases.h"

using namespace lc;

namespace {

using T = const std::vector<Tensor>&;

// Functions of a matrix, which do not depend on the signs of its vectors.
Tensor spectrum(const Tensor& a) {
  const auto [w, v] = linalg::eigh(a);
  return matmul(v * exp(w / 4.0).unsqueeze(-2), v.transpose(-1, -2));
}
Tensor roots(const Tensor& a) {
  const auto [u, s, vh] = linalg::svd(a, false);
  return matmul(u * sqrt(s).unsqueeze(-2), vh);
}

#define B(n, ...)                                                   \
  {                                                                 \
    n, [](Graph&, T t) { return std::vector<Tensor>{__VA_ARGS__}; } \
  }
#define P(n, ...)                       \
  {                                     \
    n, [](Graph&, T t) {                \
      const auto [p, q] = __VA_ARGS__;  \
      return std::vector<Tensor>{p, q}; \
    }                                   \
  }
// clang-format off
const TorchBuilders kBuilders{
    B("mm", mm(t[0], t[1])), B("bmm", bmm(t[0], t[1])), B("mv", mv(t[0], t[1])), B("dot", dot(t[0], t[1])), B("vdot", vdot(t[0], t[1])), B("inner", inner(t[0], t[1])),
    B("addmm", addmm(t[0], t[1], t[2], 0.5, -2)), B("addmm row", addmm(t[0], t[1], t[2])), B("addmm beta 0", addmm(t[0], t[1], t[2], 0)), B("addmm whole", addmm(t[0], t[1], t[2], 3, 2)),
    B("addmv", addmv(t[0], t[1], t[2], 0.5, 3)), B("addr", addr(t[0], t[1], t[2], 2, 0.5)), B("baddbmm", baddbmm(t[0], t[1], t[2], 2, 0.5)), B("addbmm", addbmm(t[0], t[1], t[2], 2, 0.5)),
    B("chain_matmul", chain_matmul(t)), B("multi_dot", linalg::multi_dot(t)), B("tensordot", tensordot(t[0], t[1])), B("tensordot 0", tensordot(t[0], t[1], 0)), B("tensordot axes", tensordot(t[0], t[1], {1, 0}, {0, 2})),
    B("kron", kron(t[0], t[1])), B("cross", cross(t[0], t[1])), B("linalg cross", linalg::cross(t[0], t[1])), B("cross 0", cross(t[0], t[1], 0)), B("vecdot", linalg::vecdot(t[0], t[1], 0)),
    B("cdist 0", cdist(t[0], t[1], 0)), B("cdist 0.5", cdist(t[0], t[1], 0.5)), B("cdist 1", cdist(t[0], t[1], 1)), B("cdist 2", cdist(t[0], t[1])), B("cdist 3", cdist(t[0], t[1], 3)), B("cdist inf", cdist(t[0], t[1], kInf)),
    B("matrix_power 0", matrix_power(t[0], 0)), B("matrix_power 1", matrix_power(t[0], 1)), B("matrix_power 2", matrix_power(t[0], 2)), B("matrix_power 5", matrix_power(t[0], 5)), B("matrix_power -2", matrix_power(t[0], -2)),
    B("vector_norm 0", vector_norm(t[0], 0, {1})), B("vector_norm 0.5", vector_norm(t[0], 0.5, {1})), B("vector_norm 1", vector_norm(t[0], 1, {1})), B("vector_norm 2", vector_norm(t[0], 2, {1})), B("vector_norm 3", vector_norm(t[0], 3, {1})),
    B("vector_norm inf", vector_norm(t[0], kInf, {1})), B("vector_norm -inf", vector_norm(t[0], -kInf, {1})), B("vector_norm -1", vector_norm(t[0], -1, {1})), B("vector_norm -2.5", vector_norm(t[0], -2.5, {1})), B("vector_norm all", vector_norm(t[0], 2.5, {}, true)),
    B("matrix_norm 1", matrix_norm(t[0], 1)), B("matrix_norm -1", matrix_norm(t[0], -1)), B("matrix_norm inf", matrix_norm(t[0], kInf)), B("matrix_norm -inf", matrix_norm(t[0], -kInf)), B("matrix_norm fro", matrix_norm(t[0], "fro", {0, 2}, true)), B("matrix_norm axes", matrix_norm(t[0], 1, {2, 0}, true)),
    B("cholesky", linalg::cholesky(t[0])), B("cholesky upper", linalg::cholesky(t[0], true)),
    B("solve_triangular 000", linalg::solve_triangular(t[0], t[1], false, false)), B("solve_triangular 001", linalg::solve_triangular(t[0], t[1], false, false, true)), B("solve_triangular 010", linalg::solve_triangular(t[0], t[1], false)), B("solve_triangular 011", linalg::solve_triangular(t[0], t[1], false, true, true)),
    B("solve_triangular 100", linalg::solve_triangular(t[0], t[1], true, false)), B("solve_triangular 101", linalg::solve_triangular(t[0], t[1], true, false, true)), B("solve_triangular 110", linalg::solve_triangular(t[0], t[1], true)), B("solve_triangular 111", linalg::solve_triangular(t[0], t[1], true, true, true)),
    B("solve", linalg::solve(t[0], t[1])), B("solve right", linalg::solve(t[0], t[1], false)), B("inv", linalg::inv(t[0])), B("det", linalg::det(t[0])), P("slogdet", linalg::slogdet(t[0])), B("logdet", logdet(t[0])),
    P("lu_factor", linalg::lu_factor(t[0])), B("lu_solve", linalg::lu_solve(t[0], t[1], t[2])), P("qr", linalg::qr(t[0])), B("lstsq", linalg::lstsq(t[0], t[1])),
    B("eigvalsh", linalg::eigvalsh(t[0])), B("eigvalsh upper", linalg::eigvalsh(t[0], "U")), B("eigh function", spectrum(t[0])), B("svdvals", linalg::svdvals(t[0])), B("svd function", roots(t[0])),
    B("pinv", linalg::pinv(t[0])), B("pinv rtol", linalg::pinv(t[0], 0.3)), B("cond", linalg::cond(t[0])), B("matrix_rank", linalg::matrix_rank(t[0])),
    B("matrix_norm 2", matrix_norm(t[0], 2)), B("matrix_norm -2", matrix_norm(t[0], -2)), B("matrix_norm nuc", matrix_norm(t[0], "nuc")), B("matrix_norm nuc axes", matrix_norm(t[0], "nuc", {2, 0}, true)),
    B("cholesky_solve", cholesky_solve(t[0], t[1])), B("cholesky_solve upper", cholesky_solve(t[0], t[1], true)), B("cholesky_inverse", cholesky_inverse(t[0])),
};
// clang-format on
#undef B
#undef P

TEST(Linalg, AnswersAsTorchDoes) {
  hold_against_torch("linalg.txt", kBuilders, {.f64 = 1e-9, .f32 = 2e-5, .slopes = 1e-7, .of_largest = 1});
}

// If torch raises an error, the result here has NaN and infinities, and nothing is thrown.
TEST(Linalg, SingularMatricesGiveNaNAndInfinities) {
  Graph g;
  const Tensor a = g.input("a", {2, 3, 3}), b = g.input("b", {3, 2});
  linalg::cholesky(a).retrieve("cholesky");
  linalg::solve(a, b).retrieve("solve");
  linalg::inv(a).retrieve("inv");
  linalg::solve_triangular(a, b, false).retrieve("triangular");
  det(a).retrieve("det");
  Inputs in{{"a", make_value(DType::F32, {2, 3, 3})}, {"b", make_value(DType::F32, {3, 2})}};
  in["a"].f = {1, 2, 3, 2, 4, 6, 1, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4};  // the first is singular, the second is not
  in["b"].f = {1, 2, 3, 4, 5, 6};
  const auto look = [](const std::map<std::string, Value>& r) {
    for (const char* name : {"cholesky", "solve", "inv"}) {
      const Value& v = r.at(name);
      int odd = 0;
      for (std::size_t k = 0; k < v.size() / 2; ++k) odd += !std::isfinite(v.at(k));
      EXPECT_GT(odd, 0) << name;
      for (std::size_t k = v.size() / 2; k < v.size(); ++k)
        EXPECT_TRUE(std::isfinite(v.at(k))) << name << ": the other one";
    }
    EXPECT_EQ(r.at("det").at(0), 0);
    EXPECT_EQ(r.at("det").at(1), 64);
  };
  look(interpret(g, in).outputs);
  look(run_values(transform(g, generic() | test::device({.threads = 2})).graph, in, {}).outputs);
}

TEST(Linalg, DerivativesOfSecondOrder) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto check_all = [&](const char* what, const auto& f) {
    Graph g;
    const Tensor a = g.input("a", {3, 3}, DType::F64), b = g.input("b", {3, 2}, DType::F64);
    Inputs in{{"a", make_value(DType::F64, {3, 3})}, {"b", make_value(DType::F64, {3, 2})}};
    for (auto& [name, v] : in)
      for (double& x : v.f) x = uniform(random);
    for (int k = 0; k < 3; ++k) in["a"].f[static_cast<std::size_t>(4 * k)] += 3;
    check_gradients(g, f(a, b), in, what, 2);
  };
  check_all("cholesky", [](Tensor a, Tensor) { return linalg::cholesky(matmul(a, a.transpose(0, 1))); });
  check_all("solve", [](Tensor a, Tensor b) { return linalg::solve(a, b); });
  check_all("triangular", [](Tensor a, Tensor b) { return linalg::solve_triangular(a, b, true); });
  check_all("slogdet", [](Tensor a, Tensor b) { return slogdet(a).logabsdet * sum(b); });
  check_all("lstsq", [](Tensor a, Tensor b) { return linalg::lstsq(a.slice(1, 0, 2), b); });
}

TEST(Linalg, Mistakes) {
  Graph g;
  const Tensor a = g.input("a", {3, 4}), s = g.input("s", {3, 3}), v = g.input("v", {3}),
               i = g.input("i", {3, 3}, DType::I64), n = g.input("n", {Dim::symbol("n", 1, 9), 3, 3});
  const auto expect = [](const std::function<void()>& f, const std::string& sentence) {
    expect_error(f, sentence, "linalg_test.cpp");
  };
  expect([&] { mm(v, a); }, "mm: [3] x [3, 4]: the ranks are 2 and 2");
  expect([&] { addmm(g.input("x", {5}), s, a); }, "addmm: [5] and [3, 4] differ at axis 1: 5 vs 4");
  expect([&] { addmm(i, i, i, 0.5); }, "addmm: beta and alpha of i64 are whole, not 0.5 and 1");
  expect([&] { tensordot(a, s, {0}, {0, 1}); }, "tensordot: 1 axes of the first tensor, 2 of the second");
  expect([&] { tensordot(a, s, {1}, {0}); }, "tensordot: axis 1 of [3, 4] and axis 0 of [3, 3] differ: 4 vs 3");
  expect([&] { cross(a, a, 1); }, "cross: axis 1 of [3, 4] has 4 elements, not 3");
  expect([&] { cdist(a, s); }, "cdist: [3, 4] and [3, 3] are not [.., p, m] and [.., r, m]");
  expect([&] { cdist(a, a, -1); }, "cdist: a norm of -1");
  expect([&] { matrix_norm(a, 3); }, "matrix_norm: there is no norm 3: \"fro\", \"nuc\", 1, -1, 2, -2, inf and -inf");
  expect([&] { linalg::eigh(a); }, "eigh: needs a square matrix, not [3, 4]");
  expect([&] { linalg::eigh(s, "lower"); }, "eigh: the triangle is \"L\" or \"U\", not \"lower\"");
  expect([&] { linalg::svd(i); }, "svd: of i64 there are no fractions; convert to a floating type");
  expect([&] { linalg::cond(g.input("e", {2, 0, 3})); }, "cond: [2, 0, 3] has no singular value");
  expect([&] { linalg::cholesky(a); }, "cholesky: needs a square matrix, not [3, 4]");
  expect([&] { linalg::cholesky(i); }, "cholesky: of i64 there are no fractions; convert to a floating type");
  expect([&] { linalg::inv(n); },
         "inv: needs extents that are known when the graph is built, not [n, 3, 3]: n is a symbol, and the blocks are "
         "counted");
  expect([&] { linalg::solve(s, g.input("y", {4, 2})); }, "solve: [3, 3] and [4, 2]: their rows differ: 3 vs 4");
  expect([&] { linalg::solve(s, v, false); },
         "solve: X A = B of a vector B: give it two axes, or solve with the transposed matrix");
  expect([&] { matrix_power(a, 2); }, "matrix_power: needs a square matrix, not [3, 4]");
  expect([&] { chain_matmul({a, s}); }, "chain_matmul: [3, 4] x [3, 3]: inner dimensions differ: 4 vs 3");
}

// A = U diag(S) Vh with orthonormal bases, which are complete if requested, also for singular values of 0.
TEST(Linalg, BasesAreOrthonormal) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (const auto& [m, n, rank] : {std::tuple{7, 4, 4}, {4, 7, 2}, {6, 6, 3}, {5, 5, 0}, {64, 48, 48}, {1, 3, 1}})
    for (const bool full : {true, false}) {
      Graph g;
      const Tensor a = g.input("a", {m, n});
      const auto [u, s, vh] = linalg::svd(a, full);
      const int k = std::min(m, n);
      const auto error = [](const Tensor& t) { return amax(abs(t)); };
      const auto product = [](const Tensor& x, const Tensor& y) { return matmul(x, y); };
      error(product(u.slice(1, 0, k) * s, vh.slice(0, 0, k)) - a).retrieve("product");
      error(product(u.t(), u) - eye(u, u.extent(1))).retrieve("u");
      error(product(vh, vh.t()) - eye(vh, vh.extent(0))).retrieve("vh");
      const auto [w, v] = linalg::eigh(matmul(a, a.t()));
      error(product(v * w, v.t()) - matmul(a, a.t())).retrieve("symmetric");
      error(product(v.t(), v) - eye(v, m)).retrieve("v");
      const Program p = compile(g, generic() | test::device({.threads = 2}));
      std::vector<float> left(static_cast<std::size_t>(m * rank)), right(static_cast<std::size_t>(rank * n)), x;
      for (auto* values : {&left, &right})
        for (float& z : *values) z = static_cast<float>(normal(random));
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          float sum = 0;
          for (int r = 0; r < rank; ++r)
            sum += left[static_cast<std::size_t>(i * rank + r)] * right[static_cast<std::size_t>(r * n + j)];
          x.push_back(sum);
        }
      Context c(p);
      c.set("a", x).run();
      const float most = *std::max_element(x.begin(), x.end()) + 1;
      SCOPED_TRACE(testing::Message() << m << " x " << n << " of rank " << rank << (full ? ", full" : ""));
      EXPECT_LT(c.scalar("product"), 2e-6f * static_cast<float>(k) * most);
      EXPECT_LT(c.scalar("symmetric"), 4e-6f * static_cast<float>(m) * most * most);
      for (const char* basis : {"u", "vh", "v"})
        EXPECT_LT(c.scalar(basis), 5e-6f + 3e-7f * static_cast<float>(m)) << basis;
    }
}

// If the input is not finite, the result is NaN, and the iteration ends.
TEST(Linalg, SpectraOfNaNAreNaN) {
  for (const float bad : {INFINITY, NAN}) {
    Graph g;
    const Tensor a = g.input("a", {2, 3, 3});
    linalg::eigvalsh(a).retrieve("w"), linalg::svdvals(a).retrieve("s");
    const Program p = compile(g, generic() | test::device({.threads = 1}));
    std::vector<float> x(18, 0.5f);
    x[3] = bad;
    Context c(p);
    c.set("a", x).run();
    for (const char* name : {"w", "s"}) {
      const auto y = c.get(name);
      for (std::size_t k = 0; k < 6; ++k) EXPECT_EQ(std::isnan(y[k]), k < 3) << name << " " << k;
    }
  }
}

// The number of nodes does not depend on the matrix size.
TEST(Linalg, NodesDoNotDependOnTheSize) {
  const auto nodes = [](std::int64_t n) {
    Graph g;
    const Tensor a = g.input("a", {n, n});
    linalg::cholesky(a), linalg::solve(a, a), linalg::qr(a);
    return g.size();
  };
  EXPECT_EQ(nodes(128), nodes(1024));
}

}  // namespace
