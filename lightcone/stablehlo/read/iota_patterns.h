// Whole numbers that grow evenly from step to step of a counted loop, as counters and places in arrays do.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc::stablehlo {

// The values in the first and in the last step; those between lie evenly.
struct Progression {
  std::int64_t first = 0, last = 0;
  bool constant() const { return first == last; }
  friend bool operator==(const Progression&, const Progression&) = default;
};

// Follows what is known of inputs of a body through its whole numbers, as far as all elements of a node are the same.
class Progressions {
 public:
  Progressions(const Graph& body, std::map<NodeId, Progression> given);
  // What every element of an edge is; none where that is not known to grow evenly, without wrapping around.
  std::optional<Progression> of(const Edge& e) const;

 private:
  std::optional<Progression> computed(const Node& n) const;

  const Graph& g_;
  std::map<NodeId, Progression> known_;
};

}  // namespace lc::stablehlo
