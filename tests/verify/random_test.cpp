// Random graphs agree with the f64 reference through generic(), the interpreter of the kernel IR, the C compiler and
// LLVM, with one and two threads.
//
// Inputs lie between pages that may not be touched. LIGHTCONE_RANDOM=10 runs ten times as many graphs,
// LIGHTCONE_SEED=20270131 draws other ones, and LIGHTCONE_CASE=17 runs one alone. A failure prints the command that
// repeats it; LIGHTCONE_SEED=0, the default, always draws the same graphs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "guarded.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/composites/composites.h"
#include "lightcone/passes/composites.h"
#include "lightcone/passes/passes.h"
#include "lightcone/passes/scales.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

using namespace lc;

namespace {

std::optional<std::uint64_t> setting(const char* name) {
  const char* t = std::getenv(name);
  return t && *t ? std::optional<std::uint64_t>(std::strtoull(t, nullptr, 10)) : std::nullopt;
}
int times() { return static_cast<int>(std::max<std::uint64_t>(1, setting("LIGHTCONE_RANDOM").value_or(1))); }
std::uint64_t seed() { return setting("LIGHTCONE_SEED").value_or(0); }

// The cases [begin, end) of a test with `count` cases from `first` on: all of them, or the one that is selected.
struct Range {
  std::uint64_t begin, end;
};
Range cases_of(std::uint64_t first, int count) {
  const std::uint64_t end = first + static_cast<std::uint64_t>(count);
  const auto one = setting("LIGHTCONE_CASE");
  if (!one) return {first, end};
  return *one >= first && *one < end ? Range{*one, *one + 1} : Range{first, first};
}
bool all_cases() { return !setting("LIGHTCONE_CASE"); }
std::string repeat(std::uint64_t number) {
  return str_cat("case ", number, ", to repeat it: LIGHTCONE_SEED=", seed(), " LIGHTCONE_CASE=", number,
                 " build/bin/random_test --gtest_filter=Random.",
                 testing::UnitTest::GetInstance()->current_test_info()->name(), "\n");
}

class SaySeed : public testing::Environment {
  void SetUp() override {
    std::printf("random graphs of LIGHTCONE_SEED=%llu\n", static_cast<unsigned long long>(seed()));
  }
};
[[maybe_unused]] const auto* const kSaySeed = testing::AddGlobalTestEnvironment(new SaySeed);

struct Case {
  Graph graph;
  Bindings env;
  std::map<std::string, Value> inputs;
  Results want;
};
// Seeds do not share cases, because case numbers are far below 10^8.
std::uint64_t number_of(std::uint64_t seed, std::uint64_t number) { return seed * 100'000'000 + number; }
Case make_case(std::uint64_t number) {
  const std::uint64_t n = number_of(seed(), number);
  Case c{random_graph(n, {.nodes = 4 + static_cast<int>(n % 14)}), {}, {}, {}};
  c.env = random_bindings(c.graph, n);
  c.inputs = random_inputs(c.graph, c.env, n, n % 3 == 0);
  c.want = interpret(c.graph, c.inputs, c.env, Rounding::Wide, true);
  return c;
}

bool same_bits(const Results& a, const Results& b) {
  for (const auto side : {&Results::outputs, &Results::states})
    for (const auto& [name, v] : a.*side) {
      const Value& w = (b.*side).at(name);
      std::vector<std::byte> x(v.size() * size_of(v.dtype)), y(w.size() * size_of(w.dtype));
      write_value(v, x.data()), write_value(w, y.data());
      if (x != y) return false;
    }
  return true;
}

void compiled(const std::string& compiler, int count, std::uint64_t first, std::int64_t tile_side = 0) {
  constexpr std::uint64_t batch = 250;
  const Range all = cases_of(first, count);
  int failures = 0;
  for (std::uint64_t begin = all.begin; begin < all.end && failures < 5; begin += batch) {
    std::vector<Case> cases;
    std::vector<Graph> tidy;
    std::vector<const Graph*> graphs;
    for (std::uint64_t i = begin; i < std::min(all.end, begin + batch); ++i) {
      cases.push_back(make_case(i));
      tidy.push_back(transform(cases.back().graph, generic()).graph);
    }
    for (const Graph& g : tidy) graphs.push_back(&g);
    const std::vector<Graph> one = cpu_batch(graphs,
                                             {.threads = 1, .tile_side = tile_side, .jit = {.compiler = compiler}}),
                             two = cpu_batch(graphs,
                                             {.threads = 2, .tile_side = tile_side, .jit = {.compiler = compiler}});
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      const Results a = test::run_guarded(one[i], c.inputs, c.env, test::Against::Front),
                    b = test::run_guarded(two[i], c.inputs, c.env, test::Against::Back);
      if (const auto d = compare(c.want, a, 4)) {
        ++failures;
        ADD_FAILURE() << repeat(begin + i) << d->str() << "\n" << c.graph.str();
      }
      EXPECT_TRUE(same_bits(a, b)) << "threads change bits: " << repeat(begin + i);
    }
  }
}

}  // namespace

