// Loops that share values of a row (codegen/schedule/rows.cpp) and non-temporal stores (codegen/schedule/stream.cpp)
// give the right bits for every storage type and alignment.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "guarded.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/backends/cpu/lower.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/reference/interpreter.h"

using namespace lc;

namespace {

Value numbers(DType t, std::vector<std::int64_t> shape, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> d;
  Value v = make_value(t, std::move(shape));
  for (double& x : v.f) {
    std::uint64_t raw = 0;
    store_f64(&raw, t, 0, d(rng));
    x = load_f64(&raw, t, 0);
  }
  return v;
}

void expect_close(const Results& want, const Results& got, const char* who) {
  for (const auto& [name, w] : want.outputs) {
    const Value& y = got.outputs.at(name);
    for (std::size_t k = 0; k < w.size(); ++k) {
      if (std::isnan(w.f[k])) ASSERT_TRUE(std::isnan(y.f[k])) << who << " " << k;
      else if (std::isinf(w.f[k])) ASSERT_EQ(y.f[k], w.f[k]) << who << " " << k;
      else ASSERT_LE(std::abs(y.f[k] - w.f[k]), w.error_at(k) * 4 + 1e-30) << who << " " << k;
    }
  }
}
bool same_bits(const Results& a, const Results& b) {
  for (const auto& [name, v] : a.outputs)
    if (std::memcmp(v.f.data(), b.outputs.at(name).f.data(), v.f.size() * sizeof(double)) != 0) return false;
  return true;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}
std::size_t kept_rows(const std::string& text) { return count(text, "float row") + count(text, "double row"); }
// Returns the C text of all kernels.
std::string sources(const Graph& g) {
  std::string all;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].kernel) all += g[id].kernel->source();
  return all;
}

// Checks y = make(x) with the C compiler, LLVM and the interpreter of the IR, with one and two threads. The text must
// have `rows` cached rows.
void agree(const std::function<Tensor(Tensor)>& make, DType t, std::size_t rows, std::int64_t columns,
           const Value* x = nullptr) {
  SCOPED_TRACE(str_cat(name(t), " ", columns));
  Graph g;
  const Dim c = Dim::symbol("c", 1, 2000);
  g.output("y", make(g.input("x", {3, c}, t)));
  const std::map<std::string, Value> in{{"x", x ? *x : numbers(t, {3, columns}, 1)}};
  const Bindings env{{"c", columns}};
  const Results want = interpret(g, in, env, Rounding::Wide, true);
  const Graph tidy = transform(g, generic()).graph;
  const Graph c1 = transform(tidy, cpu({.threads = 1})).graph;
  EXPECT_EQ(kept_rows(sources(c1)), rows);
  const Results one = test::run_guarded(c1, in, env, test::Against::Front);
  expect_close(want, one, "C");
  const Graph c2 = transform(tidy, cpu({.threads = 2})).graph;
  EXPECT_TRUE(same_bits(one, test::run_guarded(c2, in, env, test::Against::Back))) << "threads change bits";
  const Graph ir = transform(tidy, cpu({.threads = 1, .compiler = false})).graph;
  expect_close(want, test::run_guarded(ir, in, env, test::Against::Back), "IR");
  if (backends::cpu::find_llvm().path.empty()) return;
  const Graph llvm = transform(tidy, cpu({.threads = 2, .jit = {.compiler = "llvm"}})).graph;
  expect_close(want, test::run_guarded(llvm, in, env, test::Against::Back), "LLVM");
}

constexpr std::int64_t kColumns[] = {1, 15, 16, 17, 100, 1031};

}  // namespace

