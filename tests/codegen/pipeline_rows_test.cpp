// Software-pipelined rows (codegen/schedule/pipeline_rows.cpp) give the bits of one row after the other and read
// nothing outside their rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "guarded.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/backends/cpu/lower.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/reference/interpreter.h"

using namespace lc;

namespace {

using Make = std::function<Tensor(Tensor)>;
constexpr std::int64_t kElements = 10'000'000;  // a result of this size exceeds every cache
const bool kC = true, kIr = false;

struct Compiled {
  Graph graph;
  const backends::cpu::LoopKernel* kernel;
};
Compiled kernel_of(const Make& make, DType t, const Dim& rows, std::int64_t columns, bool compiler) {
  Graph g;
  g.output("y", make(g.input("x", {rows, columns}, t)));
  Graph c = transform(g, generic() | cpu({.threads = 1, .compiler = compiler, .machine = Machine{}})).graph;
  const auto* k = dynamic_cast<const backends::cpu::LoopKernel*>(c[c.roots()[0].edge.node].kernel.get());
  return {std::move(c), k};
}
bool pipelined(const backends::cpu::LoopKernel& k) { return k.source().find("i1000_t") != std::string::npos; }

std::vector<std::byte> numbers(DType t, std::int64_t rows, std::int64_t columns) {
  std::mt19937 rng(7);
  std::normal_distribution<double> d;
  Value v = make_value(t, {rows, columns});
  for (double& x : v.f) x = d(rng);
  if (rows > 2) {  // NaN and infinities in rows of their own
    v.f[static_cast<std::size_t>(columns)] = std::nan("");
    v.f[static_cast<std::size_t>(2 * columns - 1)] = -kInf;
    v.f[static_cast<std::size_t>(2 * columns)] = kInf;
    v.f[static_cast<std::size_t>(2 * columns + 1)] = -0.0;
  }
  std::vector<std::byte> bytes(v.size() * size_of(t));
  write_value(v, bytes.data());
  return bytes;
}

// Runs rows [begin, end) of x with guard pages around these rows and around the written ones.
void run_rows(const backends::cpu::LoopKernel& k, const std::vector<std::byte>& x, std::vector<std::byte>& y,
              std::int64_t rows, std::int64_t begin, std::int64_t end, bool stream, test::Against side) {
  const std::size_t row = x.size() / static_cast<std::size_t>(rows);
  const std::size_t from = static_cast<std::size_t>(begin) * row, bytes = static_cast<std::size_t>(end) * row - from;
  test::Guarded in(bytes, side), out(bytes, side);
  std::memcpy(in.data(), x.data() + from, bytes);
  std::vector<std::int64_t> sizes;
  for (const Dim& d : k.sizes()) sizes.push_back(d.eval({{"n", rows}}));
  sizes[sizes.size() - 4] = stream;
  const auto first = [&](std::byte* p) {  // the address that row 0 would have
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(p) - from);
  };
  const void* operands[] = {first(in.data())};
  const bool all = begin == 0 && end == rows;  // a single row may have no loop over rows
  k.range(operands, first(out.data()), sizes.data(), begin, all ? sizes[sizes.size() - 3] : end);
  std::memcpy(y.data() + from, out.data(), bytes);
}

// Compares bits. For NaN, whose sign the C compiler may choose, any NaN matches.
bool same(DType t, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  const std::size_t size = size_of(t);
  for (std::size_t k = 0; k < a.size() / size; ++k)
    if (std::memcmp(a.data() + k * size, b.data() + k * size, size) != 0 &&
        !(std::isnan(load_f64(a.data(), t, k)) && std::isnan(load_f64(b.data(), t, k))))
      return false;
  return true;
}

