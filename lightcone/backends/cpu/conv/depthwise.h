// Convolutions with few taps: each result is a sum over one small window of one channel, as in MobileNet's depthwise
// layers. As a matrix product it would have one row and be limited by packing. Here the image is read and the result
// written about once, and vectors are contiguous in memory: pixels of a row, or channels in a channels-last layout.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lightcone/backends/cpu/conv/conv.h"

namespace lc::backends::cpu {

// Sizes of a depthwise convolution.
struct Depthwise {
  struct Axis {
    std::int64_t extent = 1, step = 1, unit = 1;  // output pixels; coordinates between pixels; floats per coordinate
    std::int64_t taps = 1, dilation = 0, weight = 0;  // window taps; coordinates between taps; stride of the weights
    std::int64_t lo = 0, hi = 1;                      // valid coordinates; others read as zeros
    std::int64_t reach() const { return dilation * (taps - 1); }
    // Number of coordinates that are read.
    std::int64_t span() const { return (extent - 1) * step + reach() + 1; }
  };
  Axis y, x;
  std::int64_t filters = 1, weight_row = 0, out_row = 0;  // filters per image plane, or channels if channels-last
  std::int64_t taps() const { return y.taps * x.taps; }
  std::int64_t pixels() const { return y.extent * x.extent; }
};
// Returns the sizes; nullopt if sizes other than those of outer axes are symbolic, or another algorithm is better.
std::optional<Depthwise> depthwise_shape(const ConvPlan& c);
// Returns why depthwise_shape() is nullopt for a convolution with contiguous pixels.
std::string depthwise_refusal(const ConvPlan& c);
// Makes the NCHW kernel. `epilogue` may be null.
std::shared_ptr<HostKernel> depthwise_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                             const Target& target, const Blocking& blocking);

// Returns whether `c` is channels-last and depthwise: the channels are the rows of both weights and image, and
// contiguous in both.
bool is_depthwise_nhwc(const ConvPlan& c);
// As depthwise_shape(), for the channels-last layout.
std::optional<Depthwise> depthwise_nhwc_shape(const ConvPlan& c);
// Makes the channels-last kernel. `epilogue` may be null.
std::shared_ptr<HostKernel> depthwise_nhwc_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                                  const Target& target);

}  // namespace lc::backends::cpu
