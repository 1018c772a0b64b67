// verify(): does a compiler give the right answer on this graph?
//
//   const VerifyReport r = verify(g, generic() | cpu());
//   if (!r.ok()) std::cout << r.str();
//
// Every pass is checked in turn against the reference interpreter in f64, with error bounds that
// follow the rounding of each operation. The first wrong pass is named, with the rule in it that is
// guilty and the smallest piece of the graph that still shows the fault.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/reference/interpreter.h"
#include "lightcone/runtime/compiler.h"

namespace lc {

class Program;
class Context;

struct VerifyOptions {
  int trials = 3;  // sets of random inputs
  std::uint64_t seed = 1;
  bool wild = true;     // NaN, infinities, zeros of both signs among them
  Bindings sizes = {};  // for symbols; others are drawn
  double slack = 4;     // how many times the error bound is allowed
  bool shrink = true;
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
    std::size_t elements = 0;   // compared
    std::size_t undecided = 0;  // not compared: a comparison or a rounding sat on an edge
    double worst = 0;           // error as a part of what is allowed
  };
  std::vector<Checked> passes;
  std::optional<Fault> fault;
  // No fault was found, and something was compared: where every value was undecided, nothing is known. (A
  // result without elements is compared by its shape.)
  bool ok() const { return !fault && compared(); }
  bool compared() const;
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
                                  VerifyReport::Checked* stats = nullptr);

}  // namespace lc
