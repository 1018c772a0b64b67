#include "lightcone/backends/cpu/cpu.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "guarded.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> d;
  std::vector<float> v(n);
  for (float& x : v) x = d(rng);
  return v;
}

// Runs the graph on the CPU (compiled, interpreted IR; 1 and 2 threads) and on the judge.
void agree(const Graph& g, const std::map<std::string, std::vector<float>>& inputs, const Bindings& env = {}) {
  std::map<std::string, Value> values;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input) {
      Value v = make_value(g[id].dtype, numbers(g[id].shape, env));
      const auto& x = inputs.at(g[id].name);
      for (std::size_t k = 0; k < v.size(); ++k) {
        if (is_float(v.dtype)) v.f[k] = x[k];
        else v.i[k] = static_cast<std::int64_t>(x[k]);
      }
      values[g[id].name] = v;
    }
  const Results want = interpret(g, values, env, Rounding::Wide, true);
  std::vector<std::vector<double>> first;
  for (const CpuOptions& o :
       {CpuOptions{.threads = 1}, CpuOptions{.threads = 2}, CpuOptions{.threads = 1, .compiler = false}}) {
    const Program p = compile(g, generic() | cpu(o));
    EXPECT_EQ(p.interpreted(), 0u);
    Context c(p);
    for (const auto& [s, v] : env) c.bind(s, v);
    std::list<test::Guarded> buffers;
    for (const auto& [name, v] : values) {
      test::Guarded& b = buffers.emplace_back(v.size() * size_of(v.dtype),
                                              o.threads == 1 ? test::Against::Front : test::Against::Back);
      write_value(v, b.data());
      c.use(name, b.data(), test::kAnySize);
    }
    c.run();
    std::size_t which = 0;
    for (const auto& [name, v] : want.outputs) {
      const auto got = c.get_f64(name);
      ASSERT_EQ(got.size(), v.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        if (std::isnan(v.at(k))) ASSERT_TRUE(std::isnan(got[k])) << name << " " << k;
        else if (std::isinf(v.at(k))) ASSERT_EQ(got[k], v.at(k)) << name << " " << k;
        else
          ASSERT_LE(std::abs(got[k] - v.at(k)), v.error_at(k) * 4 + 1e-30)
              << name << " " << k << " want " << v.at(k) << " got " << got[k] << "\n"
              << p.graph().str();
      }
      if (o.threads == 1 && o.compiler) {
        first.push_back(got);
      } else if (o.compiler) {
        ASSERT_EQ(std::memcmp(first[which].data(), got.data(), got.size() * 8), 0) << "threads change bits";
      }
      ++which;
    }
  }
}

Tensor expand_to(Tensor t, int axis, Dim n) {
  Tensor u = t.unsqueeze(axis);
  Shape s = u.shape();
  s[static_cast<std::size_t>(axis)] = n;
  return u.expand(s);
}
Tensor matmul2(Tensor a, Tensor b) {  // [m, k] x [k, n]
  return prim::sum_reduce(prim::mul(expand_to(a, 1, b.extent(1)), expand_to(b.permute({1, 0}), 0, a.extent(0))), 2);
}
Tensor softmax(Tensor x) {
  const int last = x.rank() - 1;
  const Tensor m = expand_to(prim::max_reduce(x, last), last, x.extent(last));
  const Tensor e =
      prim::exp2(prim::mul(prim::add(x, prim::mul(m, full_like(m, -1))), full_like(x, 1.4426950408889634)));
  return prim::mul(e, prim::recip(expand_to(prim::sum_reduce(e, last), last, x.extent(last))));
}

}  // namespace

TEST(Cpu, Elementwise) {
  Graph g;
  const Tensor a = g.input("a", {37, 5}), b = g.input("b", {5});
  g.output("y", prim::exp2(prim::add(prim::mul(a, expand_to(b, 0, 37)), full_like(a, 0.5))));
  g.output("t", prim::sin(a.permute({1, 0})));
  g.output("p", a.pad(0, 1, 2).slice(1, 1, 4));
  agree(g, {{"a", random_floats(185, 1)}, {"b", random_floats(5, 2)}});
}

TEST(Cpu, SoftmaxIsOneKernel) {
  Graph g;
  const Tensor a = g.input("a", {33, 70});
  g.output("y", softmax(a));
  EXPECT_EQ(compile(g, generic() | cpu({.threads = 1})).kernels(), 1u);
  agree(g, {{"a", random_floats(33 * 70, 1)}});
}

TEST(Cpu, Matmul) {
  for (const auto& [m, k, n] : {std::array{3, 1, 4}, std::array{1, 64, 33}, std::array{5, 17, 3},
                                std::array{130, 333, 70}, std::array{160, 64, 1100}}) {
    Graph g;
    const Tensor a = g.input("a", {m, k}), b = g.input("b", {k, n}), w = g.input("w", {n, k});
    g.output("ab", matmul2(a, b));
    g.output("aw", matmul2(a, w.permute({1, 0})));
    g.output("t", matmul2(b.permute({1, 0}), a.permute({1, 0})));
    agree(g, {{"a", random_floats(static_cast<std::size_t>(m * k), 1)},
              {"b", random_floats(static_cast<std::size_t>(n * k), 2)},
              {"w", random_floats(static_cast<std::size_t>(n * k), 3)}});
  }
}

