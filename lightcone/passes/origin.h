// What a kernel was made from, for profiles, pictures and messages.
#pragma once

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
  };
  std::string pass;
  std::vector<Step> steps;
};

// The operations between a kernel's operands and its result.
std::vector<Origin::Step> steps(const Graph& g, NodeId result, const std::vector<NodeId>& operands);

}  // namespace lc