TEST(Rows, WhatLoopsShareIsComputedOnce) {
  for (const DType t : {DType::F32, DType::F16, DType::BF16, DType::F64})
    for (const std::int64_t n : kColumns) agree([](Tensor x) { return softmax(x, 1); }, t, 1, n);
  for (const std::int64_t n : {70, 64}) {
    Graph g;
    g.output("y", softmax(gelu(layer_norm(g.input("x", {3, n}), {n})), 1));
    const std::string text = sources(transform(g, generic() | cpu({.threads = 1})).graph);
    EXPECT_EQ(count(text, "lc_exp2_v("), 1u);                 // whole vectors
    EXPECT_EQ(count(text, "lc_exp2_f("), n == 64 ? 0u : 1u);  // the remainder, if there is one
  }
}

// The exponential overwrites the cached gelu it is computed from, unless that is read again.
TEST(Rows, ARowIsUsedAgainWhenNobodyReadsIt) {
  for (const std::int64_t n : kColumns) {
    agree([](Tensor x) { return softmax(gelu(layer_norm(x, {x.extent(-1)})), 1); }, DType::F32, 1, n);
    agree([](Tensor x) { return softmax(gelu(x), 1) + gelu(x); }, DType::F32, 2, n);
    // the loop that reads a for the last time caches b, after that read or before it
    const auto both = [](bool first) {
      return [first](Tensor x) {
        const Tensor a = exp(x), b = sin(x), m = amax(a, {1}, true);
        return b * sum(first ? a + b * m : b * m + a, {1}, true);
      };
    };
    agree(both(true), DType::F32, 1, n);
    agree(both(false), DType::F32, 2, n);
  }
}

TEST(Rows, NothingIsKeptThatIsCheapOrLong) {
  agree([](Tensor x) { return layer_norm(x, {x.extent(-1)}); }, DType::F32, 0, 100);
  Graph g;
  g.output("y", softmax(g.input("x", {2, 100000}), 1));
  EXPECT_EQ(count(sources(transform(g, generic() | cpu({.threads = 1})).graph), "row0["), 0u);
}

// A reduction that several loops read is computed once. If each loop added it in its own order, then for a large sum
// the exponential of the sum minus its maximum could exceed 1.
TEST(Rows, ASumThatSeveralLoopsReadIsOneNumber) {
  std::vector<CpuOptions> ways{{.threads = 1}, {.threads = 1, .compiler = false}};
  if (!backends::cpu::find_llvm().path.empty()) ways.push_back({.threads = 1, .jit = {.compiler = "llvm"}});
  for (const std::int64_t columns : {4, 8}) {
    Graph g;
    const Tensor a = g.input("a", {1, 1}).expand({40, columns});
    const Tensor s = sum(a * g.input("x", {40, columns}), {0}, true);
    const Tensor z = s * s - 1.0;
    g.output("y", exp2(z - amax(z, {1}, true)));
    Value x = numbers(DType::F32, {40, columns}, 1);  // squaring makes sums in two orders differ by whole numbers
    for (int k = 0; k < 40 * columns; ++k) x.f[k] = float(std::sin(0.37 * k + 0.011 * k * k) * 300);
    Value factor = numbers(DType::F32, {1, 1}, 2);
    factor.f = {-1.46F};
    const std::map<std::string, Value> in{{"a", factor}, {"x", x}};
    for (const CpuOptions& o : ways) {
      const Value y = run_values(transform(g, generic() | cpu(o)).graph, in, {}).outputs.at("y");
      EXPECT_EQ(*std::max_element(y.f.begin(), y.f.end()), 1) << columns << " columns";
    }
  }
}

TEST(Rows, OddNumbersAreKeptToo) {
  Value x = numbers(DType::F32, {3, 100}, 2);
  x.f[5] = std::nan("");
  x.f[150] = kInf;
  x.f[151] = -0.0;
  x.f[299] = -kInf;
  agree([](Tensor t) { return softmax(gelu(t), 1); }, DType::F32, 1, 100, &x);
  agree([](Tensor t) { return softmax(t, 1); }, DType::F32, 1, 100, &x);
}

