// Derivatives of 2,000 random graphs agree with finite differences in f64, and their compiled graphs agree with the
// reference.
//
// LIGHTCONE_SEED=20270131 draws other graphs, and LIGHTCONE_CASE=17 runs one alone.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

using namespace lc;

namespace {

std::optional<std::uint64_t> setting(const char* name) {
  const char* t = std::getenv(name);
  return t && *t ? std::optional<std::uint64_t>(std::strtoull(t, nullptr, 10)) : std::nullopt;
}
constexpr std::uint64_t kCases = 3100;  // some two thousand of them have a differentiable part

using Inputs = std::map<std::string, Value>;

// A random graph with an output "loss", and an output "slope": the derivative of the loss when every floating input x
// moves along the input "along.x".
struct Case {
  Graph graph;
  Bindings env;
  Inputs inputs;
  std::vector<std::string> moved;  // inputs that have a direction
};

// Returns the sum of all finite floating outputs, bounded so that no output dominates the others.
Tensor loss_of(const std::vector<Tensor>& outputs) {
  Tensor loss;
  for (const Tensor& y : outputs) {
    const Tensor part = sum(prim::cast(sin(y), DType::F64));
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

std::optional<Case> make_case(std::uint64_t number) {
  const std::uint64_t n = setting("LIGHTCONE_SEED").value_or(0) * 100'000'000 + number;
  Case c{random_graph(n, {.nodes = 3 + static_cast<int>(n % 8)}), {}, {}, {}};
  Graph& g = c.graph;
  std::vector<Tensor> outputs, wrt;
  for (const Root& r : g.roots())
    if (const Tensor y(g, r.edge); is_float(y.dtype()) && !is_narrow(y.dtype())) outputs.push_back(y);
  const auto live = g.live();
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[id] && g[id].op == Op::Input && is_float(g[id].dtype)) wrt.emplace_back(g, Edge{id, View(g[id].shape)});
  if (outputs.empty() || wrt.empty()) return std::nullopt;
  const Tensor loss = loss_of(outputs).retrieve("loss");
  const std::vector<Tensor> d = gradients(loss, wrt, {.allow_unused = true});
  Tensor slope;
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    const std::string name = wrt[k].node().name;
    const Tensor along = g.input("along." + name, wrt[k].shape(), wrt[k].dtype());
    const Tensor part = sum(prim::cast(d[k], DType::F64) * prim::cast(along, DType::F64));
    slope = slope.defined() ? slope + part : part;
    d[k].retrieve("d." + name);
    c.moved.push_back(name);
  }
  slope.retrieve("slope");
  c.env = random_bindings(g, n);
  c.inputs = random_inputs(g, c.env, n, false);
  return c;
}

double loss_at(const Case& c, double step) {
  Inputs at = c.inputs;
  for (const std::string& name : c.moved)
    for (std::size_t k = 0; k < at.at(name).f.size(); ++k) at.at(name).f[k] += step * c.inputs.at("along." + name).f[k];
  return interpret(c.graph, at, c.env).outputs.at("loss").f[0];
}

bool has_narrow(const Graph& g) {
  return any_node(g, [](const Node& n) { return is_narrow(n.dtype); });
}

// Returns true if integers above 10^6 are converted to floating numbers, which makes a step of 1e-6 vanish.
bool drowns_steps(const Case& c) {
  const bool converts = any_node(c.graph, [&](const Node& n) {
    return n.op == Op::Contiguous && is_float(n.dtype) && !is_float(c.graph[n.in[0].node].dtype);
  });
  return converts && std::ranges::any_of(c.inputs, [](const auto& input) {
           return std::ranges::any_of(input.second.i, [](std::int64_t v) { return v > 1'000'000 || v < -1'000'000; });
         });
}

TEST(RandomGradients, AreWhatDifferencesSay) {
  int decided = 0, tried = 0, failures = 0, no_number = 0;
  const auto only = setting("LIGHTCONE_CASE");
  for (std::uint64_t i = only.value_or(0); i < (only ? *only + 1 : kCases) && failures < 5; ++i) {
    const auto c = make_case(i);
    if (!c || has_narrow(c->graph) || drowns_steps(*c)) continue;  // narrow types change in steps
    ++tried;
    const double slope = interpret(c->graph, c->inputs, c->env).outputs.at("slope").f[0];
    // skips kinks, jumps, steep curves, and several periods of a remainder within the step
    constexpr double h = 1e-6, less = h / 3.7;
    const double low = loss_at(*c, -h), here = loss_at(*c, 0), high = loss_at(*c, h);
    const double left = (here - low) / h, right = (high - here) / h, both = (high - low) / (2 * h);
    const double nearer = (loss_at(*c, less) - loss_at(*c, -less)) / (2 * less), smooth = 1e-4 * (1 + std::abs(both));
    if (!(std::abs(left - right) < smooth) || !(std::abs(nearer - both) < smooth)) continue;
    // the square root of a negative number that where() does not choose gives 0 times NaN, as in PyTorch
    if (std::isnan(slope)) {
      ++no_number;
      continue;
    }
    ++decided;
    if (!(std::abs(slope - both) <= 2 * smooth)) {  // also true for NaN
      ++failures;
      ADD_FAILURE() << "case " << i << ": the derivative is " << slope << ", differences give " << both << " (left "
                    << left << ", right " << right << ")\n"
                    << c->graph.str();
    }
  }
  std::printf("%d of %d decided\n", decided, tried);
  if (!only) {
    EXPECT_GT(decided, tried / 2);
    EXPECT_LE(no_number, tried / 100);
  }
}

TEST(RandomGradients, CompileToTheSame) {
  constexpr std::uint64_t batch = 250;
  const auto only = setting("LIGHTCONE_CASE");
  int failures = 0;
  std::size_t compared = 0;
  for (std::uint64_t begin = only.value_or(0); begin < (only ? *only + 1 : kCases) && failures < 5; begin += batch) {
    std::vector<Case> cases;
    std::vector<std::uint64_t> numbers;
    std::vector<Graph> tidy;
    std::vector<const Graph*> graphs;
    for (std::uint64_t i = begin; i < (only ? *only + 1 : std::min(kCases, begin + batch)); ++i)
      if (auto c = make_case(i)) {
        tidy.push_back(transform(c->graph, generic()).graph);
        cases.push_back(std::move(*c)), numbers.push_back(i);
      }
    for (const Graph& g : tidy) graphs.push_back(&g);
    // one batch of four uses a C compiler; the others interpret the IR, where derivatives are new
    const std::vector<Graph> compiled = cpu_batch(graphs, {.threads = 2, .compiler = begin / batch % 4 == 0});
    for (std::size_t k = 0; k < cases.size(); ++k) {
      const Case& c = cases[k];
      const Results want = interpret(c.graph, c.inputs, c.env, Rounding::Wide, true);
      ++compared;
      if (const auto d = compare(want, run_values(compiled[k], c.inputs, c.env), 4)) {
        ++failures;
        ADD_FAILURE() << "case " << numbers[k] << ": " << d->str() << "\n" << c.graph.str();
      }
    }
  }
  if (!only) {
    EXPECT_GE(compared, 2000u);
  }
}

}  // namespace
