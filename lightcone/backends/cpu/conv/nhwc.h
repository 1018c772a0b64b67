// ConvPlan with channels last: the image and the result keep the channels of a pixel side by side, so that a
// vector is output channels, a pixel is an address, and a 1x1 window needs no packing whatever its stride.
//
// channels_last.cpp decides which convolutions of a graph are written so.
#pragma once

#include <span>

#include "lightcone/backends/cpu/conv/conv.h"
#include "lightcone/passes/compiler.h"

namespace lc::backends::cpu {

// Taps whose image and whose weights both lie side by side.
struct TapRun {
  std::int64_t offset, length;  // in the image; of depth
};

// One instruction set's functions.
struct NhwcTable {
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
extern const NhwcTable kNhwcGeneric, kNhwcAvx2, kNhwcAvx512;
const NhwcTable& nhwc_table(Isa isa);

// Where pixels and taps lie: in the image itself if nothing is padded, else in a copy with zeros around each image.
struct NhwcShape {
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
std::optional<NhwcShape> nhwc_shape(const ConvPlan& c);

// A product of pixels, each an address, and of panels of weights, block by block of taps. A tap is a number, or a pair
// of them in bf16: what `tile` takes for one.
class NhwcTiles {
 public:
  static constexpr std::int64_t kPixels = 384;  // of a task, at most
  NhwcTiles(std::vector<NhwcShape::Sum> sums, std::int64_t rows, const NhwcTable& t)
      : NhwcTiles(std::move(sums), rows, t.mr, t.nr, t.tile) {}
  NhwcTiles(std::vector<NhwcShape::Sum> sums, std::int64_t rows, int mr, int nr, decltype(NhwcTable::tile) tile);

  // How a run is cut: task by task, some pixels, but no more than `most` unless that is few, and some panels.
  struct Split {
    std::int64_t pixels = 1, panels = 1, across = 1, tasks = 0;
  };
  static std::int64_t most_pixels(std::int64_t most);
  Split split(std::int64_t pixels, std::int64_t most, int workers) const;
  // Panels [begin, end), as far as there are any, over pixels [first, first + count) of the result, with what is
  // elementwise behind them. `soon`: what the worker reads after that, fetched meanwhile.
  void run(const HostLaunch& l, const float* const* at, const Epilogue* epilogue, std::int64_t first,
           std::int64_t count, std::int64_t begin, std::int64_t end, std::span<const float> soon = {}) const;

 private:
  struct Block {
    std::size_t first, count;
    std::int64_t begin, depth;
  };
  void find_runs(std::vector<NhwcShape::Sum> sums);
  struct Job {
    const float* const* at;
    const float* weights;
    float* out;           // of the first pixel
    const float* beside;  // a residual that the epilogue will read there, or null
    std::int64_t count;
    const float *soon, *soon_end;
  };
  void block(Job& j, const Block& b, std::int64_t panel, bool first) const;

  std::int64_t rows_, depth_ = 1;
  int mr_, nr_;
  decltype(NhwcTable::tile) tile_;
  std::vector<TapRun> runs_;
  std::vector<Block> blocks_;
};

// The same by Winograd's F(4x4, 3x3), in blocks of tiles: filters and image are transformed, 36 products of
// matrices, and back.
class NhwcWinograd {
 public:
  // Nothing where the shape does not allow it, or it does not pay for `images`.
  static std::optional<NhwcWinograd> make(const NhwcShape& s, std::int64_t images, ConvAlgorithm way,
                                          const NhwcTable& t, const Blocking& blocking);
  std::int64_t floats() const;  // scratch
  // false: numbers that cannot be mixed; the result is not complete.
  bool run(const HostLaunch& l, const float* image, std::int64_t images, const Epilogue* epilogue,
           const std::int64_t* sizes, float* scratch) const;

 private:
  struct Job;
  NhwcWinograd(const NhwcShape& s, const NhwcTable& t, std::int64_t images, const Blocking& blocking);
  std::int64_t tiles(std::int64_t images) const { return images * down_ * across_; }
  void transform(const Job& j, int task) const;
  void multiply(const Job& j, int task) const;
  void write(const Job& j, int task) const;
  bool filters(const Job& j) const;
  bool block(Job& j) const;

  NhwcShape s_;
  const NhwcTable* t_;
  std::int64_t down_, across_, panels_, block_;
};

std::shared_ptr<HostKernel> nhwc_kernel(const ConvPlan& c, ConvAlgorithm way, std::shared_ptr<const Epilogue> epilogue,
                                        const Target& target, const Blocking& blocking = Blocking());

// Convolutions of images, and what is elementwise behind them, with their channels last, where most of a graph's
// convolutions gain by it; nothing where it would not.
// `bf16`: they are multiplied in bf16, which is as fast with pixels last but for copies and pooling.
bool may_keep_channels_last(const Graph& g);  // cheap: is there anything like a convolution of images?
std::optional<Graph> channels_last(const Graph& g, PassLog& log, const Target& target, bool bf16 = false);

}  // namespace lc::backends::cpu
