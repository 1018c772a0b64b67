// The CPU back end compiles elementwise chains, reductions, products, symbolic sizes and states correctly, on odd
// floats, integers and indices too.
#include "lightcone/backends/cpu/cpu.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "data.h"
#include "error_of.h"
#include "guarded.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/composites/composites.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

using namespace lc;

namespace {

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> d;
  std::vector<float> v(n);
  for (float& x : v) x = d(rng);
  return v;
}

// Compares the graph on the CPU (compiled and interpreted IR; 1 and 2 threads) with the reference interpreter.
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
    for (const auto& [s, v] : env)
      if (p.has_symbol(s)) c.bind(s, v);
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
        ASSERT_TRUE(got.empty() || std::memcmp(first[which].data(), got.data(), got.size() * 8) == 0)
            << "threads change bits";
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

namespace {

// Returns all pairs of the numbers, as two columns.
std::map<std::string, std::vector<float>> pairs_of(const std::vector<float>& numbers) {
  std::map<std::string, std::vector<float>> m;
  for (float x : numbers)
    for (float y : numbers) {
      m["a"].push_back(x), m["b"].push_back(y);
      m["rows"].push_back(x), m["rows"].push_back(y);
    }
  m["columns"] = m["a"];
  m["columns"].insert(m["columns"].end(), m["b"].begin(), m["b"].end());
  return m;
}

}  // namespace

// A reciprocal shows the sign of a zero. A row and a column are reduced by different code.
// Rows of two to five numbers between rows of zeros. GCC 12 would unroll such rows whole, make vectors of rows that may
// or may not be read, and take the wrong elements.
TEST(Cpu, ShortRowsBetweenZeros) {
  Graph g;
  std::map<std::string, std::vector<float>> inputs;
  for (const int wide : {2, 3, 4, 5, 8, 16}) {
    const std::string name = "x" + std::to_string(wide);
    const Tensor x = g.input(name, {5, wide}), y = x.pad(0, 2, 2);
    g.output(name + " as it is", y);
    g.output(name + " turned round", y.flip(1));
    inputs[name] = random_floats(static_cast<std::size_t>(5 * wide), static_cast<unsigned>(wide));
  }
  agree(g, inputs);
}

// Rows between rows of zeros, whose elements lie side by side in one iteration. GCC 12 would load all vectors of them
// by the mask of the first.
TEST(Cpu, NeighboursUnderOneGuard) {
  Graph g;
  std::map<std::string, std::vector<float>> inputs;
  for (const int wide : {2, 3, 5})
    for (const DType t : {DType::F32, DType::F64, DType::I32}) {
      const std::string name = "x" + std::to_string(wide) + std::string(lc::name(t));
      const Tensor x = to(g.input(name, {2, 3, 5, wide}), t).permute({1, 0, 2, 3});
      g.output(name + " between", x.pad(2, 2, 2).pad(3, 2, 2));
      g.output(name + " after", x.pad(2, 2, 2).pad(3, wide, 0));
      g.output(name + " twice", x.pad(2, 1, 3).pad(3, 1, 0) + x.pad(2, 3, 1).pad(3, 0, 1));
      inputs[name] = random_floats(static_cast<std::size_t>(30 * wide), static_cast<unsigned>(wide));
    }
  agree(g, inputs);
}

TEST(Cpu, OddFloats) {
  const auto pairs =
      pairs_of({NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1, -1, 2.5f, -2.5f, 300, -300, 3e38f, -3e38f});
  const auto n = static_cast<std::int64_t>(pairs.at("a").size());
  for (DType t : {DType::F32, DType::F64}) {
    Graph g;
    const Tensor a = g.input("a", {n}, t), b = g.input("b", {n}, t);
    const Tensor most[] = {prim::maximum(a, b), prim::minimum(a, b), prim::max_reduce(g.input("rows", {n, 2}, t), 1),
                           prim::max_reduce(g.input("columns", {2, n}, t), 0), prim::mod(a, b)};
    for (std::size_t i = 0; i < std::size(most); ++i) {
      g.output(str_cat("y", i), most[i]);
      g.output(str_cat("sign", i), prim::recip(most[i]));
    }
    for (const DTypeInfo& to : kDTypes)
      if (to.dtype != t) g.output(str_cat("to ", to.name), prim::cast(a, to.dtype));
    g.output("less", prim::less_than(a, b));
    g.output("equal", prim::equal(a, b));
    agree(g, pairs);
  }
}

