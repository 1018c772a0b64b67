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
  // Winograd's transforms; the first two say whether every number was finite and small enough to be mixed.
  // Filters of `count` channels of a panel, their nine taps `tap` apart -> 36 panels [count][nr], `stride` apart.
  bool (*filters_in)(const float* w, std::int64_t tap, std::int64_t count, float* to, std::int64_t stride);
  // The 6x6 pixels of a tile, each with its channels -> 36 rows of channels, `stride` apart; back -> the 4x4 pixels,
  // null where there are none.
  bool (*image_in)(const float* const* at, std::int64_t channels, float* to, std::int64_t stride);
  void (*pixels_out)(const float* from, std::int64_t stride, std::int64_t channels, float* const* at);
};
extern const ConvLastTable kConvLastGeneric, kConvLastAvx2, kConvLastAvx512, kConvLastNeon;
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

// The same by Winograd's F(4x4, 3x3), in blocks of tiles: filters and image are transformed, 36 products of
// matrices, and back.
class LastWinograd {
 public:
  // Nothing where the shape does not allow it, or it does not pay for `images`.
  static std::optional<LastWinograd> make(const LastShape& s, std::int64_t images, ConvWay way, const ConvLastTable& t);
  std::int64_t floats() const;  // scratch
  // false: numbers that cannot be mixed; the result is not complete.
  bool run(const Launch& l, const float* image, std::int64_t images, const Epilogue* epilogue,
           const std::int64_t* sizes, float* scratch) const;

 private:
  struct Job;
  LastWinograd(const LastShape& s, const ConvLastTable& t, std::int64_t images);
  std::int64_t tiles(std::int64_t images) const { return images * down_ * across_; }
  void transform(const Job& j, int task) const;
  void multiply(const Job& j, int task) const;
  void write(const Job& j, int task) const;
  bool filters(const Job& j) const;
  bool block(Job& j) const;

  LastShape s_;
  const ConvLastTable* t_;
  std::int64_t down_, across_, panels_, block_;
};

std::shared_ptr<const Kernel> convolution_last_kernel(const Convolution& c, ConvWay way,
                                                      std::shared_ptr<Parallel> parallel,
                                                      std::shared_ptr<const Epilogue> epilogue, Isa isa = detect_isa());

// Convolutions of images, and what is elementwise behind them, with their channels last, where most of a graph's
// convolutions gain by it; nothing where it would not.
std::optional<Graph> channels_last(const Graph& g, PassLog& log);

}  // namespace lc::host
