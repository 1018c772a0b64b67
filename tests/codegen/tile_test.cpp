// Transposed operands are read tile by tile (codegen/schedule/tile.cpp) with the right bits at every edge of a tile.
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

constexpr DType kTypes[] = {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64,
                            DType::I8,  DType::U8,  DType::U16, DType::U64,  DType::Bool};

Value numbers(DType t, std::vector<std::int64_t> shape, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> d(0, 30);
  Value v = make_value(t, std::move(shape));
  for (std::size_t k = 0; k < v.size(); ++k) {
    std::uint64_t raw = 0;
    store_f64(&raw, t, 0,
              t == DType::U8     ? std::abs(d(rng))
              : t == DType::Bool ? static_cast<double>(rng() % 2)
                                 : d(rng));
    if (is_float(t)) v.f[k] = load_f64(&raw, t, 0);
    else v.i[k] = load_i64(&raw, t, 0);
  }
  return v;
}

std::vector<const backends::cpu::LoopKernel*> loops(const Graph& g) {
  std::vector<const backends::cpu::LoopKernel*> all;
  for (NodeId id = 0; id < g.size(); ++id)
    if (const auto* k = dynamic_cast<const backends::cpu::LoopKernel*>(g[id].kernel.get())) all.push_back(k);
  return all;
}
std::size_t tiles(const Graph& g) {
  std::size_t n = 0;
  for (const backends::cpu::LoopKernel* k : loops(g)) {
    const std::string text = k->source();
    for (std::size_t at = text.find("lc_transpose_"); at != std::string::npos; at = text.find("lc_transpose_", at + 1))
      ++n;
  }
  return n;
}

// Compares the graph by the C compiler (one and two threads), by LLVM and by the interpreter of the IR with the
// reference interpreter. `wanted` operands must be read by tiles.
struct Trial {
  Graph graph;
  std::vector<std::pair<std::string, Graph>> ways;
  Trial(std::int64_t side, std::size_t wanted, const std::function<Tensor(Graph&)>& make) {
    graph.output("y", make(graph));
    const Graph tidy = transform(graph, generic()).graph;
    const auto way = [&](const char* name, CpuOptions o) {
      o.tile_side = side;
      o.machine = Machine{};  // has a second-level cache of 1 MB; operands that fit it are not tiled
      ways.emplace_back(name, transform(tidy, cpu(o)).graph);
      EXPECT_EQ(tiles(ways.back().second), wanted) << name;
    };
    way("C", {.threads = 1});
    way("C, two threads", {.threads = 2});
    way("IR", {.threads = 2, .compiler = false});
    if (!backends::cpu::find_llvm().path.empty()) way("LLVM", {.threads = 2, .jit = {.compiler = "llvm"}});
  }
  void agree(const Bindings& env) const {
    std::map<std::string, Value> in;
    for (NodeId id = 0; id < graph.size(); ++id)
      if (graph[id].op == Op::Input) {
        std::vector<std::int64_t> shape;
        for (const Dim& d : graph[id].shape) shape.push_back(d.eval(env));
        in[graph[id].name] = numbers(graph[id].dtype, shape, static_cast<unsigned>(id));
      }
    const Value want = interpret(graph, in, env, Rounding::Wide, true).outputs.at("y");
    for (const auto& [name, g] : ways)
      for (const test::Against side : {test::Against::Front, test::Against::Back}) {
        const Value got = test::run_guarded(g, in, env, side).outputs.at("y");
        for (std::size_t k = 0; k < want.size(); ++k)
          if (is_float(want.dtype)) ASSERT_LE(std::abs(got.f[k] - want.f[k]), want.error_at(k) * 4) << name << " " << k;
          else ASSERT_EQ(got.i[k], want.i[k]) << name << " " << k;
      }
  }
};

Tensor copy(Tensor t) { return prim::contiguous(std::move(t)); }
Tensor turned(const Tensor& t) { return t.transpose(0, 1); }

}  // namespace