TEST(Cpu, OddIntegers) {
  const std::pair<DType, std::vector<float>> cases[] = {
      {DType::I8, {-128, -127, -7, -3, -1, 0, 1, 3, 7, 126, 127}},
      {DType::I32, {-0x1p31f, -0x1p31f + 256, -7, -3, -1, 0, 1, 3, 7, 0x1p31f - 256}},
      {DType::I64, {-0x1p63f, -0x1p40f, -7, -3, -1, 0, 1, 3, 7, 0x1p62f}},
      {DType::I16, {-32768, -32767, -7, -3, -1, 0, 1, 3, 7, 32767}},
      {DType::U8, {0, 1, 3, 7, 254, 255}},
      {DType::U16, {0, 1, 3, 7, 0x1p15f, 65534, 65535}},
      {DType::U32, {0, 1, 3, 7, 0x1p31f, 0x1p32f - 256}},
      {DType::U64, {0, 1, 3, 7, 0x1p63f, 0x1p64f - 0x1p40f}}};
  for (const auto& [t, numbers] : cases) {
    const auto pairs = pairs_of(numbers);
    const auto n = static_cast<std::int64_t>(pairs.at("a").size());
    Graph g;
    const Tensor a = g.input("a", {n}, t), b = g.input("b", {n}, t);
    int i = 0;
    for (const Tensor& y :
         {prim::div(a, b), prim::mod(a, b), prim::pow(a, b), prim::add(a, b), prim::mul(a, b), prim::maximum(a, b),
          prim::minimum(a, b), prim::less_than(a, b), prim::equal(a, b), prim::bitwise_and(a, b),
          prim::bitwise_or(a, b), prim::bitwise_xor(a, b), prim::max_reduce(g.input("rows", {n, 2}, t), 1),
          prim::sum_reduce(g.input("columns", {2, n}, t), 0)})
      g.output(str_cat("y", i++), y);
    agree(g, pairs);
  }
}

// Index expressions divide towards minus infinity.
TEST(Cpu, OddIndices) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 4), i = Dim::index(0, 21) - 10;
  g.output("floor", g.index({21}, i / Dim(3)));
  g.output("rest", g.index({21}, i % Dim(3)));
  g.output("floor n", g.index({21}, i / n));
  g.output("rest n", g.index({21}, i % n));
  for (std::int64_t by : {1, 3, 4}) agree(g, {}, {{"n", by}});
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

// Products of signed bytes, cast to integers or to f32: transposed, sliced, batched, with an epilogue, with few rows
// and with none.
TEST(Cpu, MatmulOfBytes) {
  const auto bytes = [](int n, int from) {
    std::vector<float> v(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i)
      v[static_cast<std::size_t>(i)] = static_cast<float>((i * 37 + i / 5 + from) % 256 - 128);
    return v;
  };
  for (const auto& [m, k, n] : {std::array{1, 64, 33}, std::array{5, 17, 3}, std::array{3, 1, 4},
                                std::array{9, 2200, 17}, std::array{20, 64, 70}}) {
    Graph g;
    const Tensor a = g.input("a", {m, k}, DType::I8), b = g.input("b", {k, n}, DType::I8),
                 w = g.input("w", {2, n, k}, DType::I8), s = g.input("s", {n});
    for (const DType t : {DType::I32, DType::F32}) {
      const auto wide = [t](const Tensor& v) { return prim::cast(v, t); };
      const std::string as(name(t));
      g.output(as, matmul2(wide(a), wide(b)));
      g.output(as + " turned", matmul2(wide(b).permute({1, 0}), wide(a).permute({1, 0})));
      g.output(as + " cut", matmul2(wide(a).slice(1, k / 2, k),
                                    wide(w).slice(0, 1, 2).reshape({n, k}).slice(1, k / 2, k).permute({1, 0})));
      g.output(as + " padded", matmul2(wide(a).pad(1, 1, 0), wide(b).pad(0, 1, 0)));
    }
    const Tensor product = matmul2(prim::cast(a, DType::F32), prim::cast(b, DType::F32));
    g.output("scaled", prim::add(prim::mul(product, s.reshape({1, n}).expand({m, n})), product));
    agree(g, {{"a", bytes(m * k, 0)},
              {"b", bytes(n * k, 50)},
              {"w", bytes(2 * n * k, 90)},
              {"s", random_floats(static_cast<std::size_t>(n), 3)}});
  }
  Graph g;
  const Tensor a = g.input("a", {5, 100}, DType::I8), w = g.parameter("w", {32, 100}, DType::I8);
  g.output("y", matmul2(prim::cast(a, DType::I32), prim::cast(w, DType::I32).permute({1, 0})));
  Program p = compile(g, generic() | cpu({.threads = 2}));
  int exact = 0, packed = 0;
  for (NodeId id = 0; id < p.graph().size(); ++id)
    if (const Node& node = p.graph()[id]; node.op == Op::Kernel) {
      exact += node.kernel->name().starts_with("matmul_i8_packed");
      packed += node.kernel->name() == "pack_i8";
    }
  EXPECT_EQ(exact, 1);
  EXPECT_EQ(packed, 1);
  std::vector<std::int8_t> x(500), y(3200, -128);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int8_t>(i * 29);
  p.load("w", y.data(), y.size());
  Context c(p);
  c.use("a", x.data(), x.size());
  c.run();
  const std::vector<float> got = c.get("y");
  for (std::size_t i = 0; i < got.size(); ++i) {
    int want = 0;
    for (std::size_t k = 0; k < 100; ++k) want -= 128 * x[i / 32 * 100 + k];
    ASSERT_EQ(got[i], static_cast<float>(want)) << i;
  }
}

