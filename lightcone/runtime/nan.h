// Where a value that is no finite number came from.
#pragma once

#include <string>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

bool holds_nan(const void* data, DType type, std::size_t elements);

// Which values, by NodeId, hold NaN and which an infinity.
class NotFinite {
 public:
  explicit NotFinite(const Graph& g) : g_(g), nan_(g.size()), infinite_(g.size()) {}
  void look(NodeId id, const void* data, std::size_t elements);
  bool nan(NodeId id) const { return nan_[id]; }
  bool infinite(NodeId id) const { return infinite_[id]; }
  // "holds NaN: it first appears in matmul (at model.cpp:12), which reads 'layers.3.weight'": follows it from `id` back
  // to the value that has it first, and from there, where NaN is made of an infinity, to that one's beginning.
  std::string where_from(NodeId id) const;

 private:
  const Graph& g_;
  std::vector<bool> nan_, infinite_;
};

}  // namespace lc