void same_as_one_by_one(const char* what, const Make& make, DType t, std::int64_t columns) {
  SCOPED_TRACE(str_cat(what, " ", name(t), " ", columns));
  const Dim any = Dim::symbol("n", 1, kElements / columns);
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 8, 11}) {
    const Compiled plain = kernel_of(make, t, rows, columns, kC);
    ASSERT_TRUE(plain.kernel && !pipelined(*plain.kernel));
    const std::vector<std::byte> x = numbers(t, rows, columns);
    std::vector<std::byte> want(x.size());
    run_rows(*plain.kernel, x, want, rows, 0, rows, false, test::Against::Back);
    const Compiled c = kernel_of(make, t, any, columns, kC);
    ASSERT_TRUE(c.kernel && pipelined(*c.kernel));
    std::vector<std::byte> whole(x.size());
    run_rows(*c.kernel, x, whole, rows, 0, rows, true, test::Against::Back);
    ASSERT_TRUE(same(t, whole, want)) << rows << " rows";
    for (const bool stream : {false, true})
      for (const std::int64_t piece : {rows, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}})
        for (const test::Against side : {test::Against::Front, test::Against::Back}) {
          std::vector<std::byte> got(x.size());
          for (std::int64_t r = 0; r < rows; r += piece)
            run_rows(*c.kernel, x, got, rows, r, std::min(r + piece, rows), stream, side);
          ASSERT_TRUE(same(t, got, whole)) << rows << " rows by " << piece << stream;
        }
    const Compiled one = kernel_of(make, t, rows, columns, kIr), ir = kernel_of(make, t, any, columns, kIr);
    std::vector<std::byte> alone(x.size()), got(x.size());
    run_rows(*one.kernel, x, alone, rows, 0, rows, false, test::Against::Back);
    for (std::int64_t r = 0; r < rows; r += 3)
      run_rows(*ir.kernel, x, got, rows, r, std::min(r + 3, rows), true, test::Against::Back);
    ASSERT_TRUE(same(t, got, alone)) << rows << " rows in the IR's interpreter";
  }
}

const std::vector<std::pair<const char*, Make>>& cases() {
  static const std::vector<std::pair<const char*, Make>> all{
      {"softmax", [](Tensor x) { return softmax(x, 1); }},
      {"layer norm", [](Tensor x) { return layer_norm(x, {x.extent(-1)}); }},
      {"two loops", [](Tensor x) { return x / sum(x * x, {1}, true); }},
      {"five loops", [](Tensor x) { return softmax(gelu(layer_norm(x, {x.extent(-1)})), 1); }},
      {"two kept rows", [](Tensor x) { return softmax(gelu(x), 1) + gelu(x); }},
      {"numbers of a row", [](Tensor x) { return x * amax(x, {1}, true) + x.slice(1, 0, 1) * sum(x, {1}, true); }}};
  return all;
}

}  // namespace

TEST(PipelinedRows, SameBitsAsRowAfterRow) {
  for (const auto& [what, make] : cases())
    for (const std::int64_t columns : {64, 128, 257, 1031}) same_as_one_by_one(what, make, DType::F32, columns);
  for (const DType t : {DType::F64, DType::F16, DType::BF16})
    for (const std::int64_t columns : {100, 300}) same_as_one_by_one("softmax", cases()[0].second, t, columns);
}

// Compares with the reference interpreter a result large enough for non-temporal stores.
TEST(PipelinedRows, AgreesWithTheInterpreterOfTheGraph) {
  constexpr std::int64_t kRows = 4099, kColumns = 1030;
  Graph g;
  g.output("y", softmax(g.input("x", {kRows, kColumns}), 1));
  Value x = make_value(DType::F32, {kRows, kColumns});
  std::mt19937 rng(3);
  std::normal_distribution<float> d;
  for (double& v : x.f) v = d(rng);
  const Results want = interpret(g, {{"x", x}}, {}, Rounding::Wide, true);
  std::optional<Results> one;
  for (const int threads : {1, 2, 3}) {
    const Graph c = transform(g, generic() | cpu({.threads = threads, .machine = Machine{}})).graph;
    EXPECT_TRUE(pipelined(*dynamic_cast<const backends::cpu::LoopKernel*>(c[c.roots()[0].edge.node].kernel.get())));
    Results got = test::run_guarded(c, {{"x", x}}, {}, test::Against::Back);
    const Value &w = want.outputs.at("y"), &y = got.outputs.at("y");
    for (std::size_t k = 0; k < w.size(); ++k) ASSERT_LE(std::abs(y.f[k] - w.f[k]), w.error_at(k) * 4 + 1e-30) << k;
    if (one)
      ASSERT_EQ(std::memcmp(y.f.data(), one->outputs.at("y").f.data(), y.f.size() * sizeof(double)), 0) << threads;
    else one = std::move(got);
  }
}