// Operands whose layout differs from how they are read: padded, narrow types under a view, sliced quantized blocks.
TEST(Cpu, MatmulOfViews) {
  const std::vector<float> eighths = [] {  // exact in every storage type
    std::vector<float> v = random_floats(33 * 64, 4);
    for (float& x : v) x = std::round(x * 8) / 8;
    return v;
  }();
  for (const int m : {2, 9}) {
    Graph g;
    const Tensor a = g.input("a", {m, 33}), b = g.input("b", {33, 40}), x = g.input("x", {m, 64});
    g.output("padded rows", matmul2(a.pad(0, 1, 2), b));
    g.output("padded depth", matmul2(a.pad(1, 2, 1), b.pad(0, 1, 2)));
    g.output("padded columns", matmul2(a, b.pad(1, 3, 1)));
    for (const DType t : {DType::F16, DType::BF16}) {
      const Tensor w = g.input(std::string(name(t)), {33, 64}, t);
      g.output(std::string(name(t)) + " turned, then widened",
               matmul2(x, prim::contiguous(prim::cast(w.permute({1, 0}), DType::F32))));
      g.output(std::string(name(t)) + " cut, then widened", matmul2(a, prim::cast(w.slice(1, 5, 40), DType::F32)));
      g.output(std::string(name(t)) + " flipped, then widened",
               matmul2(x, prim::cast(w.flip(0), DType::F32).permute({1, 0})));
    }
    agree(g, {{"a", random_floats(static_cast<std::size_t>(m * 33), 1)},
              {"b", random_floats(33 * 40, 2)},
              {"x", random_floats(static_cast<std::size_t>(m * 64), 3)},
              {"f16", eighths},
              {"bf16", eighths}});
  }
  for (const QuantInfo& q : kQuantFormats) {
    Graph g;
    const int e = q.elements;
    const Tensor blocks = g.input("blocks", {10, 3 * q.bytes}, DType::U8), x = g.input("x", {2, 3 * e}),
                 y = g.input("y", {2, 2 * e});
    const auto times = [](Tensor v, Tensor w) { return matmul2(v, w.permute({1, 0})); };
    const Tensor whole = prim::dequantize(blocks, q.format);
    g.output("whole", times(x, whole));
    g.output("from the second block", times(y, whole.slice(1, e, 3 * e)));
    g.output("from inside a block", times(y, whole.slice(1, e / 2, 5 * e / 2)));
    g.output("rows of one and a half blocks", times(x.slice(1, 0, 3 * e / 2), whole.reshape({20, 3 * e / 2})));
    g.output("blocks cut, then unpacked", times(y, prim::dequantize(blocks.slice(1, q.bytes, 3 * q.bytes), q.format)));
    g.output("blocks flipped, then unpacked", times(x, prim::dequantize(blocks.flip(0), q.format)));
    std::vector<float> bytes(static_cast<std::size_t>(30 * q.bytes));
    for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<float>((k * 37 + k / 7) % 61);
    const auto floats = [&](int n) { return random_floats(static_cast<std::size_t>(n), 1); };
    agree(g, {{"blocks", bytes}, {"x", floats(6 * e)}, {"y", floats(4 * e)}});
  }
}

