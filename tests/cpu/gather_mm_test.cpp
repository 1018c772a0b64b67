// gather_mm: products with matrices that an index chooses, for every stored type, against the reference and in every
// order of rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "differences.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/composites/composites.h"
#include "lightcone/formats/block_formats.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"
#include "random_inputs.h"

namespace lc {
namespace {

using test::normals;

struct Matrices {
  DType type;
  std::optional<QuantFormat> format = {};
};
std::vector<Matrices> kinds() {
  std::vector<Matrices> all{{DType::F32}, {DType::F16}, {DType::BF16}};
  for (const QuantInfo& q : kQuantFormats) all.push_back({DType::U8, q.format});
  return all;
}

// y = gather_mm(x [n, k], w [count, m, k], index [n]); the matrices are a parameter, so that a device may pack them.
Graph products(const Matrices& kind, Dim n, int count, int m, int blocks) {
  Graph g;
  const QuantInfo* q = kind.format ? &info(*kind.format) : nullptr;
  const int k = q ? blocks * q->elements : 8 * blocks + 5;
  const Tensor w = g.parameter("w", {count, m, q ? blocks * q->bytes : k}, kind.type);
  g.output("y", prim::gather_mm(g.input("x", {n, k}), w, g.input("index", {n}, DType::I64), kind.format));
  return g;
}

int kernels(const Program& p, std::string_view name) {
  int n = 0;
  for (NodeId id = 0; id < p.graph().size(); ++id)
    n += p.graph()[id].op == Op::Kernel && p.graph()[id].kernel->name().starts_with(name);
  return n;
}

TEST(GatherMm, AgreesWithTheReferenceForEveryStoredType) {
  for (const Matrices& kind : kinds())
    for (const auto& [n, count, m] : {std::tuple{5, 3, 32}, {22, 2, 17}, {9, 12, 48}}) {
      if (kind.format && count == 12) continue;  // their definition takes long
      const Graph g = products(kind, n, count, m, 2);
      const Compiler c = generic() | cpu({.threads = 2, .compiler = false});
      // Packed blocks with minima add d * sum(codes) and the minima of a step apart: infinities of both signs are NaN.
      const bool minima = kind.format && info(*kind.format).d_min >= 0;
      const VerifyReport r = verify(g, c, {.trials = 2, .wild = !minima});
      EXPECT_TRUE(r.ok()) << r.str();
      EXPECT_EQ(kernels(compile(g, c), "gather_mm"), 1);
    }
}

// Matrices without a kernel, such as 8-bit floats, are computed by the definition.
TEST(GatherMm, TheDefinitionAnswersForOtherTypes) {
  const Graph g = products({DType::F8E4M3FN}, 9, 3, 16, 2);
  const Compiler c = generic() | cpu({.threads = 2, .compiler = false});
  EXPECT_EQ(kernels(compile(g, c), "gather_mm"), 0);
  const VerifyReport r = verify(g, c, {.trials = 2, .wild = false});
  EXPECT_TRUE(r.ok()) << r.str();
}

TEST(GatherMm, MediumRoundsNoMoreThanItMay) {
  for (const Matrices& kind : kinds()) {
    const Graph g = products(kind, 24, 3, 32, 2);
    const VerifyReport r = verify(g, generic() | cpu({.threads = 2, .compiler = false, .precision = Precision::Medium}),
                                  {.trials = 2, .wild = false, .products = 0x1p-8});
    EXPECT_TRUE(r.ok()) << r.str();
  }
}

// On tile registers many rows of blocks are multiplied in bf16, as those of a prompt are; few rows keep their kernel.
TEST(GatherMmMedium, ManyRowsOfBlocks) {
  for (const QuantFormat format : {QuantFormat::Q8_0, QuantFormat::Q4_0, QuantFormat::Q4_K}) {
    const int blocks = info(format).elements > 32 ? 1 : 3;
    const Compiler c = generic() | cpu({.threads = 2, .compiler = false, .precision = Precision::Medium});
    const auto multiplied_by = [&](const Graph& g) {
      const Program p = compile(g, c);
      for (NodeId id = 0; id < p.graph().size(); ++id)
        if (p.graph()[id].op == Op::Kernel && p.graph()[id].name.starts_with("gather_mm")) return p.graph()[id].name;
      return std::string();
    };
    const Graph many = products({DType::U8, format}, 70, 2, 48, blocks);
    const bool tiles =
        backends::cpu::on_tiles(*microkernel(backends::cpu::Arithmetic::Bf16, backends::cpu::this_target()));
    EXPECT_EQ(multiplied_by(many).find("bf16") != std::string::npos, tiles) << multiplied_by(many);
    EXPECT_EQ(multiplied_by(products({DType::U8, format}, 50, 2, 48, blocks)).find("bf16"), std::string::npos);
    Graph kept = many.clone();  // matrices that are a result, too, are not packed
    for (NodeId id = 0; id < kept.size(); ++id)
      if (kept[id].name == "w") kept.output("w", Tensor(kept, {id, View(kept[id].shape)}));
    EXPECT_EQ(multiplied_by(kept).find("bf16"), std::string::npos);
    const VerifyReport r = verify(many, c, {.trials = 1, .wild = false, .products = 0x1p-8});
    EXPECT_TRUE(r.ok()) << r.str();
  }
}

// Returns the rows that a program computes with f32 matrices.
std::vector<float> run(const Program& p, std::int64_t n, const std::vector<float>& x,
                       const std::vector<std::int64_t>& index) {
  Context c(p);
  return c.bind("n", n).set("x", x).set("index", index).run().get("y");
}

// Bits do not depend on the number of threads, and a row is the same alone and among others but for rounding: up to
// four rows are summed in another order. More than 512 rows choose one matrix.
TEST(GatherMm, ManyRows) {
  constexpr int kCount = 3, kM = 32, kK = 21, kRows = 1400;
  const Dim n = Dim::symbol("n", 1, kRows);
  const Graph g = products({DType::F32}, n, kCount, kM, 2);
  std::vector<float> x = normals(kRows * kK, 1);
  const std::vector<float> w = normals(kCount * kM * kK, 2);
  std::vector<std::int64_t> index(kRows);
  for (int i = 0; i < kRows; ++i) index[i] = i % 7 < 5 ? 1 : i % 3;
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    Program p = compile(g, generic() | cpu({.threads = threads, .compiler = false}));
    p.load("w", w.data(), w.size() * 4);
    const std::vector<float> y = run(p, kRows, x, index);
    if (first.empty()) first = y;
    EXPECT_EQ(std::memcmp(y.data(), first.data(), y.size() * 4), 0) << threads;
    for (const int row : {0, 17, 1399}) {
      const std::vector<float> one(x.begin() + row * kK, x.begin() + (row + 1) * kK);
      const std::vector<float> alone = run(p, 1, one, {index[row]});
      for (int j = 0; j < kM; ++j) EXPECT_NEAR(alone[j], first[row * kM + j], 1e-5) << row;
    }
  }
  double worst = 0;
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kM; ++j) {
      double sum = 0;
      for (int k = 0; k < kK; ++k) sum += double{x[i * kK + k]} * double{w[(index[i] * kM + j) * kK + k]};
      worst = std::max(worst, std::abs(sum - double{first[i * kM + j]}));
    }
  EXPECT_LT(worst, 1e-5);
}

