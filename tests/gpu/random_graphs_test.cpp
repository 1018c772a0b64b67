// Random graphs agree with the f64 reference on every GPU device. On the simulated CUDA neither the order of threads
// nor deferred work changes a bit.
//
// LIGHTCONE_RANDOM=10 runs ten times as many graphs, 0.1 a tenth, LIGHTCONE_SEED=20270131 draws other ones, and
// LIGHTCONE_CASE=17 runs one alone.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "gpu_devices.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

using namespace lc;

namespace {

std::optional<std::uint64_t> setting(const char* name) {
  const char* t = std::getenv(name);
  return t && *t ? std::optional<std::uint64_t>(std::strtoull(t, nullptr, 10)) : std::nullopt;
}
std::uint64_t seed() { return setting("LIGHTCONE_SEED").value_or(0); }

struct Case {
  std::uint64_t number;
  Graph graph;
  Bindings env;
  std::map<std::string, Value> inputs;
  Results want;
};
Case make_case(std::uint64_t number) {
  const std::uint64_t n = seed() * 100'000'000 + number;
  Case c{number, random_graph(n, {.nodes = 4 + static_cast<int>(n % 14)}), {}, {}, {}};
  c.env = random_bindings(c.graph, n);
  c.inputs = random_inputs(c.graph, c.env, n, n % 3 == 0);
  c.want = interpret(c.graph, c.inputs, c.env, Rounding::Wide, true);
  return c;
}

std::string repeat(std::uint64_t number, const std::string& device) {
  return str_cat("to repeat it: LIGHTCONE_SEED=", seed(), " LIGHTCONE_CASE=", number, " LIGHTCONE_GPU=", device,
                 " build/bin/random_graphs_test\n");
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

class RandomGraphs : public test::OnGpu {};
LIGHTCONE_ON_GPUS(RandomGraphs);

}  // namespace

TEST_P(RandomGraphs, AgreeWithTheReference) {
  constexpr std::uint64_t kFirst = 7000000, kBatch = 100;
  const char* times = std::getenv("LIGHTCONE_RANDOM");
  const double graphs = std::max(1.0, 3000 * (times ? std::strtod(times, nullptr) : 1.0));
  std::uint64_t begin = kFirst, end = kFirst + static_cast<std::uint64_t>(graphs);
  if (const auto one = setting("LIGHTCONE_CASE")) begin = *one, end = *one + 1;
  const bool fake = GetParam().name == "cuda" && !std::getenv("LIGHTCONE_CUDA_DRIVER");
  const GpuOptions options{.fallback = cpu({.threads = 1, .compiler = false})};  // for f64, which Metal lacks
  VerifyReport::Checked seen;
  int failures = 0;
  std::size_t interpreted = 0;
  for (std::uint64_t at = begin; at < end && failures < 5; at += kBatch) {
    std::vector<Case> cases;
    std::vector<Graph> tidy;
    std::vector<const Graph*> graphs;
    for (std::uint64_t i = at; i < std::min(end, at + kBatch); ++i) {
      cases.push_back(make_case(i));
      tidy.push_back(transform(cases.back().graph, generic()).graph);
    }
    for (const Graph& g : tidy) graphs.push_back(&g);
    std::vector<Graph> made;
    try {
      made = backends::gpu::compile_batch(graphs, device, options);
    } catch (const Error&) {  // compiles one by one, to find the failing one
      for (std::size_t k = 0; k < graphs.size(); ++k) try {
          made.push_back(std::move(backends::gpu::compile_batch({&graphs[k], 1}, device, options)[0]));
        } catch (const Error& e) {
          FAIL() << repeat(cases[k].number, GetParam().name) << e.what() << "\n" << cases[k].graph.str();
        }
    }
    for (std::size_t k = 0; k < cases.size() && failures < 5; ++k) {
      const Case& c = cases[k];
      std::optional<Difference> d;
      try {
        interpreted += compile(made[k]).interpreted();
        const Results got = run_values(made[k], c.inputs, c.env);
        d = compare(c.want, got, 4, &seen);
        if (fake && !d) {
          test::set_fake_cuda("order", 1), test::set_fake_cuda("deferred", 1);
          const Results reversed = run_values(made[k], c.inputs, c.env);
          test::set_fake_cuda("order", 0), test::set_fake_cuda("deferred", 0);
          if (!same_bits(got, reversed)) d.emplace().problem = "threads in reverse order give other bits";
        }
      } catch (const std::exception& e) {
        d.emplace().problem = e.what();
      }
      if (!d) continue;
      ++failures;
      ADD_FAILURE() << repeat(c.number, GetParam().name) << d->str() << "\n" << c.graph.str();
      if (setting("LIGHTCONE_CASE"))
        for (NodeId id = 0; id < made[k].size(); ++id)
          if (made[k][id].kernel) std::printf("%s\n", made[k][id].kernel->source().c_str());
    }
  }
  if (setting("LIGHTCONE_CASE")) return;
  EXPECT_EQ(interpreted, 0u) << "every operation has a kernel";
  EXPECT_GT(seen.elements, 20 * seen.undecided);
}
