// The CPU back end finds matrix products in primitives and computes them correctly: of any sizes, of bytes, of operands
// that are padded, cut, turned round or quantized.
#include "lightcone/backends/cpu/cpu.h"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "agree.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;
using namespace lc::test;

TEST(Cpu, Matmul) {
  for (const auto& [m, k, n] : {std::array{3, 1, 4}, std::array{1, 64, 33}, std::array{5, 17, 3},
                                std::array{130, 333, 70}, std::array{160, 64, 1100}}) {
    Graph g;
    const Tensor a = g.input("a", {m, k}), b = g.input("b", {k, n}), w = g.input("w", {n, k});
    g.output("ab", matmul2(a, b));
    g.output("aw", matmul2(a, w.permute({1, 0})));
    g.output("t", matmul2(b.permute({1, 0}), a.permute({1, 0})));
    agree(g, {{"a", normals(static_cast<std::size_t>(m * k), 1)},
              {"b", normals(static_cast<std::size_t>(n * k), 2)},
              {"w", normals(static_cast<std::size_t>(n * k), 3)}});
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
              {"s", normals(static_cast<std::size_t>(n), 3)}});
  }
  Graph g;
  const Tensor a = g.input("a", {5, 100}, DType::I8), w = g.parameter("w", {32, 100}, DType::I8);
  g.output("y", matmul2(prim::cast(a, DType::I32), prim::cast(w, DType::I32).permute({1, 0})));
  Program p = compile(g, generic() | cpu({.threads = 2}));
  int exact = 0, packed = 0;
  for (NodeId id = 0; id < p.graph().size(); ++id)
    if (const Node& node = p.graph()[id]; node.op == Op::Kernel) {
      exact += node.kernel->name().starts_with("matmul_i8_packed");
      packed += node.kernel->name().starts_with("pack_");
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
    std::vector<float> v = normals(33 * 64, 4);
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
    agree(g, {{"a", normals(static_cast<std::size_t>(m * 33), 1)},
              {"b", normals(33 * 40, 2)},
              {"x", normals(static_cast<std::size_t>(m * 64), 3)},
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
    const auto floats = [&](int n) { return normals(static_cast<std::size_t>(n), 1); };
    agree(g, {{"blocks", bytes}, {"x", floats(6 * e)}, {"y", floats(4 * e)}});
  }
}
