// StableHLO text to a graph: programs that JAX, torchax, PyTorch/XLA or lc::export_stablehlo() wrote.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/stablehlo/module.h"

namespace lc {

struct StableHloOptions {
  std::string function = "main";
};

// A function of a module as a graph. Inputs and outputs stand in the order of the function's arguments and results.
struct StableHloProgram {
  Graph graph;
  std::vector<std::string> inputs;   // named as the arguments are: "arg0"
  std::vector<std::string> outputs;  // "out0", "out1", ...
  std::vector<std::pair<int, int>> donated = {};  // argument, and the result that may take its memory
  std::vector<std::string> checks = {};  // outputs behind the results, bool []: what the module's own checks found
};

// Error with line and column for text that cannot be read, and one that lists everything that is not supported, with
// lines, before anything is built.
StableHloProgram read_stablehlo(std::string_view text, const StableHloOptions& o = {});
StableHloProgram read_stablehlo(const hlo::Module& m, const StableHloOptions& o = {});

}  // namespace lc
