// Convolution with channels last: the image and the result keep the channels of a pixel side by side, so that a
// vector is output channels, a pixel is an address, and a 1x1 window needs no packing whatever its stride.
//
// conv_layout.cpp decides which convolutions of a graph are written so.
#pragma once

#include "lightcone/backends/cpu/conv.h"
#include "lightcone/runtime/compiler.h"

namespace lc::host {

// Taps whose image and whose weights both lie side by side.
struct TapRun {
  std::int64_t offset, length;  // in the image; of depth
};

// One instruction set's functions.
struct ConvLastTable {
  int mr, nr;  // pixels and output channels of a tile
  // C[rows <= mr, columns <= nr] (+)= image * weights. Pixel r's run i begins at pixels[r] + runs[i].offset; weights
  // are [depth][nr]. `next`: what will be wanted soon, a cache line for each step of depth.
  void (*tile)(const float* const* pixels, const TapRun* runs, std::int64_t count, const float* weights,
               const float* next, float* c, std::int64_t c_row, std::int64_t rows, std::int64_t columns, bool add);
};
extern const ConvLastTable kConvLastGeneric, kConvLastAvx2, kConvLastAvx512;
const ConvLastTable& conv_last_table(Isa isa);

// Where pixels and taps lie: in the image itself if nothing is padded, else in a copy with zeros around each image.
struct LastShape {
  struct Axis {                         // y, x
    std::int64_t extent, step;          // of the output; of a pixel, in floats of what is read
    std::int64_t unit, lo, hi, length;  // of the copy: a coordinate's stride in the image, what exists, how many
  };
  struct Sum {
    std::int64_t extent, read, weight;  // strides in what is read and in the weights
  };
  Axis y, x;
  bool copy = false;
  std::int64_t batch_step = 0;                  // of an image, in what is read
  std::int64_t batch_image = 0;                 // in the image
  std::int64_t channels = 1, channel_step = 1;  // of the copy
  std::vector<Sum> sums;                        // in the order in which they are added, innermost last
  std::int64_t rows = 0, depth = 1;
};
// Nothing where it cannot be computed in this way.
std::optional<LastShape> last_shape(const Convolution& c);

std::shared_ptr<const Kernel> convolution_last_kernel(const Convolution& c, std::shared_ptr<Parallel> parallel,
                                                      std::shared_ptr<const Epilogue> epilogue, Isa isa = detect_isa());

// Convolutions of images, and what is elementwise behind them, with their channels last, where most of a graph's
// convolutions gain by it.
Graph channels_last(const Graph& g, PassLog& log);

}  // namespace lc::host
