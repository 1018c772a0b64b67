// A graph that is written as StableHLO and read back computes the same, with open sizes too.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "graphs.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/passes/passes.h"
#include "lightcone/passes/symbols.h"
#include "lightcone/runtime/program.h"
#include "lightcone/stablehlo/read.h"
#include "lightcone/stablehlo/write.h"
#include "lightcone/verify/random_graph.h"
#include "static_main.h"

using namespace lc;

namespace {

constexpr double kSlack = 4;  // as in verify()

void set(Context& c, const std::string& name, const Value& v) {
  std::vector<std::byte> bytes(v.size() * size_of(v.dtype));
  write_value(v, bytes.data());
  c.set_bytes(name, bytes.data(), bytes.size());
}

// Counts of compared values, which must be within the reference's error bounds.
struct Decided {
  std::size_t values = 0, all = 0;
} decided;

void expect_close(const Value& got, const Value& want, const std::string& what) {
  ASSERT_EQ(got.shape, want.shape) << what;
  ASSERT_EQ(got.dtype, want.dtype) << what;
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double x = got.at(k), y = want.at(k), room = kSlack * want.error_at(k);
    ++decided.all;
    if (std::isinf(room)) continue;
    ++decided.values;
    const bool both_nan = std::isnan(x) && std::isnan(y);
    const double tiny = is_float(want.dtype) ? std::abs(y) * 1e-6 + 1e-38 : 0;
    ASSERT_TRUE(both_nan || x == y || std::abs(x - y) <= room + tiny)
        << what << ": element " << k << " is " << x << ", not " << y << " within " << room;
  }
}

void expect_same(const std::string& name, const Graph& g, const Bindings& sizes, const StableHloExport& e,
                 const std::map<std::string, Value>& inputs, const Compiler& compiler) {
  const Results want = interpret(g, inputs, sizes, Rounding::Wide, true);
  const StableHloProgram s = read_stablehlo(e.text(), test::bound(e, sizes));
  ASSERT_EQ(s.inputs.size(), e.arguments.size()) << name;
  ASSERT_EQ(s.outputs.size(), e.results.size()) << name;
  Program p = compile(s.graph, compiler);
  s.load_constants(p);
  Context c(p);
  for (std::size_t k = 0; k < s.inputs.size(); ++k)
    if (!s.inputs[k].empty()) set(c, s.inputs[k], inputs.at(e.arguments[k].name));
  c.run();
  for (std::size_t k = 0; k < s.outputs.size(); ++k) {
    const auto& r = e.results[k];
    expect_close(c.value(s.outputs[k]), (r.state ? want.states : want.outputs).at(r.name), str_cat(name, ", ", r.name));
  }
}

TEST(RoundTrip, OfNetworks) {
  for (const test::Named& n : test::named_graphs())
    expect_same(n.name, n.graph, n.sizes, export_stablehlo(n.graph, n.sizes),
                fitting_inputs(n.graph, n.sizes, 1, false), generic() | cpu({.threads = 1}));
}

TEST(RoundTrip, OfNetworksWithOpenSizes) {
  int open = 0;
  for (const test::Named& n : test::named_graphs()) {
    if (n.sizes.empty()) continue;
    const StableHloExport e = export_stablehlo(n.graph, {}, Precision::Highest, UnboundSizes::Open);
    expect_same(n.name, n.graph, n.sizes, e, fitting_inputs(n.graph, n.sizes, 1, false),
                generic() | cpu({.threads = 1}));
    ++open;
  }
  EXPECT_GE(open, 12);
}

TEST(RoundTrip, OfRandomGraphs) {
  const char* given = std::getenv("LIGHTCONE_SEED");
  const std::uint64_t first = given ? std::strtoull(given, nullptr, 10) * 1000 : 0;
  for (std::uint64_t k = first; k < first + 300 && !HasFailure(); ++k) {
    const Graph g = random_graph(k, {.nodes = 4 + static_cast<int>(k % 14)});
    const Bindings sizes = random_bindings(g, k);
    expect_same(str_cat("random graph ", k), g, sizes, export_stablehlo(g, sizes),
                random_inputs(g, sizes, k, k % 3 == 0), generic() | cpu({.threads = 1, .compiler = false}));
  }
  // undecided values test nothing, so most values must be decided
  EXPECT_GT(decided.values, decided.all * 6 / 10) << decided.values << " of " << decided.all;
  std::printf("%zu of %zu values were decided\n", decided.values, decided.all);
}

// One module is run with several bindings of its sizes.
TEST(RoundTrip, OfRandomGraphsWithOpenSizes) {
  const char* given = std::getenv("LIGHTCONE_SEED");
  const std::uint64_t first = given ? std::strtoull(given, nullptr, 10) * 1000 : 0;
  int open = 0;
  for (std::uint64_t k = first; k < first + 600 && !HasFailure(); ++k) {
    const Graph g = random_graph(k, {.nodes = 8 + static_cast<int>(k % 14)});
    if (symbols_of(g).empty()) continue;
    ++open;
    const StableHloExport e = export_stablehlo(g, {}, Precision::Highest, UnboundSizes::Open);
    for (const std::uint64_t b : {k, k + 1}) {
      const Bindings sizes = random_bindings(g, b);
      expect_same(str_cat("random graph ", k), g, sizes, e, random_inputs(g, sizes, b, false),
                  generic() | cpu({.threads = 1, .compiler = false}));
    }
  }
  EXPECT_GT(open, 100);
}

}  // namespace