// Blocks may have any bytes, including scales that are NaN or infinite.
TEST(Cpu, BlocksOfAnyBytes) {
  std::mt19937 random(7);
  for (const QuantInfo& q : kQuantFormats) {
    Graph g;
    const int count = 4000 / q.bytes * 8;
    const Tensor v = prim::dequantize(g.input("blocks", {count, q.bytes}, DType::U8), q.format);
    g.output("v", v);
    g.output("sign", prim::recip(v));  // shows the signs of zeros
    std::vector<float> bytes(static_cast<std::size_t>(count * q.bytes));
    // a half with the upper byte 7c is not a finite number
    for (float& b : bytes) b = static_cast<float>(random() % 4 ? random() % 256 : 0x7c);
    agree(g, {{"blocks", bytes}});
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

// Regression: GCC 12 loaded a whole vector and blended where padding masks its ends.
TEST(Cpu, PaddingReadsNothingOutside) {
  for (const int width : {5, 12, 27, 60}) {
    Graph g;
    g.output("y", g.input("x", {2, width, 1}).pad(1, 1, 2));
    agree(g, {{"x", random_floats(static_cast<std::size_t>(2 * width), 1)}});
  }
}
// The index expression of an empty value divides by its extent, although no element is read. With many rows this
// happens on a worker thread, which must not throw.
TEST(Cpu, ExtentsOfZeroDivideNothing) {
  const Dim c = Dim::symbol("c", 0, 8);
  Graph g;
  const Tensor places = g.index({c, 2}, Dim::index(0, c) * 2 + Dim::index(1, 2), DType::F32);
  const Tensor line = places.transpose(0, 1).reshape({c * 2}).pad(0, 0, 400);
  const Tensor rows =
      prim::mul(line.unsqueeze(0).expand({300, c * 2 + 400}), g.input("z", {300, 1}).expand({300, c * 2 + 400}));
  g.output("y", prim::sum_reduce(rows, 1));
  g.output("line", prim::add(line, g.input("one", {1}).expand({c * 2 + 400})));
  std::vector<CpuOptions> ways = {{.threads = 2}, {.threads = 1, .compiler = false}, {.threads = 2, .compiler = false}};
  if (!backends::cpu::find_llvm().path.empty())
    ways.push_back({.threads = 2, .jit = {.compiler = std::string(backends::cpu::kLlvm)}});
  for (const std::int64_t n : {0, 3}) {
    const std::map<std::string, Value> inputs = random_inputs(g, {{"c", n}}, 1, false);
    const Results want = interpret(g, inputs, {{"c", n}}, Rounding::Wide, true);
    for (const CpuOptions& o : ways) {
      const auto d = compare(want, run_values(transform(g, generic() | cpu(o)).graph, inputs, {{"c", n}}), 4);
      EXPECT_FALSE(d) << d->str() << " with an extent of " << n;
    }
  }
}

// An extent that may be 0 must not add a division to every offset.
TEST(Cpu, ExtentsThatMayBeZeroGenerateNoMoreCode) {
  std::map<std::int64_t, std::size_t> text;
  for (const std::int64_t least : {1, 0}) {
    const Dim s = Dim::symbol("s", least, 48);
    Graph g;
    const Tensor x = g.input("x", {2, s, 64}), y = softmax(x), w = g.input("w", {64, 32});
    g.output("y", y);
    g.output("turned", prim::exp2(y.transpose(0, 1).reshape({s * 2, 64})));
    g.output("product", matmul2(prim::mul(softmax(x), x).reshape({s * 2, 64}), w));
    g.output("columns", prim::max_reduce(prim::mul(x, x), 1));
    const Program p = compile(g, generic() | cpu({.threads = 1}));
    for (NodeId id = 0; id < p.graph().size(); ++id)
      if (p.graph()[id].op == Op::Kernel) text[least] += p.graph()[id].kernel->source().size();
    for (std::int64_t n = least; n <= 48; n += 16)
      agree(g, {{"x", random_floats(static_cast<std::size_t>(n * 128), 1)}, {"w", random_floats(64 * 32, 2)}},
            {{"s", n}});
  }
  EXPECT_GT(text[1], 1000u);
  EXPECT_LT(text[0], text[1] + text[1] / 10);
}

// A state is overwritten in place only if nothing reads its old value afterwards.
TEST(Cpu, AStateThatIsReadLaterKeepsItsOldValue) {
  Graph g;
  const Tensor s = g.input("s", {4}), x = g.input("x", {2});
  const Tensor next = prim::slice_scatter(s, x, 0, 1);
  g.assign(s, next);
  const Tensor total = expand_to(prim::sum_reduce(next, 0), 0, 4);
  g.output("late", prim::add(prim::mul(s, full_like(s, 10)), total));  // runs after `next`
  const Tensor t = g.input("t", {4}), twice = prim::add(t, t.flip(0));
  g.assign(t, twice);  // element 3 needs the old value of element 0
  const Tensor u = g.input("u", {4}), more = prim::add(u, full_like(u, 1));
  g.assign(u, more);
  g.output("before", u);  // the old value is also a result
  const Tensor v = g.input("v", {4}), i = g.input("i", {4}, DType::I64);
  g.assign(v, prim::scatter(v, i, v, 0));  // element 0 goes to 1 while 1 goes to 2
  for (const bool compiler : {true, false}) {
    Context c(compile(g, generic() | cpu({.threads = 1, .compiler = compiler})));
    EXPECT_THROW(c.run(), Error);  // no state has a value yet
    c.set(v, {1, 2, 3, 4}).set(i, {1, 2, 3, 0});
    c.set(s, {1, 2, 3, 4}).set(x, {5, 6}).set(t, {1, 2, 3, 4}).set(u, {7, 8, 9, 10}).run();
    EXPECT_EQ(c.get("late"), (std::vector<float>{26, 36, 46, 56}));
    EXPECT_EQ(c.get("s"), (std::vector<float>{1, 5, 6, 4}));
    EXPECT_EQ(c.get("t"), (std::vector<float>{5, 5, 5, 5}));
    EXPECT_EQ(c.get("before"), (std::vector<float>{7, 8, 9, 10}));
    EXPECT_EQ(c.get("v"), (std::vector<float>{4, 1, 2, 3}));
    EXPECT_EQ(c.get("u"), (std::vector<float>{8, 9, 10, 11}));
    c.run();
    EXPECT_EQ(c.get("late"), (std::vector<float>{26, 66, 76, 56}));
    EXPECT_EQ(c.get("t"), (std::vector<float>{10, 10, 10, 10}));
  }
}

// Two states that exchange values, and one that is assigned a view of another.
TEST(Cpu, StatesAreAllReadBeforeOneIsWritten) {
  Graph g;
  const Tensor a = g.input("a", {3}), b = g.input("b", {3}), c = g.input("c", {3});
  g.assign(a, b);
  g.assign(b, a);
  g.assign(c, a.flip(0));
  for (const Compiler& compiler : {generic(), generic() | cpu({.threads = 1})}) {
    Context x(compile(g, compiler));
    x.set(a, {1, 2, 3}).set(b, {4, 5, 6}).set(c, {0, 0, 0}).run();
    EXPECT_EQ(x.get("a"), (std::vector<float>{4, 5, 6}));
    EXPECT_EQ(x.get("b"), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(x.get("c"), (std::vector<float>{3, 2, 1}));
  }
}

// The disk cache handles entries that are valid, damaged, or in a folder that others may write to.
TEST(Jit, TheCacheIsCheckedBeforeItIsLoaded) {
  const TempDir dir;
  const std::vector<backends::cpu::Source> sources = {
      {"twice",
       "void twice(const void* const* in, void* out, const long* n, long begin, long end) {"
       " for (long i = begin; i < end; ++i) ((float*)out)[i] = 2 * ((const float*)in[0])[i]; }\n"}};
  const auto build = [&](const std::string& folder) {
    backends::cpu::Jitted j = backends::cpu::jit(sources, {.cache_dir = folder});
    const float x[2] = {1, 3};
    float y[2] = {};
    const void* in[] = {x};
    j.functions[0](in, y, nullptr, 0, 2);
    EXPECT_EQ(y[0], 2);
    EXPECT_EQ(y[1], 6);
    return std::pair(j.compiled, j.cached);
  };
  const std::string folder = dir / "cache";
  EXPECT_EQ(build(folder), std::pair(1, 0));
  EXPECT_EQ(build(folder), std::pair(0, 1));
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
  ASSERT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  const std::string entry = std::filesystem::directory_iterator(folder)->path().string(), good = slurp(entry);
  std::string changed = good, cut = good.substr(0, good.size() / 2);
  changed[good.size() / 2] ^= 1;
  for (const std::string& bad : {changed, cut, std::string(), std::string(100, 'x')}) {
    spit(entry, bad);
    EXPECT_EQ(build(folder), std::pair(1, 0));
    EXPECT_EQ(slurp(entry).size(), good.size());  // the entry was repaired
  }
  const std::vector<backends::cpu::Source> other = {{"twice", sources[0].text + "// another text\n"}};
  EXPECT_EQ(backends::cpu::jit(other, {.cache_dir = folder}).compiled, 1);
  // the same text through another compiler is another entry
  const std::string alias = dir / "cc";
  spit(alias, "#!/bin/sh\nexec " + backends::cpu::find_compiler() + " \"$@\"\n");
  ASSERT_EQ(::chmod(alias.c_str(), 0755), 0);
  EXPECT_EQ(backends::cpu::jit(sources, {.compiler = alias, .cache_dir = folder}).compiled, 1);
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  EXPECT_EQ(build(folder), std::pair(1, 0));  // other users could have written there
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  EXPECT_EQ(build(folder), std::pair(0, 1));
  std::filesystem::create_directory_symlink(folder, dir / "link");
  EXPECT_EQ(build(dir / "link"), std::pair(1, 0));
  EXPECT_EQ(build("off"), std::pair(1, 0));
}

// Clang is not given GCC's options, under whatever name it is called.
TEST(Jit, ClangIsNotGivenOptionsOfGcc) {
  const TempDir dir;
  const std::string clang = dir / "clang-99", cc = dir / "cc";
  spit(clang,
       "#!/bin/sh\ncase \"$*\" in *-fvect*) exit 1;; esac\nexec " + backends::cpu::find_compiler() + " \"$@\"\n");
  ASSERT_EQ(::chmod(clang.c_str(), 0755), 0);
  std::filesystem::create_symlink(clang, cc);
  const std::vector<backends::cpu::Source> sources = {
      {"none", "void none(const void* const* in, void* out, const long* n, long begin, long end) {}\n"}};
  for (const std::string& compiler : {clang, cc})
    EXPECT_EQ(backends::cpu::jit(sources, {.compiler = compiler, .cache_dir = "off"}).compiled, 1);
  const std::string gcc = dir / "gcc-99", asked = dir / "asked";
  spit(gcc, "#!/bin/sh\ncase \"$*\" in *-fvect*) touch " + asked + ";; esac\nexit 1\n");
  ASSERT_EQ(::chmod(gcc.c_str(), 0755), 0);
  EXPECT_THROW(backends::cpu::jit(sources, {.compiler = gcc, .cache_dir = "off"}), Error);
  EXPECT_TRUE(std::filesystem::exists(asked));
}

TEST(Jit, NoCompilerMeansTheInterpreterOfTheIr) {
  EXPECT_EQ(backends::cpu::find_compiler({.compiler = "none"}), "");
  EXPECT_THROW(backends::cpu::find_compiler({.compiler = "/no/such/cc"}), Error);  // an Error, unlike "none"
  Graph g;
  g.output("y", prim::exp2(g.input("x", {2})));
  const Compiled done = transform(g, cpu({.threads = 1, .jit = {.compiler = "none"}}));
  EXPECT_EQ(fired(done.log, "C units compiled"), 0);
  EXPECT_EQ(fired(done.log, "C units from cache"), 0);
  EXPECT_THROW(transform(g, cpu({.threads = 1, .jit = {.compiler = "/bin/false", .cache_dir = "off"}})), Error);
}

TEST(Cpu, ThreadsAreCounted) {
  EXPECT_EQ(error_of([&] { cpu({.threads = -3}); }),
            "cpu: -3 threads: there is at least 1, and 0 is one for each core");
}

// A chain longer than a kernel may be is split and gives right results. (Regression: this never finished compiling.)
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

// A stack of row operations over rows of changing length. Fusion stops at values that are too expensive to inline, and
// a layer is a few kernels, not one for each operation.
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

// In the padding, an index may denote an element of the next row. Reads of the padded value are still decided without
// division.
TEST(Cpu, BordersAroundBordersNeedNoDivisions) {
  Graph g;
  Tensor t = prim::mul(g.input("x", {2, 13, 14}), g.input("s", {2, 13, 14}));
  for (const int axis : {1, 2}) {
    const Tensor border = t.pad(axis, 1, 1);
    t = prim::maximum(border, prim::mul(border, border));
  }
  g.output("y", t);
  const Program p = compile(g, generic() | cpu({.threads = 1}));
  ASSERT_EQ(p.kernels(), 1u);
  const std::string text = p.graph()[p.graph().roots()[0].edge.node].kernel->source();
  EXPECT_EQ(text.find('%'), text.npos) << text;
  EXPECT_EQ(text.find(" / "), text.npos) << text;
}

// The same expression occurs in two loops of a kernel, once with other uses of its product and once alone. If it were
// rounded differently, a row's largest element would equal no element of the row.
TEST(Cpu, AnExpressionHasTheSameBitsInEveryLoop) {
  constexpr std::int64_t rows = 40000, columns = 6;
  Graph g;
  const Tensor x = g.input("x", {rows, columns});
  argmax(-log(-log1p(x * (0x1p-24 - 1))), -1).retrieve("place");
  std::vector<float> values;
  std::mt19937 random(1);
  for (std::int64_t k = 0; k < rows * columns; ++k) values.push_back(static_cast<float>(random() >> 8) * 0x1p-24f);
  for (const char* compiler : {"", "llvm"}) {
    Context c(compile(g, generic() | cpu({.threads = 2, .jit = {.compiler = compiler}})));
    const std::vector<std::int64_t> place = c.set("x", values).run().get_i64("place");
    for (std::int64_t row = 0; row < rows; ++row) {
      ASSERT_GE(place[static_cast<std::size_t>(row)], 0) << compiler << ", row " << row;
      ASSERT_LT(place[static_cast<std::size_t>(row)], columns) << compiler << ", row " << row;
    }
  }
}

// Sums of products are fused (FMA), elementwise and in reductions, unless the product itself is stored.
TEST(Cpu, SumsOfProductsAreFused) {
  const auto source = [](const std::function<Tensor(Tensor, Tensor)>& f) {
    Graph g;
    f(g.input("x", {300, 70}), g.input("y", {300, 70})).retrieve();
    const Program p = compile(g, generic() | cpu({.jit = {.compiler = ""}}));
    for (NodeId id = 0; id < p.graph().size(); ++id)
      if (p.graph()[id].op == Op::Kernel) return p.source(p.graph()[id].name);
    return std::string();
  };
  const auto fused = [&](const std::function<Tensor(Tensor, Tensor)>& f) {
    return source(f).find("lc_mul_add_f(") != std::string::npos;
  };
  EXPECT_TRUE(fused([](Tensor x, Tensor y) { return x * y + x; }));
  EXPECT_TRUE(fused([](Tensor x, Tensor y) { return x + y * y; }));
  EXPECT_TRUE(fused([](Tensor x, Tensor) { return sum(exp(x) * sin(x), {1}); }));
  EXPECT_FALSE(fused([](Tensor x, Tensor y) { return x * y; }));
  EXPECT_FALSE(fused([](Tensor x, Tensor y) { return (x + y) * y; }));
}

// Scatters rows, as an embedding's gradient does: whole rows are added or copied, and several threads share the
// columns.
TEST(Cpu, ScatteredRows) {
  constexpr std::int64_t rows = 9, width = 200, count = 60;
  for (const DType type : {DType::F32, DType::F64}) {
    Graph g;
    const Tensor base = g.input("base", {rows, width}, type), source = g.input("source", {count, width}, type);
    const Tensor ids = g.input("ids", {count}, DType::I64);  // some of them out of range
    index_add(base, 0, ids, source).retrieve("added");
    index_copy(base, 0, ids, source).retrieve("copied");
    std::map<std::string, Value> in{{"base", make_value(type, {rows, width})},
                                    {"source", make_value(type, {count, width})},
                                    {"ids", make_value(DType::I64, {count})}};
    std::mt19937 random(4);
    for (const char* name : {"base", "source"})
      for (double& v : in.at(name).f) v = static_cast<float>(random() % 1000) / 256 - 2;
    for (auto& v : in.at("ids").i) v = static_cast<std::int64_t>(random() % (rows + 2)) - 1;
    const Results want = interpret(g, in, {}, Rounding::Wide, true);
    for (const int threads : {1, 2}) {
      const auto d = compare(want, run_values(transform(g, generic() | cpu({.threads = threads})).graph, in, {}), 4);
      EXPECT_FALSE(d) << d->str();
    }
  }
}
