// Integers that change by a constant step in a counted loop, like counters and indices.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc::stablehlo {

// The values in the first and the last step; those between are equally spaced.
struct Progression {
  std::int64_t first = 0, last = 0;
  bool constant() const { return first == last; }
  friend bool operator==(const Progression&, const Progression&) = default;
};

// Propagates known inputs of a loop body through its integers, as far as all elements of a node are equal.
class Progressions {
 public:
  Progressions(const Graph& body, std::map<NodeId, Progression> given);
  // Returns the value of every element of an edge, or nullopt if it is not known to be equally spaced without wrapping.
  std::optional<Progression> of(const Edge& e) const;

 private:
  std::optional<Progression> computed(const Node& n) const;

  const Graph& g_;
  std::map<NodeId, Progression> known_;
};

}  // namespace lc::stablehlo