// Two concatenated halves: where a half is read its index is known, so no division remains.
TEST(Rows, HalvesSideBySideAreReadWithoutDividing) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 100);
  const Tensor x = g.input("x", {n, 4, 64}).permute({1, 0, 2}), c = g.input("c", {n, 32});
  const Tensor a = x.slice(2, 0, 32), b = x.slice(2, 32, 64);
  g.output("y", concat({a * c - b, a + b * c}, 2));
  const Graph compiled = transform(g, generic() | cpu({.threads = 1})).graph;
  const std::string text = sources(compiled);
  for (const char* division : {"lc_floor", " / ", " % "}) EXPECT_EQ(count(text, division), 0u) << division << text;
  const std::map<std::string, Value> in{{"x", numbers(DType::F32, {5, 4, 64}, 1)},
                                        {"c", numbers(DType::F32, {5, 32}, 2)}};
  const Bindings env{{"n", 5}};
  expect_close(interpret(g, in, env, Rounding::Wide, true), test::run_guarded(compiled, in, env, test::Against::Back),
               "C");
}

namespace {

// The same with three pieces: the conditions on both sides leave the middle one a single index. With `added`, the
// pieces are padded with zeros and added, as cotangents of slices are; this shows reads of a piece outside its range.
void three_pieces(bool added) {
  Graph g;
  const Tensor c = g.input("c", {5, 12});
  std::vector<Tensor> pieces;
  for (const char* name : {"q", "k", "v"}) {  // two heads of rotary embeddings, and one that is only permuted
    const Tensor x = g.input(name, {2, 3, 5, 24}), a = x.slice(3, 0, 12), b = x.slice(3, 12, 24);
    const Tensor turned = pieces.size() == 2 ? x : concat({a * c - b, a + b * c}, 3);
    pieces.push_back(turned.permute({0, 2, 1, 3}).reshape({2, 5, 72}));
  }
  g.output("y",
           added ? pieces[0].pad(2, 0, 144) + pieces[1].pad(2, 72, 72) + pieces[2].pad(2, 144, 0) : concat(pieces, 2));
  const Graph compiled = transform(g, generic() | cpu({.threads = 1})).graph;
  const std::string text = sources(compiled);
  for (const char* division : {"lc_floor", " / ", " % "}) EXPECT_EQ(count(text, division), 0u) << division << text;
  std::map<std::string, Value> in{{"c", numbers(DType::F32, {5, 12}, 1)}};
  for (const char* name : {"q", "k", "v"}) in[name] = numbers(DType::F32, {2, 3, 5, 24}, name[0]);
  expect_close(interpret(g, in, {}, Rounding::Wide, true), test::run_guarded(compiled, in, {}, test::Against::Back),
               "C");
}

}  // namespace

TEST(Rows, ThreePiecesSideBySideAreReadWithoutDividing) { three_pieces(false), three_pieces(true); }

// If a loop distinguishes pieces and is short, each piece gets a body of its own, which reads nothing of the others.
// Pairs of elements are such pieces, too.
TEST(Rows, PiecesSideBySideHaveBodiesOfTheirOwn) {
  for (const bool pairs : {false, true}) {
    Graph g;
    std::vector<Tensor> pieces;
    std::map<std::string, Value> in;
    for (const char* name : {"q", "k", "v"}) {
      const Tensor x = g.input(name, {2, 3, 5, 24});
      pieces.push_back(pairs ? exp2(x).reshape({2, 3, 5, 24, 1}) : x.permute({0, 2, 1, 3}).reshape({2, 5, 72}));
      in[name] = numbers(DType::F32, {2, 3, 5, 24}, name[0]);
    }
    g.output("y", concat(pieces, pairs ? 4 : 2));
    const Graph compiled = transform(g, generic() | cpu({.threads = 1})).graph;
    const std::string text = sources(compiled);
    EXPECT_EQ(count(text, "> unseen"), 0u) << text;
    expect_close(interpret(g, in, {}, Rounding::Wide, true), test::run_guarded(compiled, in, {}, test::Against::Back),
                 "C");
  }
}

