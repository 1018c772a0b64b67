// The bias that T5 adds to its scores by the distance of query and key (C. Raffel et al., "Exploring the limits of
// transfer learning with a unified text-to-text transformer", 2019).
#pragma once

#include <cstdint>
#include <vector>

#include "lightcone/core/tensor.h"

namespace lc {

// Which bucket a distance is in.
struct DistanceBuckets {
  std::int64_t buckets = 32, most_distance = 128;
  bool both_directions = false;  // keys behind a query have half of the buckets

  // Half of the buckets of a direction are for one distance each. The others grow geometrically up to most_distance:
  // these are the distances with which each but the first of them begins.
  std::vector<std::int64_t> thresholds() const;
  std::int64_t of_a_direction() const { return both_directions ? buckets / 2 : buckets; }
};

// The bias of each head, [1, heads, queries, keys], from a table [buckets, heads]. The queries stand at the positions
// past, past + 1, ..., and the keys at 0, 1, ...
Tensor relative_bias(const Tensor& table, const DistanceBuckets& b, const Dim& queries, const Dim& keys,
                     const Dim& past);

}  // namespace lc
