// Sharding: how one value is spread over a mesh, and how that looks through a view.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/core/view.h"
#include "lightcone/distributed/mesh.h"

namespace lc::distributed {

using Axes = std::vector<int>;  // numbers of mesh axes, outermost first

struct Sharding {
  std::vector<Axes> axes;  // for each axis of the value; empty: every rank has it whole
  Axes partial;            // the value is the sum of the ranks' values along these mesh axes
  explicit Sharding(std::size_t rank = 0) : axes(rank) {}
  bool is_whole() const;
  bool uses(int mesh_axis) const;  // divides an axis along it
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

// Whether `ranks` divides the extent for all sizes.
bool divides(int ranks, const Dim& extent);
Dim divided(const Dim& extent, int ranks);
Shape local(const Mesh& mesh, const Shape& shape, const Sharding& s);

// For each axis of the view's shape, the axis of the base of which it takes equal parts to equal parts: dividing one
// divides the other. -1 if there is none.
struct Tracks {
  std::vector<int> of;  // by axis of the view's shape
  // If an axis is made of several, of which one that is divided is not the outermost: the extent of those outside of
  // it. Seen as two axes, [outer, the rest], it is divided along the second.
  std::vector<std::optional<Dim>> outer;
};
// `shards` tells into how many parts each axis of the base is to be divided; 1 for a whole axis.
Tracks tracks(const View& view, const std::vector<int>& shards);
// The view of a rank's part. Every divided axis must be one of `of`.
View local(const View& view, const std::vector<int>& shards);

}  // namespace lc::distributed