TEST(Tile, EveryEdgeOfATransposeOfEveryType) {
  const Dim n = Dim::symbol("n", 1, 200), m = Dim::symbol("m", 1, 2000);
  for (const DType t : kTypes)
    for (const std::int64_t side : {3, 16, 0}) {
      SCOPED_TRACE(str_cat(name(t), " ", side));
      const Trial trial(side, 1, [&](Graph& g) { return copy(g.input("x", {n, m}, t).transpose(0, 1)); });
      for (const std::int64_t a : {1, 2, 3, 4, 15, 17, 33, 150})
        for (const std::int64_t b : {1, 2, 7, 16, 31, 129}) trial.agree({{"n", a}, {"m", b}});
    }
}

TEST(Tile, NestsOfSeveralLoops) {
  for (const std::int64_t side : {2, 5, 16}) {
    SCOPED_TRACE(side);
    const auto x = [](Graph& g) { return g.input("x", {10, 11, 33}); };
    Trial(side, 1, [&](Graph& g) { return copy(x(g).permute({2, 1, 0})); }).agree({});
    Trial(side, 1, [&](Graph& g) { return copy(x(g).permute({2, 0, 1})); }).agree({});
    Trial(side, 1, [&](Graph& g) { return copy(x(g).permute({0, 2, 1})); }).agree({});
    Trial(side, 1, [&](Graph& g) { return copy(x(g).permute({1, 2, 0})); }).agree({});
    const Dim b = Dim::symbol("b", 1, 9);
    const Trial last(side, 1, [&](Graph& g) { return copy(g.input("x", {b, 20, 9, 8}).permute({0, 2, 3, 1})); });
    const Trial first(side, 1, [&](Graph& g) { return copy(g.input("x", {b, 9, 8, 20}).permute({0, 3, 1, 2})); });
    for (const std::int64_t n : {1, 2, 9}) last.agree({{"b", n}}), first.agree({{"b", n}});
  }
}

TEST(Tile, OtherOperandsAndArithmetic) {
  const Dim n = Dim::symbol("n", 1, 200);
  const auto in = [](Graph& g, const char* name, Shape s, DType t = DType::F32) {
    return g.input(name, std::move(s), t);
  };
  for (const std::int64_t side : {4, 7}) {
    SCOPED_TRACE(side);
    const Trial all[] = {
        {side, 1,
         [&](Graph& g) {
           return in(g, "a", {n, 40}) + turned(in(g, "b", {40, n}));
         }},
        {side, 1,
         [&](Graph& g) {
           const Tensor a = in(g, "a", {n, n});
           return a + turned(a);
         }},
        {side, 2,
         [&](Graph& g) {
           return turned(in(g, "a", {40, n}, DType::F16)) * prim::cast(turned(in(g, "b", {40, n})), DType::F16);
         }},
        {side, 1,
         [&](Graph& g) {
           return gelu(turned(in(g, "a", {40, n}))) * in(g, "row", {40}) + exp(in(g, "column", {n, 1}) * 0.01);
         }},
        // an axis between the two tiled loops, and an operand indexed by the outermost loop alone
        {side, 1,
         [&](Graph& g) {
           return in(g, "a", {12, 5, n}).permute({2, 1, 0}) * in(g, "m", {5, 1}) + in(g, "c", {n, 1, 1});
         }},
        {side, 1,
         [&](Graph& g) {
           return turned(in(g, "a", {n, 30})).slice(0, 3, 25) * 2;
         }},
    };
    for (const std::int64_t v : {1, 4, 17, 130})
      for (const Trial& t : all) t.agree({{"n", v}});
  }
}

TEST(Tile, SidesOfItsOwnChoice) {
  const auto one = [](Shape s, std::vector<int> order, DType t = DType::F32) {
    Trial(0, 1, [&](Graph& g) { return copy(g.input("x", s, t).permute(order)); }).agree({});
  };
  one({300, 260}, {1, 0});
  one({300, 260}, {1, 0}, DType::F64);
  one({1500, 140}, {1, 0}, DType::U8);
  one({128, 128}, {1, 0});
  one({3, 64, 20, 20}, {0, 2, 3, 1});
  one({2, 30, 20, 70}, {0, 3, 1, 2});
  one({40, 70, 50}, {2, 1, 0});
  one({140, 3, 150}, {2, 1, 0});
  one({9000, 16}, {1, 0});
}

