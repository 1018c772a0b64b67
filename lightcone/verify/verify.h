// verify(): does a compiler give the right answer on this graph?
//
//   const VerifyReport r = verify(g, generic() | cpu());
//   if (!r.ok()) std::cout << r.str();
//
// Every pass is checked in turn against the reference interpreter in f64. How far a right answer may be from it is
// found by sampling what rounding does on these very inputs (reference/samples.h). The first wrong pass is named, with
// the rule in it that is guilty and the smallest piece of the graph that still shows the fault.
//
// Inputs are drawn to suit the graph, or are the user's own:
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
  bool wild = true;     // every second set has NaN, infinities, zeros of both signs among what is drawn
  Bindings sizes = {};  // for symbols; others are drawn
  double slack = 4;     // how many times the error bound is allowed
  bool shrink = true;
  // By what part the factors of products may be rounded: 0x1p-8 for cpu({.precision = Precision::Medium}), 0x1p-15
  // for High.
  double products = 0;
  // Inputs by name, and from somewhere else (a checkpoint): what neither gives is drawn. Where nothing is left to draw
  // there is one trial.
  std::map<std::string, Value> values = {};
  std::function<std::optional<Value>(const Node& input, const std::vector<std::int64_t>& shape)> load = {};
};

struct Fault {
  std::string pass, rule;  // the rule, when the pass is made of rules and one is guilty
  std::string output;
  std::size_t element = 0;
  double want = 0, got = 0, allowed = 0;
  std::string problem;  // instead of numbers: a size, an exception
  std::string graph;    // the smallest graph found that shows it
};

struct VerifyReport {
  struct Checked {
    std::string pass;
    std::map<std::string, int> fired;
    std::size_t results = 0;    // outputs and states compared, in shape and type at least
    std::size_t elements = 0;   // decided: what is allowed is small beside the value
    std::size_t undecided = 0;  // a comparison or a rounding sat on an edge, or rounding leaves nothing of the value
    double worst = 0;           // error as a part of what is allowed
    // The same with NaN, infinities and zeros among the inputs, which decide less.
    std::size_t wild_elements = 0, wild_undecided = 0;
    double decided() const;  // the part of all values, without the wild ones
  };
  std::vector<Checked> passes;
  std::optional<Fault> fault;
  // No fault was found, and something was compared: where every value was undecided, nothing is known. (A
  // result without elements is compared by its shape.)
  bool ok() const { return !fault && compared(); }
  bool compared() const;
  double decided() const;  // the part of the values that was, after the pass where it is least
  std::string str() const;
};

VerifyReport verify(const Graph& g, const Compiler& c, const VerifyOptions& o = {});

// Runs a graph (compiled or not) on values; what verify() and the tests of devices use.
Results run_values(const Graph& g, const std::map<std::string, Value>& inputs, const Bindings& env);
// Every output and state of a context that has run.
Results results(const Program& p, const Context& c);

// Compares with the reference: `want` carries its error bounds. Says what differs, or nothing.
struct Difference {
  std::string output;
  std::size_t element = 0;
  double want = 0, got = 0, allowed = 0;
  std::string problem;
  std::string str() const;
};
std::optional<Difference> compare(const Results& want, const Results& got, double slack,
                                  VerifyReport::Checked* stats = nullptr, double products = 0);

}  // namespace lc
#include "lightcone/macros_on.h"
