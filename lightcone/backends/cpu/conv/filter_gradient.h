// The gradient of a convolution's filters where channels lie side by side: for each tap a sum over all pixels of the
// image's channels there times the channels of the cotangent. Both are read where they lie, so nothing is copied and
// no window is written out; what a tap reads from the padding is left out, unless the cotangent is not finite there
// (0 * inf).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lightcone/backends/cpu/conv/conv.h"
#include "lightcone/passes/compiler.h"

namespace lc::backends::cpu {

// Where a pixel lies in both factors, in floats from the first one of a block.
struct PixelPair {
  std::int32_t rows, columns;
};

// One instruction set's functions.
struct FilterGradientTable {
  int mr, nr;  // rows and columns of a tile
  // C[rows <= mr, columns <= nr] (+)= sum over `count` pixels of a[rows] * b[columns].
  void (*tile)(const float* a, const float* b, const PixelPair* pixels, std::int64_t count, float* c,
               std::int64_t c_row, std::int64_t rows, std::int64_t columns, bool add);
};
extern const FilterGradientTable kFilterGradientGeneric, kFilterGradientAvx2, kFilterGradientAvx512;

// The channels of one factor are the rows of the result, those of the other its columns. Either is the image.
struct FilterGradientShape {
  struct At {  // strides, or a place, in the two factors
    std::int64_t rows = 0, columns = 0;
  };
  struct Taps {  // down or across: a coordinate is step * tap + what the pixel says, and exists in [lo, hi)
    std::int64_t extent = 1, out = 0;
    At at;
    std::int64_t step = 0, lo = 0, hi = 0;
  };
  struct Pixels {  // innermost last; the number of the first is a size of the run
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
// Nothing where it is another convolution, or lies in memory in another way.
std::optional<FilterGradientShape> filter_gradient_shape(const ConvPlan& c);
std::shared_ptr<HostKernel> filter_gradient_kernel(const ConvPlan& c, const Target& target);

// As a pass: where channels do not lie side by side, the factors of filters' gradients are copied so that they do.
bool may_have_filter_gradients(const Graph& g);
Graph filter_gradients_last(const Graph& g, PassLog& log);
// Is it like one, with so many sums for each number that it is no convolution to compute as such?
bool like_filter_gradient(const Graph& g, const lowering::Convolution& c);

}  // namespace lc::backends::cpu
