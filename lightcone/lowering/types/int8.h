// 8-bit weights as a compiler: the matrices of a model's products become integers from -127 to 127 times a scale when
// they are loaded.
//
//   compile(g, generic() | int8() | cpu());                   // a scale for each output channel
//   compile(g, generic() | int8({.group = 64}) | cuda());     // a scale for every 64 weights that are summed
//
// Parameters are given as usual (Program::load, load of a checkpoint) in f32, f16 or bf16. They are not kept unless
// another node reads them; Program::plan() lists the kept memory. An embedding that shares the matrix of a product
// reads its bytes. code = round(w / scale) with ties to even, and scale = max |w| / 127. A channel that has a weight
// that is not finite has results that are not finite.
//
// With a Calibration, activations become integers, too, and products are exact sums of bytes, which processors compute
// faster than f32:
//
//   Calibration seen(g);
//   Program p = compile(seen.graph(), generic() | cpu());
//   load(p, file);
//   Context c(p);
//   for (const auto& batch : batches) seen.add(c.set("x", batch).run());
//   compile(g, generic() | int8({.activations = seen.ranges()}) | cpu());
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lightcone/passes/compiler.h"

namespace lc {

// The range of the activations that each parameter is multiplied by: the largest absolute value for each index of the
// summed axis, keyed by the parameter's name.
using ActivationRanges = std::map<std::string, std::vector<float>, std::less<>>;

struct Int8Options {
  // 0: one f32 scale for each output channel. 32, 64 or 128: one f16 scale for this many neighbours along the summed
  // axis, stored in blocks of Q8_0.
  int group = 0;
  // Also quantises the filters of convolutions. This saves memory on GPUs; the CPU's convolutions use f32 filters.
  bool convolutions = false;
  std::set<std::string, std::less<>> leave = {};  // parameters that are not quantised
  // Products whose parameter has an entry here round their other factor as well: steps of k / 127 of the largest value
  // seen, clamped to it. NaN becomes 0.
  ActivationRanges activations = {};
};

// Returns a compiler that quantises weights. Throws Error for a graph in which no product has a parameter, for a group
// that is not one of the sizes above or does not divide an axis, and for names that are not parameters of the graph.
Compiler int8(Int8Options options = {});

// Collects the ranges of a graph's activations by running it on data.
class Calibration {
 public:
  explicit Calibration(const Graph& g);          // throws Error if no product has a parameter
  const Graph& graph() const { return graph_; }  // g with one more output for each product
  template <class Context>
  // Updates the ranges from a Context of a Program compiled from graph(), after a run.
  void add(const Context& run) {
    for (const auto& [output, parameter] : outputs_) widen(parameter, run.get(output));
  }
  // Returns the ranges. Throws Error before the first add().
  ActivationRanges ranges() const;

 private:
  void widen(const std::string& parameter, const std::vector<float>& largest);
  Graph graph_;
  std::vector<std::pair<std::string, std::string>> outputs_;
  ActivationRanges ranges_;
};

}  // namespace lc