TEST(Cpu, ReductionsOverAnyAxis) {
  Graph g;
  const Tensor a = g.input("a", {6, 40, 30});
  g.output("s0", prim::sum_reduce(a, 0));
  g.output("s1", prim::sum_reduce(a, 1));
  g.output("m2", prim::max_reduce(a, 2));
  g.output("all", prim::sum_reduce(prim::sum_reduce(prim::sum_reduce(a, 2), 1), 0));
  g.output("windows", prim::max_reduce(prim::max_reduce(a.unfold(1, 3, 2).unfold(2, 2, 2), 4), 3));
  agree(g, {{"a", random_floats(7200, 1)}});
}

TEST(Cpu, SymbolicSizes) {
  Graph g;
  const Dim s = Dim::symbol("s", 1, 40), p = Dim::symbol("p", 0, 30);
  const Tensor q = g.input("q", {s, 4, 16}), k = g.input("k", {p + s, 4, 16});
  const Tensor scores =
      prim::sum_reduce(prim::mul(expand_to(q.permute({1, 0, 2}), 2, p + s), expand_to(k.permute({1, 0, 2}), 1, s)), 3);
  g.output("y", softmax(scores));
  for (const auto& [sv, pv] : {std::pair{1, 0}, std::pair{1, 9}, std::pair{7, 0}, std::pair{33, 12}})
    agree(g,
          {{"q", random_floats(static_cast<std::size_t>(sv * 64), 1)},
           {"k", random_floats(static_cast<std::size_t>((sv + pv) * 64), 2)}},
          {{"s", sv}, {"p", pv}});
}

TEST(Cpu, StructuredOperations) {
  Graph g;
  const Tensor a = g.input("a", {5, 6}), i = g.input("i", {3, 6}, DType::I64), b = g.input("b", {3, 6});
  g.output("gather", prim::gather(a, i, 0));
  g.output("scatter", prim::scatter(a, i, b, 0));
  g.output("add", prim::scatter_add(a, i, prim::exp2(b), 0));
  g.output("slice", prim::slice_scatter(a, prim::exp2(b), 0, 1));
  g.output("sort", prim::argsort(a, 1, true));
  std::vector<float> idx;
  for (int k = 0; k < 18; ++k) idx.push_back(static_cast<float>((k * 7) % 9 - 2));
  agree(g, {{"a", random_floats(30, 1)}, {"b", random_floats(18, 2)}, {"i", idx}});
}

TEST(Cpu, StateIsUpdatedInPlace) {
  Graph g;
  const Dim p = Dim::symbol("p", 0, 7);
  const Tensor cache = g.input("cache", {8, 4}), x = g.input("x", {1, 4});
  const Tensor next = prim::slice_scatter(cache, prim::add(x, x), 0, p);
  g.assign(cache, next);
  g.output("seen", prim::sum_reduce(next.slice(0, 0, p + 1), 0));
  const Program prog = compile(g, generic() | cpu({.threads = 1}));
  EXPECT_TRUE(prog.plan().copies.empty());
  Context c(prog);
  for (int t = 0; t < 3; ++t) c.bind("p", t).set(x, {1, 2, 3, 4}).run();
  EXPECT_EQ(c.get("seen"), (std::vector<float>{6, 12, 18, 24}));
}

// GCC 12 loaded a whole vector and blended where the padding masks its ends.
TEST(Cpu, PaddingReadsNothingOutside) {
  for (const int width : {5, 12, 27, 60}) {
    Graph g;
    g.output("y", g.input("x", {2, width, 1}).pad(1, 1, 2));
    agree(g, {{"x", random_floats(static_cast<std::size_t>(2 * width), 1)}});
  }
}

// Longer than a kernel may be: cut, and right. (Once this never finished compiling.)
TEST(Cpu, LongChainsAreCut) {
  Graph g;
  const Tensor x = g.input("x", {4, 8}), w = g.input("w", {8, 4});
  Tensor t = x;
  for (int k = 0; k < 300; ++k) {
    const Tensor shifted = t.slice(1, 1, 8).pad(1, 0, 1);  // each read of it takes several instructions
    t = prim::maximum(prim::add(shifted, w.transpose(0, 1)), prim::mul(t, full_like(t, k % 2 ? -0.5 : 0.75)));
  }
  g.output("y", t);
  const Program p = compile(g, generic() | cpu({.threads = 1, .compiler = false}));
  EXPECT_GT(p.kernels(), 1u);
  agree(g, {{"x", random_floats(32, 1)}, {"w", random_floats(32, 2)}});
}

// A stack of row operations over rows of changing length: what is too expensive to inline ends the
// exploring, and a layer is a few kernels, not one for each operation.
TEST(Cpu, DeepStacksOfRowOperations) {
  Graph g;
  Tensor t = g.input("x", {64});
  for (int k = 0; k < 12; ++k) {
    const int row = 4 << k % 3;
    const Tensor r = t.reshape({64 / row, row});
    const Tensor e =
        prim::exp2(prim::add(r, prim::mul(prim::max_reduce(r, 1).unsqueeze(1).expand(r.shape()), full_like(r, -1.0))));
    t = prim::mul(e, prim::recip(prim::sum_reduce(e, 1)).unsqueeze(1).expand(r.shape())).reshape({64});
  }
  g.output("y", t);
  const Program p = compile(g, generic() | cpu({.threads = 1, .compiler = false}));
  EXPECT_LE(p.kernels(), 5u * 12u);
  agree(g, {{"x", random_floats(64, 3)}});
}
