// Reads StableHLO as a graph: programs written by JAX, torchax, PyTorch/XLA or lc::export_stablehlo().
//
//   StableHloProgram s = read_stablehlo(text);
//   Program p = compile(s.graph, generic() | cpu());
//   s.load_constants(p);
//   Context c(p);
//   c.set(s.inputs[0], x).run();
//   c.get(s.outputs[0]);
//
// Called functions are inlined, and control flow becomes part of the graph: a while loop with a known number of steps
// is a scan() of that length, another one a while_loop(). All branches of an if or a case are computed, and one is
// selected. Integers, floats, rounding and NaN follow the specification; sums may be evaluated in another order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/core/graph.h"
#include "lightcone/stablehlo/module.h"

namespace lc {

struct StableHloOptions {
  std::string function = "main";
  // Indices of the arguments that stay the same from run to run (weights), from 0. They become parameters of the graph:
  // load them with Program::load() under their names; kernels can repack them once.
  std::vector<int> parameters = {};
  // Shapes of arguments, by index, for argument types with unknown extents ('?'). Complex numbers are given without the
  // last axis of their input.
  std::map<int, std::vector<std::int64_t>> shapes = {};
  // Values of arguments, by index, on which other extents depend: a module may take sizes as integers next to its
  // arrays. Such an argument becomes a constant of the graph and is no input.
  std::map<int, std::int64_t> sizes = {};
  // The length of a while loop with an unknown number of steps.
  std::int64_t max_steps = std::int64_t{1} << 40;
};

// A function of a module as a graph. Inputs and outputs are in the order of the function's arguments and results.
struct StableHloProgram {
  Graph graph;
  std::vector<std::string> inputs;                // names of the arguments, such as "arg0"; "" for one given in `sizes`
  std::vector<std::string> outputs;               // "out0", "out1", ...
  std::vector<std::pair<int, int>> donated = {};  // an argument, and the result that may reuse its memory

  // Indices of complex inputs and outputs. They are arrays of f32 or f64 with a last axis of two, real and imaginary
  // parts, which is the layout of complex numbers in memory. Quantised inputs and outputs are the stored integers.
  std::set<int> complex_inputs = {}, complex_outputs = {};

  // Arrays of the text that no expression represents. They are parameters of the graph and have to be loaded.
  struct Constant {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::shared_ptr<const std::vector<std::byte>> bytes;
    ArrayView view() const { return {dtype, shape, *bytes}; }
  };
  std::vector<Constant> constants = {};
  // Loads all constants into a compiled program.
  template <class Program>
  void load_constants(Program& p) const {
    for (const Constant& c : constants) p.load(c.name, c.view(), c.bytes);
  }

  // Comparisons of a test module (custom calls and operations check.*). The compared values are extra outputs at the
  // end.
  struct Check {
    enum class Kind : std::uint8_t { Equal, Ulps, Tolerance };
    std::string actual, expected;  // names of outputs
    Kind kind = Kind::Equal;
    double limit = 0;  // units in the last place, or the largest difference
    int line = 0;
  };
  std::vector<Check> checks = {};
};

// Reads a module. Throws Error with line and column for text that cannot be read, and an Error that lists everything
// unsupported, with lines. Unknown extents ('?') follow from the arguments' shapes: the graph has static shapes.
StableHloProgram read_stablehlo(std::string_view text, const StableHloOptions& o = {});
StableHloProgram read_stablehlo(const stablehlo::Module& m, const StableHloOptions& o = {});

// Returns every sentence on what of a module is not supported, with lines, all at once: what the Error of
// read_stablehlo() lists in part. Empty for a module that is read with these options. Throws Error for what keeps it
// from being examined at all: a function that it does not have, an argument whose extents are not given.
std::vector<std::string> survey_stablehlo(const stablehlo::Module& m, const StableHloOptions& o = {});

}  // namespace lc