// What no row chose is not read, and an index that is no matrix gives zeros.
TEST(GatherMm, UnchosenMatricesAndIndicesOutOfRange) {
  const Graph g = products({DType::F32}, Dim::symbol("n", 0, 8), 3, 16, 1);
  Program p = compile(g, generic() | cpu({.threads = 2, .compiler = false}));
  constexpr int kK = 13;
  std::vector<float> w(3 * 16 * kK, 1);
  std::fill(w.begin() + 16 * kK, w.begin() + 32 * kK, std::numeric_limits<float>::quiet_NaN());
  p.load("w", w.data(), w.size() * 4);
  const std::vector<float> y = run(p, 4, std::vector<float>(4 * kK, 2), {2, -1, 3, 0});
  for (int j = 0; j < 16; ++j) {
    EXPECT_EQ(y[j], 26);
    EXPECT_EQ(y[16 + j], 0);
    EXPECT_EQ(y[32 + j], 0);
    EXPECT_EQ(y[48 + j], 26);
  }
  EXPECT_TRUE(run(p, 0, {}, {}).empty());
}

// Matrices that a file has one by one are joined and packed when they are loaded.
TEST(GatherMm, StackedParametersArePacked) {
  Graph g;
  std::vector<Tensor> each;
  for (int i = 0; i < 3; ++i) each.push_back(g.parameter(str_cat("w", i), {32, 24}, DType::BF16));
  g.output("y", prim::gather_mm(g.input("x", {7, 24}), stack(each), g.input("index", {7}, DType::I64)));
  const Compiler c = generic() | cpu({.threads = 2, .compiler = false});
  EXPECT_EQ(kernels(compile(g, c), "gather_mm_bf16_packed"), 1);
  const VerifyReport r = verify(g, c, {.trials = 2});
  EXPECT_TRUE(r.ok()) << r.str();
}

TEST(GatherMm, DerivativesAgreeWithDifferences) {
  Graph g;
  const Tensor x = g.input("x", {5, 3}, DType::F64), w = g.input("w", {3, 4, 3}, DType::F64);
  const Tensor y = prim::gather_mm(x, w, g.input("index", {5}, DType::I64));
  Inputs in = test::random_values(g, 3);
  in["index"].i = {2, 0, 2, 5, 1};
  check_gradients(g, y, in, "gather_mm", 2);
}

TEST(GatherMm, RefusesWhatDoesNotFit) {
  Graph g;
  const Tensor x = g.input("x", {5, 3}), w = g.input("w", {2, 4, 3}), index = g.input("index", {5}, DType::I64);
  const auto problem = [](const auto& f) {
    try {
      f();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(problem([&] { prim::gather_mm(x, g.input("v", {2, 4, 7}), index); }).find("3 vs 7"), std::string::npos);
  EXPECT_NE(problem([&] { prim::gather_mm(x, w, g.input("i", {4}, DType::I64)); }).find("5 vs 4"), std::string::npos);
  EXPECT_NE(problem([&] { prim::gather_mm(x, w, g.input("f", {5})); }).find("integer"), std::string::npos);
  EXPECT_NE(problem([&] { prim::gather_mm(x, w, index, QuantFormat::Q4_K); }).find("q4_k"), std::string::npos);
}

}  // namespace
}  // namespace lc
