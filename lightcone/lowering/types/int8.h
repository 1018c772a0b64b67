// Weights in eight bits, as a compiler: the matrices of a model's products become whole numbers from -127 to 127 times
// a scale, when they are loaded.
//
//   compile(g, generic() | int8() | cpu());                   // a scale for each output channel
//   compile(g, generic() | int8({.group = 64}) | cuda());     // a scale for every 64 weights that are summed
//
// Parameters are given as before (Program::load, load of a checkpoint), in f32, f16 or bf16, and are not kept where
// nothing else reads them: Program::plan() says what is. An embedding that is a product's matrix as well reads its
// bytes. code = round(w / scale), ties to even, scale = the largest |w| / 127; the results of a channel with a weight
// that is not finite are not, either.
//
// With a Calibration activations are whole numbers, too, and products exact sums of bytes, which processors multiply
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

// How large the factors became that a parameter is multiplied by: by its name, for each place of the axis that is
// summed, the largest absolute value.
using ActivationRanges = std::map<std::string, std::vector<float>, std::less<>>;

struct Int8Options {
  // 0: one scale in f32 for each output channel. 32, 64 or 128: one in f16 for so many neighbours along the axis that
  // is summed, in blocks of Q8_0.
  int group = 0;
  // Filters of convolutions, too. It saves memory on GPUs; the CPU's convolutions want them in f32.
  bool convolutions = false;
  std::set<std::string, std::less<>> leave = {};  // parameters that stay as they are
  // Products whose parameter is named here round their other factor as well, to the largest value seen times k / 127,
  // and cut it off there; a NaN becomes 0.
  ActivationRanges activations = {};
};

// Error for a graph in which no product has a parameter, for a group that is none of those above or does not divide an
// axis, and for ranges or names of parameters that the graph has not.
Compiler int8(Int8Options options = {});

// The ranges of a graph's activations, found by running it on data.
class Calibration {
 public:
  explicit Calibration(const Graph& g);          // Error when no product has a parameter
  const Graph& graph() const { return graph_; }  // g, with an output more for each product
  template <class Context>
  void add(const Context& run) {  // one that has run
    for (const auto& [output, parameter] : outputs_) widen(parameter, run.get(output));
  }
  // Error before add().
  ActivationRanges ranges() const;

 private:
  void widen(const std::string& parameter, const std::vector<float>& largest);
  Graph graph_;
  std::vector<std::pair<std::string, std::string>> outputs_;
  ActivationRanges ranges_;
};

}  // namespace lc