namespace {

// Checks every alignment of the result, with and without non-temporal stores: the same bits, and no write outside.
void streams(const std::function<Tensor(Tensor)>& make, DType t, std::int64_t columns, const std::string& compiler,
             std::int64_t level = 1) {
  SCOPED_TRACE(str_cat(name(t), " ", columns, " ", compiler, " ", level));
  constexpr std::int64_t kRows = 5;
  Graph g;
  const Dim n = Dim::symbol("n", 1, 10'000'000 / columns);
  g.output("y", make(g.input("x", {n, columns}, t)));
  const Machine machine{.fetch_level = level, .pipeline = level == 1};
  const Graph c =
      transform(g, generic() | cpu({.threads = 1, .machine = machine, .jit = {.compiler = compiler}})).graph;
  ASSERT_EQ(c[c.roots()[0].edge.node].in.size(), 1u);  // x alone
  const auto* k = dynamic_cast<const backends::cpu::LoopKernel*>(c[c.roots()[0].edge.node].kernel.get());
  ASSERT_TRUE(k && k->source().find("lc_store(") != std::string::npos);
  ASSERT_NE(k->llvm_text().find("!nontemporal"), std::string::npos);
  const std::size_t loops = level == 1 ? 1 : count(k->source(), "LC_CARRY") - count(k->source(), "define LC_CARRY") + 1;
  EXPECT_EQ(count(k->source(), "__builtin_prefetch("), loops);
  EXPECT_EQ(count(k->llvm_text(), "call void @llvm.prefetch"), loops);
  const Value x = numbers(t, {kRows, columns}, 3);
  const std::size_t size = size_of(t), elements = x.size();
  test::Guarded in(elements * size, test::Against::Back);
  write_value(x, in.data());
  std::vector<std::int64_t> sizes;
  for (const Dim& d : k->sizes()) sizes.push_back(d.eval({{"n", kRows}}));
  const std::size_t slot = sizes.size() - 4;
  EXPECT_EQ(sizes[slot], 0);
  EXPECT_EQ(k->sizes()[slot].eval({{"n", 10'000'000 / columns}}), 1);
  const void* operands[] = {in.data()};
  std::vector<std::byte> want(elements * size);
  k->range(operands, want.data(), sizes.data(), 0, sizes[slot + 1]);
  sizes[slot] = 1;
  for (std::size_t shift = 0; shift < 64 / size; ++shift) {
    test::Guarded out((elements + shift) * size, shift % 2 ? test::Against::Front : test::Against::Back);
    std::memset(out.data(), 0x5a, shift * size);
    k->range(operands, out.data() + shift * size, sizes.data(), 0, sizes[slot + 1]);
    ASSERT_EQ(std::memcmp(out.data() + shift * size, want.data(), want.size()), 0) << shift;
    for (std::size_t b = 0; b < shift * size; ++b) ASSERT_EQ(out.data()[b], std::byte{0x5a}) << shift;
  }
}

}  // namespace

TEST(Stream, SameBitsAtEveryAlignment) {
  std::vector<std::string> compilers{""};
  if (!backends::cpu::find_llvm().path.empty()) compilers.emplace_back(backends::cpu::kLlvm);
  for (const std::string& compiler : compilers)
    for (const std::int64_t columns : {64, 100, 1031}) {
      for (const DType t : {DType::F32, DType::F64, DType::F16})
        streams([](Tensor x) { return silu(x) + 1; }, t, columns, compiler);
      for (const std::int64_t level : {1, 2}) {
        streams([](Tensor x) { return softmax(x, 1); }, DType::F32, columns, compiler, level);
        streams([](Tensor x) { return layer_norm(x, {x.extent(-1)}) * 2 + x; }, DType::F32, columns, compiler, level);
      }
    }
}

