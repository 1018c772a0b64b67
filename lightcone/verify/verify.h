// verify(): checks that a compiler computes the right results for a graph.
//
//   const VerifyReport r = verify(g, generic() | cpu());
//   if (!r.ok()) std::cout << r.str();
//
// Each pass is checked in turn against the reference interpreter in f64. The tolerance is found by sampling the effects
// of rounding on the same inputs (reference/samples.h). The report names the first wrong pass, the guilty rule in it,
// and the smallest subgraph that still shows the fault.
//
// Inputs are drawn to suit the graph, or given by the user:
//
//   verify(g, mine, {.values = {{"x", x}}, .load = [&](const Node& input, auto& shape) { ... }});
#pragma once

#include "lightcone/macros_off.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/passes/compiler.h"
#include "lightcone/reference/interpreter.h"

namespace lc {

class Program;
class Context;

struct VerifyOptions {
  int trials = 3;  // sets of random inputs
  std::uint64_t seed = 1;
  bool wild = true;     // draw NaN, infinities and zeros of both signs in every second trial
  Bindings sizes = {};  // values of symbols; the others are drawn
  double slack = 4;     // tolerance as a multiple of the error bound
  bool shrink = true;
  // Relative rounding allowed for the factors of products: 0x1p-8 for cpu({.precision = Precision::Medium}), 0x1p-15
  // for High.
  double products = 0;
  // Inputs by name, and from a callback (a checkpoint); the remaining ones are drawn. If nothing is drawn there is one
  // trial.
  std::map<std::string, Value> values = {};
  std::function<std::optional<Value>(const Node& input, const std::vector<std::int64_t>& shape)> load = {};
};

struct Fault {
  std::string pass, rule;  // the rule if one rule of the pass is guilty
  std::string output;
  std::size_t element = 0;
  double want = 0, got = 0, allowed = 0;
  std::string problem;  // instead of numbers: a size, an exception
  std::string graph;    // the smallest graph found that shows the fault
};

struct VerifyReport {
  struct Checked {
    std::string pass;
    std::map<std::string, int> fired;
    std::size_t results = 0;   // outputs and states compared, at least in shape and type
    std::size_t elements = 0;  // decided: the tolerance is small relative to the value
    // Undecided: a comparison or a rounding is on an edge, or the tolerance exceeds the value.
    std::size_t undecided = 0;
    double worst = 0;  // largest error / tolerance
    // The same counts for trials with NaN, infinities and zeros, which decide less.
    std::size_t wild_elements = 0, wild_undecided = 0;
    double decided() const;  // decided / (decided + undecided), without the wild trials
  };
  std::vector<Checked> passes;
  std::optional<Fault> fault;
  // True if no fault was found and something was compared. If every value was undecided, nothing was. (A result without
  // elements is compared by shape.)
  bool ok() const { return !fault && compared(); }
  bool compared() const;
  double decided() const;  // the fraction decided after the pass where it is lowest
  std::string str() const;
};

// Compiles `g` with `c` and compares the result of each pass with the reference.
VerifyReport verify(const Graph& g, const Compiler& c, const VerifyOptions& o = {});

// Runs a graph, compiled or not, on values. verify() and the tests of devices use it.
Results run_values(const Graph& g, const std::map<std::string, Value>& inputs, const Bindings& env);
// Returns every output and state of a context that has run.
Results results(const Program& p, const Context& c);

// A difference from the reference.
struct Difference {
  std::string output;
  std::size_t element = 0;
  double want = 0, got = 0, allowed = 0;
  std::string problem;
  std::string str() const;
};
// Compares `got` with `want`, which carries error bounds. Returns the first difference, or nullopt.
std::optional<Difference> compare(const Results& want, const Results& got, double slack,
                                  VerifyReport::Checked* stats = nullptr, double products = 0);

}  // namespace lc
#include "lightcone/macros_on.h"