TEST(Random, GenericAndKernelIr) {
  const Range all = cases_of(0, 20000 * times());
  const Compiler interpreted = cpu({.threads = 1, .compiler = false, .tile_side = 3});
  VerifyReport::Checked stats;
  int failures = 0;
  for (std::uint64_t i = all.begin; i < all.end && failures < 5; ++i) {
    const Case c = make_case(i);
    for (const bool device : {false, true}) {
      std::optional<Difference> d;
      try {
        const Compiled done = transform(c.graph, device ? generic() | interpreted : generic());
        d = compare(c.want, run_values(done.graph, c.inputs, c.env), 4, &stats);
      } catch (const std::exception& e) {
        d.emplace().problem = e.what();
      }
      if (d) {
        ++failures;
        ADD_FAILURE() << repeat(i) << (device ? "kernel IR: " : "generic: ") << d->str() << "\n" << c.graph.str();
      }
    }
  }
  if (!all_cases()) return;
  EXPECT_GT(stats.elements, 50 * stats.undecided);  // 98 percent of all values, including extreme inputs
  RecordProperty("values", static_cast<int>(stats.elements / 1000));
}

// Every rule of the passes must fire. The graphs are those of seed 0 whatever LIGHTCONE_SEED is, because some rules
// fire only once in ten thousand graphs, and another seed may have none of them.
TEST(Random, EveryRuleFires) {
  if (!all_cases()) return;
  const Compiler both = generic() | cpu({.threads = 1, .compiler = false, .tile_side = 3});
  std::map<std::string, int> fired;
  for (std::uint64_t n = 0; n < 40000; ++n)
    for (const PassLog& l : transform(random_graph(n, {.nodes = 4 + static_cast<int>(n % 14)}), both).log)
      for (const auto& [rule, times] : l.fired) fired[rule] += times;
  for (const char* rule : {"matmul", "loop", "attention"}) EXPECT_GT(fired[rule], 100) << rule;
  for (const char* rule : {"weight packed", "conv", "epilogue", "products of the same rows"})
    EXPECT_GT(fired[rule], 10) << rule;
  std::set<std::string> elsewhere;  // no random graph has weights of bytes and scales: passes_test has
  for (const Rule& r : scale_rules()) elsewhere.insert(r.name);
  for (const Rule& r : generic_rules()) {
    if (elsewhere.contains(r.name)) continue;
    EXPECT_GT(fired[r.name], 0) << "the rule '" << r.name << "' never fired";
  }
}

TEST(Random, CompiledForTheCpu) { compiled("", 2000 * times(), 1000000); }

TEST(Random, TilesOfThreeForTheCpu) { compiled("", 1000 * times(), 4000000, 3); }

TEST(Random, CompiledByLlvm) {
  if (const backends::cpu::LlvmFound found = backends::cpu::find_llvm(); found.path.empty())
    GTEST_SKIP() << found.problem;
  compiled(std::string(backends::cpu::kLlvm), 600 * times(), 3000000);
  compiled(std::string(backends::cpu::kLlvm), 300 * times(), 5000000, 3);
}

// Arithmetic alone cannot select: 0 * inf is NaN. So composites' definitions are compared with the reference only if
// every intermediate value is finite.
TEST(Random, PrimitivesOnlyGiveTheSame) {
  int checked = 0, failures = 0;
  const Range all = cases_of(2000000, 2000);
  for (std::uint64_t i = all.begin; i < all.end && failures < 5; ++i) {
    Case c = make_case(i);
    c.inputs = random_inputs(c.graph, c.env, number_of(seed(), i - 2000000), false);
    // gather_mm hides the matrices that no row chose: they have to be finite, too.
    PassLog log;
    Graph everything =
        inline_composites(c.graph, log, [](const Graph&, const Node& n) { return is(n, builtin::gather_mm()); });
    for (NodeId id = 0, end = everything.size(); id < end; ++id)
      if (everything[id].op != Op::Input) everything.root(str_cat("node", id), {id, View(everything[id].shape)});
    bool finite = true;
    for (const auto& [name, v] : interpret(everything, c.inputs, c.env).outputs)
      for (std::size_t k = 0; k < v.size(); ++k) finite = finite && std::isfinite(v.at(k));
    if (!finite) continue;
    ++checked;
    c.want = interpret(c.graph, c.inputs, c.env, Rounding::Wide, true);
    // a definition rounds several times, the operation once
    const auto d = compare(c.want, run_values(transform(c.graph, primitives_only()).graph, c.inputs, c.env), 16);
    if (!d) continue;
    ++failures;
    ADD_FAILURE() << repeat(i) << d->str() << "\n" << c.graph.str();
  }
  if (all_cases()) {
    EXPECT_GT(checked, 400);
  }
}

TEST(Random, AnotherSeedIsOtherGraphs) {
  const auto text = [](std::uint64_t seed, std::uint64_t number) {
    return random_graph(number_of(seed, number)).str();
  };
  int equal = 0;
  for (std::uint64_t i = 0; i < 20; ++i) equal += text(0, i) == text(20270131, i);
  EXPECT_LT(equal, 3);
  EXPECT_EQ(text(0, 5), random_graph(5).str());  // the graphs of seed 0 are unchanged
}