// The last reduction over a row prefetches the next row. Operands of the output loop alone are prefetched there.
TEST(Stream, TheNextRowIsFetchedByTheLastReduction) {
  Graph g;
  const Tensor x = g.input("x", {3000, 4096}), y = g.input("y", {3000, 4096});
  g.output("z", softmax(x, 1) + y);
  const std::string text =
      sources(transform(g, generic() | cpu({.threads = 1, .machine = Machine{.pipeline = false}})).graph);
  const std::size_t sum = text.find("for (; i2001_"), out = text.find("for (; i1001_");
  const std::size_t first = text.find("__builtin_prefetch("), second = text.find("__builtin_prefetch(", first + 1);
  ASSERT_LT(second, text.size());
  EXPECT_EQ(count(text, "__builtin_prefetch("), 2u) << text;
  EXPECT_TRUE(sum < first && first < out && out < second) << text;
  EXPECT_NE(text.find("__builtin_prefetch(in0 + (4096L*i1000 + i2001 + 4096L))"), std::string::npos) << text;
}

// With the second-level cache as the target, every loop over the row prefetches.
TEST(Stream, EveryLoopFetchesTheNextRowIntoTheSecondLevel) {
  Graph g;
  const Tensor x = g.input("x", {3000, 4096}), y = g.input("y", {3000, 4096});
  g.output("z", softmax(x, 1) + y);
  const Machine m{.fetch_level = 2, .pipeline = false};
  const std::string text = sources(transform(g, generic() | cpu({.threads = 1, .machine = m})).graph);
  for (const char* i : {"i2000", "i2001", "i1001"})
    EXPECT_EQ(count(text, str_cat("__builtin_prefetch(in0 + (4096L*i1000 + ", i, " + 4096L), 0, 2)")), 1u) << text;
  EXPECT_EQ(count(text, "__builtin_prefetch(in1 + (4096L*i1000 + i1001 + 1024L), 0, 2)"), 1u) << text;
  EXPECT_EQ(count(text, "__builtin_prefetch("), 4u) << text;
}

// Sums over rows are computed for many columns at a time. Every column has the bits that it has among few: threads get
// pieces of other sizes.
TEST(Rows, SumsOfManyColumns) {
  for (const std::int64_t rows : {70, 300})
    for (const std::int64_t columns : {63, 64, 100, 300, 1023, 1024, 1300}) {
      SCOPED_TRACE(str_cat(rows, " x ", columns));
      Graph g;
      const Tensor x = g.input("x", {rows, columns}), y = g.input("y", {rows, columns});
      g.output("sums", sum(x * y, 0));
      g.output("largest", amax(x, 0));
      const std::map<std::string, Value> in{{"x", numbers(DType::F32, {rows, columns}, 1)},
                                            {"y", numbers(DType::F32, {rows, columns}, 2)}};
      const Results want = interpret(g, in, {}, Rounding::Wide, true);
      const Graph tidy = transform(g, generic()).graph;
      const Graph c1 = transform(tidy, cpu({.threads = 1})).graph;
      EXPECT_EQ(count(sources(c1), columns < 1024 ? "_ += 64)" : "_ += 128)"), columns < 64 ? 0u : 2u);
      const Results one = test::run_guarded(c1, in, {}, test::Against::Front);
      expect_close(want, one, "C");
      const Graph c3 = transform(tidy, cpu({.threads = 3})).graph;
      EXPECT_TRUE(same_bits(one, test::run_guarded(c3, in, {}, test::Against::Back))) << "threads change bits";
      if (backends::cpu::find_llvm().path.empty()) continue;
      const Graph llvm = transform(tidy, cpu({.threads = 2, .jit = {.compiler = "llvm"}})).graph;
      expect_close(want, test::run_guarded(llvm, in, {}, test::Against::Back), "LLVM");
    }
}
