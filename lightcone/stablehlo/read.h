// StableHLO to a graph: programs that JAX, torchax, PyTorch/XLA or lc::export_stablehlo() wrote.
//
//   StableHloProgram s = read_stablehlo(text);
//   Program p = compile(s.graph, generic() | cpu());
//   s.load_constants(p);
//   Context c(p);
//   c.set(s.inputs[0], x).run();
//   c.get(s.outputs[0]);
//
// Functions that are called are inlined, control flow becomes part of the graph: a while loop whose number of steps can
// be told is a scan() of so many, another one a while_loop(); of an if or a case all branches are computed and one is
// taken. Integers, floats, rounding and NaN are those of the specification; sums may be taken in another order.
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
  // The arguments, from 0, that stay the same from run to run: weights. They become parameters of the graph, loaded by
  // Program::load() under their names and laid out once for the kernels that read them.
  std::vector<int> parameters = {};
  // By an argument's number its shape, where its type leaves extents open ('?'); of complex numbers without the last
  // axis that their input has.
  std::map<int, std::vector<std::int64_t>> shapes = {};
  // By an argument's number its value, where others' extents follow from it: a module may take sizes as whole numbers
  // beside its arrays. Such an argument is a number of the graph and no input of it.
  std::map<int, std::int64_t> sizes = {};
  // A while loop whose steps cannot be told beforehand ends after so many.
  std::int64_t max_steps = std::int64_t{1} << 40;
};

// A function of a module as a graph. Inputs and outputs stand in the order of the function's arguments and results.
struct StableHloProgram {
  Graph graph;
  std::vector<std::string> inputs;                // named as the arguments are: "arg0"; "" for one of the sizes
  std::vector<std::string> outputs;               // "out0", "out1", ...
  std::vector<std::pair<int, int>> donated = {};  // argument, and the result that may take its memory

  // Those that are complex, by their places: arrays of f32 or f64 with a last axis of two, real and imaginary parts,
  // which is how complex numbers lie in memory. Quantised ones are the integers that are stored.
  std::set<int> complex_inputs = {}, complex_outputs = {};

  // Arrays that the text spells out and that no expression says: parameters of the graph, to be loaded.
  struct Constant {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::shared_ptr<const std::vector<std::byte>> bytes;
    ArrayView view() const { return {dtype, shape, *bytes}; }
  };
  std::vector<Constant> constants = {};
  template <class Program>
  void load_constants(Program& p) const {
    for (const Constant& c : constants) p.load(c.name, c.view(), c.bytes);
  }

  // What a test module holds against what it expects (custom calls and operations check.*): outputs behind the others.
  struct Check {
    enum class Kind : std::uint8_t { Equal, Ulps, Tolerance };
    std::string actual, expected;  // names of outputs
    Kind kind = Kind::Equal;
    double limit = 0;  // units in the last place, or the largest difference
    int line = 0;
  };
  std::vector<Check> checks = {};
};

// Error with line and column for text that cannot be read, and one that lists everything in it that is not supported,
// with lines. Extents that the text leaves open ('?') follow from the arguments' shapes: a graph has static ones.
StableHloProgram read_stablehlo(std::string_view text, const StableHloOptions& o = {});
StableHloProgram read_stablehlo(const stablehlo::Module& m, const StableHloOptions& o = {});

}  // namespace lc
