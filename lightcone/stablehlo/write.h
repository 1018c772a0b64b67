// A graph as one StableHLO module: what XLA, IREE and every PJRT plugin compile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/passes/precision.h"
#include "lightcone/stablehlo/module.h"

namespace lc {

struct StableHloExport {
  // One argument of @main for each input that something reads or writes, in the order in which they were made; then one
  // for each open size that the shape of no argument tells.
  struct Argument {
    enum class Kind : std::uint8_t { Input, Parameter, State, Size };
    std::string name;  // of the graph's input, or of the symbol
    TensorType type;   // with the sizes bound
    Kind kind = Kind::Input;
    int result = -1;  // of a state: the result that takes its memory (it is donated)
  };
  struct Result {
    std::string name;  // of the graph's output, or of the state whose next value it is
    TensorType type;
    bool state = false;
  };
  stablehlo::Module module;
  std::vector<Argument> arguments;
  std::vector<Result> results;  // outputs first, then the next values of states
  std::string text() const { return stablehlo::print(module); }
};

// What becomes of symbolic extents to which no number is given.
enum class UnboundSizes : std::uint8_t {
  Error,
  // They stay open: `?` in types, and the operations that take shapes as operands where one depends on them. A size is
  // told by the shape of an argument or, where none has it, by an argument of its own, a scalar of i64. For programs
  // that make shapes static before they compile, as XLA's refine_polymorphic_shapes does when JAX calls such a module.
  Open,
  // The same, and types say how large each extent may be, as in tensor<?x3xf32, #stablehlo.bounds<8, ?>>. For compilers
  // that reserve memory by bounds.
  Bounded,
};

// The live part of a graph, as one function @main. Symbolic extents have the values of `sizes`. `products` becomes the
// precision_config of products and convolutions: HIGHEST, HIGH or DEFAULT.
// Error, in one sentence with the operation and the user's line, for what StableHLO cannot say.
StableHloExport export_stablehlo(const Graph& g, const Bindings& sizes = {}, Precision products = Precision::Highest,
                                 UnboundSizes unbound = UnboundSizes::Error);

}  // namespace lc
