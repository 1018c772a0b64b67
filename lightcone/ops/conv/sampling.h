// Interpolation at positions that are data, for the functions of ops/functional and ops/vision.
#pragma once

#include <vector>

#include "lightcone/ops/ops.h"

namespace lc::detail {

// One element of an axis that each sample reads, and its share of the result.
struct Tap {
  Tensor place;  // whole numbers of a floating type, [b, samples]
  Tensor share;  // undefined: 1
};
std::vector<Tap> nearest_taps(const Tensor& at);  // ties to even
std::vector<Tap> linear_taps(const Tensor& at);
// R. G. Keys, "Cubic convolution interpolation for digital image processing" (1981), with his coefficient a.
std::vector<Tap> cubic_taps(const Tensor& at, double a);

// The sums of what the taps of each spatial axis read of x [b, c, n...] -> [b, c, samples]. An element outside is 0,
// even if its share is NaN. Spatial extents must be numbers, 1 or more.
Tensor sampled(const Tensor& x, const std::vector<std::vector<Tap>>& taps, const char* op);

}  // namespace lc::detail