// Rows are pipelined if those in flight and the operands they share fit the second-level cache. A small result is not
// pipelined.
TEST(PipelinedRows, WhereItPays) {
  const auto is = [](const Make& make, std::int64_t rows, std::int64_t columns) {
    return pipelined(*kernel_of(make, DType::F32, rows, columns, kC).kernel);
  };
  const Make norm = [](Tensor x) {
    Graph& g = x.graph();
    const Dim n = x.shape()[1];
    return layer_norm(x, {x.extent(-1)}, g.input("w", {n}), g.input("b", {n}));
  };
  EXPECT_TRUE(is(cases()[0].second, 4096, 4096));
  EXPECT_FALSE(is(cases()[0].second, 256, 4096));
  EXPECT_TRUE(is(norm, 16384, 1024));
  EXPECT_TRUE(is(norm, 4096, 4096));
  EXPECT_FALSE(is(norm, 1024, 16384));
}

// In the fused loop, each operand is prefetched by its first reader, one page ahead.
TEST(PipelinedRows, MemoryIsFetchedByWhoReadsItFirst) {
  Graph g;
  const Tensor x = g.input("x", {3000, 4096}), y = g.input("y", {3000, 4096});
  g.output("z", softmax(x, 1) + y);
  const Graph c = transform(g, generic() | cpu({.threads = 1, .machine = Machine{}})).graph;
  const std::string text =
      dynamic_cast<const backends::cpu::LoopKernel*>(c[c.roots()[0].edge.node].kernel.get())->source();
  const std::string of_x = "__builtin_prefetch(in0 + (4096L*i1000 + i2000 + 1024L))";
  const std::string of_y = "__builtin_prefetch(in1 + (4096L*i1000 + i1001 + 1024L))";
  EXPECT_NE(text.find(of_x), std::string::npos) << text;
  EXPECT_NE(text.find(of_y), std::string::npos) << text;
  std::size_t all = 0;
  for (std::size_t at = 0; (at = text.find("__builtin_prefetch(", at)) != std::string::npos; ++at) ++all;
  EXPECT_EQ(all, 2u) << text;
}

// LLVM's kernel has the bits of the C compiler's, for ranges of any size.
TEST(PipelinedRows, ThroughLlvm) {
  if (backends::cpu::find_llvm().path.empty()) GTEST_SKIP() << "LLVM's library is not here";
  for (const auto& [what, make] : cases())
    for (const std::int64_t columns : {64, 257, 1031}) {
      SCOPED_TRACE(str_cat(what, " ", columns));
      const Dim any = Dim::symbol("n", 1, kElements / columns);
      const auto through = [&, &make = make](const std::string& compiler) {
        Graph g;
        g.output("y", make(g.input("x", {any, columns})));
        return transform(g, generic() | cpu({.threads = 1, .machine = Machine{}, .jit = {.compiler = compiler}})).graph;
      };
      const Graph a = through(""), b = through("llvm");
      const auto kernel = [](const Graph& g) {
        return dynamic_cast<const backends::cpu::LoopKernel*>(g[g.roots()[0].edge.node].kernel.get());
      };
      ASSERT_TRUE(pipelined(*kernel(b)));
      const std::vector<std::byte> x = numbers(DType::F32, 11, columns);
      std::vector<std::byte> want(x.size());
      run_rows(*kernel(a), x, want, 11, 0, 11, true, test::Against::Back);
      for (const std::int64_t piece : {11, 1, 2, 4}) {
        std::vector<std::byte> got(x.size());
        for (std::int64_t r = 0; r < 11; r += piece)
          run_rows(*kernel(b), x, got, 11, r, std::min<std::int64_t>(r + piece, 11), true, test::Against::Front);
        ASSERT_TRUE(same(DType::F32, got, want)) << piece;
      }
    }
}
