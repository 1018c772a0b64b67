// Convolutions of few taps: each result is a sum over one small window of one channel, as in MobileNet's depthwise
// layers. A product of matrices would have one row and wait for what packing moves; here an image is read and a result
// written about once, and vectors are neighbours in memory: pixels of a row, or channels where they lie last.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lightcone/backends/cpu/conv/conv.h"

namespace lc::backends::cpu {

struct Depthwise {
  struct Axis {
    std::int64_t extent = 1, step = 1, unit = 1;      // of the output; coordinates of a pixel; their stride
    std::int64_t taps = 1, dilation = 0, weight = 0;  // of the window; coordinates of a tap; its stride
    std::int64_t lo = 0, hi = 1;                      // coordinates that exist, the others are zeros
    std::int64_t reach() const { return dilation * (taps - 1); }
    std::int64_t span() const { return (extent - 1) * step + reach() + 1; }  // coordinates that are read
  };
  Axis y, x;
  std::int64_t filters = 1, weight_row = 0, out_row = 0;  // of one plane of the image; channels, if they lie last
  std::int64_t taps() const { return y.taps * x.taps; }
  std::int64_t pixels() const { return y.extent * x.extent; }
};
// Nothing where sizes other than those of outer axes are symbolic, or another way is better.
std::optional<Depthwise> depthwise_shape(const ConvPlan& c);
std::shared_ptr<HostKernel> depthwise_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                             const Target& target, const Blocking& blocking);

// With channels last: the channels are the rows of the weights and of the image alike, and lie side by side in both.
bool is_depthwise_nhwc(const ConvPlan& c);
std::optional<Depthwise> depthwise_nhwc_shape(const ConvPlan& c);
std::shared_ptr<HostKernel> depthwise_nhwc_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                                  const Target& target);

// One instruction set's functions.
struct DepthwiseTable {
  int width;        // of a vector
  int mr, last_mr;  // rows of the output at a time; pixels, with channels last
  // Rows of the output that are computed together share rows of the image: from[(row * step + tap) * pitch].
  struct Window {
    const float* weights;    // [taps down][taps across]
    const std::int64_t* at;  // of each tap across
    std::int64_t down, across;
    std::int64_t pitch, step, dilation;  // floats of a row of the image; rows of a pixel, rows of a tap
  };
  // rows <= mr of n pixels. Rows of `out` lie behind each other.
  void (*rows)(const Window& w, const float* from, float* out, std::int64_t rows, std::int64_t n);
  // Rows of n elements, `step` apart, zeros for those outside of [begin, end); whole vectors are written.
  struct Rows {
    const float* from;
    std::int64_t row, step, begin, end, n, to_row;  // floats from row to row
  };
  void (*copy)(const Rows& r, std::int64_t count, float* to);
  // `count` <= last_mr pixels and `channels` <= nr of them; tap t of pixel p is read at at[t * stride + p] + first.
  // Weights are [taps][nr].
  void (*pixels)(const float* const* at, std::int64_t stride, std::int64_t first, const float* weights, std::int64_t nr,
                 std::int64_t taps, float* out, std::int64_t out_row, std::int64_t count, std::int64_t channels);
};
extern const DepthwiseTable kDepthwiseGeneric, kDepthwiseAvx2, kDepthwiseAvx512, kDepthwiseNeon;
const DepthwiseTable& depthwise_table(Isa isa);

}  // namespace lc::backends::cpu
