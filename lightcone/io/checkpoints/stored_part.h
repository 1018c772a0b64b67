// A part of a tensor of a checkpoint: what one rank of several holds of a weight.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lightcone/io/checkpoints/weights.h"

namespace lc {

// A tensor whose bytes lie in the file, or in `copy` if that is set.
struct StoredPart {
  StoredTensor tensor;
  std::shared_ptr<const void> copy = {};
};

// Returns which part of a parameter's tensor is loaded.
using PartOf = std::function<StoredPart(const std::string& parameter, const StoredTensor& whole)>;

// Cuts one axis into `parts` equal parts and returns the one at `place`. Where its bytes lie together, as rows of a
// matrix do, it is a view of the file, of which nothing else is read; otherwise it is a copy. A tensor that no graph
// reads in place becomes f32. Throws Error if the parts are not equal, or would cut blocks of a quantised format.
StoredPart part_of(const StoredTensor& whole, int axis, int parts, int place);

}  // namespace lc
