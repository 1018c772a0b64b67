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

// Functions per instruction set.
struct DepthwiseTable {
  int width;        // lanes of a vector
  int mr, last_mr;  // output rows at a time; channels-last: pixels at a time
  // A window. Output rows that are computed together share rows of the image: from[(row * step + tap) * pitch].
  struct Window {
    const float* weights;    // [taps down][taps across]
    const std::int64_t* at;  // offset of each tap across
    std::int64_t down, across;
    std::int64_t pitch, step, dilation;  // floats per image row; rows between pixels; rows between taps
  };
  // Computes n pixels of rows <= mr output rows, which are contiguous in `out`.
  void (*rows)(const Window& w, const float* from, float* out, std::int64_t rows, std::int64_t n);
  // Rows of n elements, `step` apart, with zeros outside [begin, end). Whole vectors are written.
  struct Rows {
    const float* from;
    std::int64_t row, step, begin, end, n, to_row;  // row, to_row: floats between rows
  };
  // Copies `count` rows.
  void (*copy)(const Rows& r, std::int64_t count, float* to);
  // Computes `count` <= last_mr pixels of `channels` <= nr channels. Weights are [taps][nr].
  // The address of tap t of pixel p is at[t * stride + p] + first.
  void (*pixels)(const float* const* at, std::int64_t stride, std::int64_t first, const float* weights, std::int64_t nr,
                 std::int64_t taps, float* out, std::int64_t out_row, std::int64_t count, std::int64_t channels);
};
extern const DepthwiseTable kDepthwiseGeneric, kDepthwiseAvx2, kDepthwiseAvx512, kDepthwiseNeon;
// The table of an instruction set.
const DepthwiseTable& depthwise_table(Isa isa);

}  // namespace lc::backends::cpu
