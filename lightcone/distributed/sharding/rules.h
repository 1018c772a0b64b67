// Rules of sharding: which axes of an operation's operands and results belong together (the factors of Shardy).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/distributed/collectives.h"
#include "lightcone/distributed/sharding/sharding.h"

namespace lc::distributed {

// What happens to an axis that operands and results share under one label.
enum class LabelKind : std::uint8_t {
  Parallel,  // each element of the axis is computed by itself
  Sum,       // a result without the axis is the sum over it
  Max,       // the maximum
  Whole,     // the operation needs the whole axis
  Indexed,   // an operand's index chooses along the axis; what lies outside of a part counts nothing
};

// An operation on one rank.
struct LocalCall {
  const Collectives& ranks;
  const Node& node;
  const std::vector<Axes>& axes;                 // the mesh axes along which each label is divided
  const std::function<int(const Axes&)>& place;  // this rank's along them
  const std::vector<Tensor>& in;                 // the operands' parts
};

struct ShardingRule {
  std::vector<LabelKind> labels;
  // The label of each axis of each operand, and of each result; -1: whole.
  std::vector<std::vector<int>> operands, results;
  // Whether the operation, as a function of these operands together, passes sums of parts on.
  std::vector<bool> linear = {};
  int index = -1;  // the operand that chooses along the axis of the label Indexed
  // The axis of the label `in_pieces` is this many pieces that stay whole: blocks of a quantised format.
  int in_pieces = -1;
  Dim pieces = {};
  bool whole_pieces(std::size_t label, int ranks) const {
    return static_cast<int>(label) != in_pieces || divides(ranks, pieces);
  }
  // The second label is divided along the axes of the first or not at all: one axis of the mesh divides both. Serial
  // axes do not divide it.
  std::optional<std::pair<int, int>> together = {};
  // Computes the results' parts; null: the operation itself does. Results are sums of parts as the labels say, but not
  // along an axis of the mesh that divides them.
  std::function<std::vector<Tensor>(const LocalCall&)> local = {};
};

// Returns the rule of a node; nullopt if every rank has to compute all of it.
std::optional<ShardingRule> sharding_rule(const Graph& g, const Node& n);

}  // namespace lc::distributed
