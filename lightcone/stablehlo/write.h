// Writes a graph as a StableHLO module, which XLA, IREE and every PJRT plugin compile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/passes/precision.h"
#include "lightcone/stablehlo/module.h"

namespace lc {

struct StableHloExport {
  // One argument of @main for each input that is read or is a state, in the order of their creation, then one for each
  // open size that no argument's shape determines.
  struct Argument {
    enum class Kind : std::uint8_t { Input, Parameter, State, Size };
    std::string name;  // name of the graph's input, or of the symbol
    TensorType type;   // type with the sizes bound
    Kind kind = Kind::Input;
    int result = -1;  // for a state: index of the result that may reuse its memory (it is donated)
  };
  struct Result {
    std::string name;  // name of the graph's output, or of the state for which it is the next value
    TensorType type;
    bool state = false;
  };
  stablehlo::Module module;
  std::vector<Argument> arguments;
  std::vector<Result> results;  // outputs first, then next values of states
  std::string text() const { return stablehlo::print(module); }
};

// The treatment of symbolic extents without a value.
enum class UnboundSizes : std::uint8_t {
  Error,
  // They stay open: `?` in types, with operations that take shapes as operands where a shape depends on them. A size is
  // taken from the shape of an argument or, if none has it, from an additional argument, a scalar of i64. This is for
  // programs that make shapes static before they compile, like XLA's refine_polymorphic_shapes when JAX calls such a
  // module.
  Open,
  // As Open, and types have the upper bound of each extent: tensor<?x3xf32, #stablehlo.bounds<8, ?>>. This is for
  // compilers that reserve memory by bounds.
  Bounded,
};

// Writes the live part of a graph as one function @main. Symbolic extents have the values of `sizes`. `products`
// becomes the precision_config of products and convolutions: HIGHEST, HIGH or DEFAULT. Throws Error, with the operation
// and the user's line, for what StableHLO cannot express.
StableHloExport export_stablehlo(const Graph& g, const Bindings& sizes = {}, Precision products = Precision::Highest,
                                 UnboundSizes unbound = UnboundSizes::Error);

}  // namespace lc
