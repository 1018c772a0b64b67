// Traces NaN and infinities to the operation that made them.
#pragma once

#include <string>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

// Returns true if any of the elements is NaN.
bool holds_nan(const void* data, DType type, std::size_t elements);

// Records, by NodeId, which values hold NaN and which hold an infinity.
class NotFinite {
 public:
  explicit NotFinite(const Graph& g) : g_(g), nan_(g.size()), infinite_(g.size()) {}
  // Examines the value of a node; types without NaN are skipped.
  void look(NodeId id, const void* data, std::size_t elements);
  bool nan(NodeId id) const { return nan_[id]; }
  bool infinite(NodeId id) const { return infinite_[id]; }
  // Describes the origin of the NaN or infinity in `id`: "holds NaN: it first appears in matmul (at model.cpp:12),
  // which reads 'layers.3.weight'". Follows it back to the first value that has it and, if a NaN was made of an
  // infinity, to the first value that has the infinity.
  std::string where_from(NodeId id) const;

 private:
  const Graph& g_;
  std::vector<bool> nan_, infinite_;
};

}  // namespace lc