// Operands in order, operands read once per row, short loops and reductions are not tiled.
TEST(Tile, OnlyWhatLiesAcross) {
  const auto none = [](const std::function<Tensor(Graph&)>& make) { Trial(0, 0, make).agree({}); };
  none([](Graph& g) { return copy(g.input("x", {3, 20, 10, 16}).permute({0, 2, 1, 3})); });
  none([](Graph& g) { return g.input("x", {40, 50}) + g.input("y", {40, 1}); });
  none([](Graph& g) { return copy(turned(g.input("x", {50'000, 3}))); });
  none([](Graph& g) { return copy(turned(g.input("x", {180, 190}))); });
  none([](Graph& g) { return copy(turned(g.input("x", {16, 50'000}))); });
  none([](Graph& g) { return sum(turned(g.input("x", {40, 50})), {1}); });
}

// Any range of the outermost loop at any alignment of the result, with and without non-temporal stores: the same bits,
// and no write outside.
TEST(Tile, SameBitsAtEveryAlignmentAndRange) {
  std::vector<std::string> compilers{""};
  if (!backends::cpu::find_llvm().path.empty()) compilers.emplace_back(backends::cpu::kLlvm);
  for (const std::string& compiler : compilers)
    for (const DType t : {DType::F32, DType::F64, DType::F16})
      for (const std::int64_t side : {0, 40}) {
        SCOPED_TRACE(str_cat(name(t), " ", side, " ", compiler));
        const Dim n = Dim::symbol("n", 1, 100'000);
        Graph g;
        g.output("y", turned(g.input("x", {100, n}, t)) + g.input("z", {n, 100}, t));
        const Graph c =
            transform(g, generic() | cpu({.threads = 1, .tile_side = side, .jit = {.compiler = compiler}})).graph;
        ASSERT_EQ(loops(c).size(), 1u);
        const backends::cpu::LoopKernel* k = loops(c)[0];
        ASSERT_NE(k->source().find(", t, sizeof t, stream)"), std::string::npos);
        ASSERT_NE(k->source().find("__builtin_prefetch(in"), std::string::npos);
        ASSERT_NE(k->llvm_text().find("!nontemporal"), std::string::npos);
        constexpr std::int64_t kRows = 150;
        const std::size_t size = size_of(t), elements = kRows * 100;
        test::Guarded x(elements * size, test::Against::Back), z(elements * size, test::Against::Back);
        write_value(numbers(t, {100, kRows}, 1), x.data());
        write_value(numbers(t, {kRows, 100}, 2), z.data());
        std::vector<std::int64_t> sizes;
        for (const Dim& d : k->sizes()) sizes.push_back(d.eval({{"n", kRows}}));
        const std::size_t slot = sizes.size() - 4;
        const std::int64_t extent = sizes[slot + 1];
        std::vector<const void*> operands{x.data(), z.data()};
        if (g[c[c.roots()[0].edge.node].in[0].node].name == "z") std::swap(operands[0], operands[1]);
        std::vector<std::byte> want(elements * size);
        sizes[slot] = 0;
        k->range(operands.data(), want.data(), sizes.data(), 0, extent);
        sizes[slot] = 1;
        for (std::size_t shift = 0; shift < 64 / size; ++shift) {
          test::Guarded out((elements + shift) * size, shift % 2 ? test::Against::Front : test::Against::Back);
          std::memset(out.data(), 0x5a, shift * size);
          const std::int64_t cut = static_cast<std::int64_t>(shift) * 9 % extent;
          k->range(operands.data(), out.data() + shift * size, sizes.data(), cut, extent);
          k->range(operands.data(), out.data() + shift * size, sizes.data(), 0, cut);
          ASSERT_EQ(std::memcmp(out.data() + shift * size, want.data(), want.size()), 0) << shift;
          for (std::size_t b = 0; b < shift * size; ++b) ASSERT_EQ(out.data()[b], std::byte{0x5a}) << shift;
        }
      }
}
