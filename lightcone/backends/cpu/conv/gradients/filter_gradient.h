// The gradient of a convolution's filters, for contiguous channels: for each tap, a sum over all pixels of the image's
// channels at the tap times the cotangent's channels. Both are read in place, so nothing is copied and no windows are
// materialized. Taps in the padding are skipped unless the cotangent there is not finite (0 * inf is NaN).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lightcone/backends/cpu/conv/plan/conv_plan.h"
#include "lightcone/backends/cpu/target/target.h"

namespace lc {
class HostKernel;
}  // namespace lc

namespace lc::backends::cpu {

// Sizes of a filter gradient. The channels of one factor are the rows of the result, those of the other its columns;
// either factor may be the image.
struct FilterGradientShape {
  struct At {  // strides, or an offset, in the two factors
    std::int64_t rows = 0, columns = 0;
  };
  struct Taps {  // one tap axis: coordinate = step * tap + the pixel's, valid in [lo, hi)
    std::int64_t extent = 1, out = 0;
    At at;
    std::int64_t step = 0, lo = 0, hi = 0;
  };
  struct Pixels {  // summed axes, innermost last; the first extent is a size of the run
    std::int64_t extent = 0;
    At at;
    std::int64_t down = 0, across = 0;
  };
  struct Group {
    std::int64_t extent = 1, out = 0;
    At at;
  };
  bool image_in_rows = true;
  Taps down, across;
  std::vector<Pixels> pixels;
  std::vector<Group> groups;
  std::int64_t rows = 1, columns = 1, out_row = 0;
};
// Returns the sizes; nullopt if `c` is another convolution or has another memory layout.
std::optional<FilterGradientShape> filter_gradient_shape(const ConvPlan& c);
// Returns why filter_gradient_shape() is nullopt.
std::string filter_gradient_refusal(const ConvPlan& c);
// Makes the kernel; filter_gradient_shape(c) must succeed.
std::shared_ptr<HostKernel> filter_gradient_kernel(const ConvPlan& c, const Target& target);

}  // namespace lc::backends::cpu
