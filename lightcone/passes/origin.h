// What a kernel was made from, for profiles, pictures and messages.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

// The operations it computes, in order, each with the user's line.
struct Origin {
  struct Step {
    std::string_view op;  // of the table in core/op.h
    Location where;
    std::string shapes = {};  // of what it multiplies, where the result's alone does not say: "[64, 784] x [784, 128]"
  };
  std::string pass;
  std::vector<Step> steps;
  std::string kind = {};  // where the whole has a name that no step has: "attention"
};

// The operations between a kernel's operands and its result. `shapes`: those of some of them.
std::vector<Origin::Step> steps(const Graph& g, NodeId result, const std::vector<NodeId>& operands,
                                const std::map<NodeId, std::string>& shapes = {});

// What the user called there, by PyTorch's name: "linear", "add".
std::string_view call_name(const Origin::Step& s);
// Does a call by itself say little, because it goes through a whole model: backward, an optimiser's step?
bool spans_model(std::string_view call);
// What a kernel computes, in the words of the user's program: "linear [64, 784] x [784, 128], relu". A device names
// kernels by this and nothing else wherever a person reads it.
std::string describe(const Origin& o);

}  // namespace lc
