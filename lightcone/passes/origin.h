// Origin: the source operations of a kernel, for profiles, graph views and messages.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

// The operations that a kernel computes, in order, each with the user's line.
struct Origin {
  struct Step {
    std::string_view op;  // a name from the table in core/op.h
    Location where;
    // Operand shapes of a product if the result's shape does not imply them: "[64, 784] x [784, 128]".
    std::string shapes = {};
  };
  std::string pass;
  std::vector<Step> steps;
  std::string kind = {};  // a name for the whole, if no step has it: "attention"
};

// Lists the operations between a kernel's operands and its result. `shapes` holds the text for some nodes.
std::vector<Origin::Step> steps(const Graph& g, NodeId result, const std::vector<NodeId>& operands,
                                const std::map<NodeId, std::string>& shapes = {});

// Returns PyTorch's name of the operation that the user called: "linear", "add".
std::string_view call_name(const Origin::Step& s);
// True for calls that span a whole model (backward, an optimiser's step) and so do not identify a kernel.
bool spans_model(std::string_view call);
// Describes a kernel in terms of the user's program: "linear [64, 784] x [784, 128], relu". Every user-visible kernel
// name comes from this function.
std::string describe(const Origin& o);

}  // namespace lc
