// Channels-last convolutions. The image and the result keep the channels of a pixel contiguous, so that a vector holds
// output channels, a pixel is an address, and a 1x1 window needs no packing whatever its stride.
//
// channels_last.cpp decides which convolutions of a graph use this layout.
#pragma once

#include <span>

#include "lightcone/backends/cpu/conv/conv.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/precision.h"

namespace lc::backends::cpu {

// Sizes of a channels-last convolution. Pixels and taps are read from the image itself if nothing is padded, else from
// a copy with zeros around each image.
struct NhwcShape {
  struct Axis {                         // sizes of axis y or x
    std::int64_t extent, step;          // output pixels; floats between pixels in the data that is read
    std::int64_t unit, lo, hi, length;  // copy: coordinate's stride in the image, valid range, count
  };
  struct Sum {
    std::int64_t extent, read, weight;  // strides in the data that is read and in the weights
  };
  Axis y, x;
  bool copy = false;
  std::int64_t batch_step = 0;                  // floats between images in the data that is read
  std::int64_t batch_image = 0;                 // floats between images in the image
  std::int64_t channels = 1, channel_step = 1;  // for the copy
  std::vector<Sum> sums;                        // in the order of addition, innermost last
  std::int64_t rows = 0, depth = 1;
};
// Returns the sizes; nullopt if the convolution cannot be computed this way.
std::optional<NhwcShape> nhwc_shape(const ConvPlan& c);
// Returns why nhwc_shape() is nullopt.
std::string nhwc_refusal(const ConvPlan& c);

// Returns what widens packed filters; null if they are f32.
inline decltype(NhwcTable::widen_bf16) widening(const NhwcTable& t, WeightType stored) {
  return stored == WeightType::BF16 ? t.widen_bf16 : stored == WeightType::F16 ? t.widen_f16 : nullptr;
}

// A product of pixels, each an address, and panels of weights, in blocks of taps. A tap is an f32, or a pair of bf16:
// the unit that `tile` counts.
class NhwcTiles {
 public:
  static constexpr std::int64_t kPixels = 384;  // maximum pixels of a task
  // Weights of bf16 and f16 are widened by a task, those of a block at a time, which then stay in its L1.
  NhwcTiles(std::vector<NhwcShape::Sum> sums, std::int64_t rows, const NhwcTable& t, WeightType stored)
      : NhwcTiles(std::move(sums), rows, t.mr, t.nr, t.tile) {
    widen_ = widening(t, stored);
  }
  NhwcTiles(std::vector<NhwcShape::Sum> sums, std::int64_t rows, int mr, int nr, decltype(NhwcTable::tile) tile);

  // Division of a run into tasks, each of some pixels and some panels.
  struct Split {
    std::int64_t pixels = 1, panels = 1, across = 1, tasks = 0;
  };
  // Maximum pixels of a task: `most`, within limits.
  static std::int64_t most_pixels(std::int64_t most);
  // Divides `pixels` for `workers`, with at most `most` pixels per task unless that is too few.
  Split split(std::int64_t pixels, std::int64_t most, int workers) const;
  // Computes panels [begin, end), as far as they exist, of pixels [first, first + count) of the result, and runs the
  // epilogue, whose sizes are `sizes`, on them. `soon` is what the worker reads next; it is prefetched. `apart`: room
  // for the sums of apart_floats(count) if the epilogue's result has another type; null otherwise.
  void run(const HostLaunch& l, const float* const* at, const Epilogue* epilogue, const std::int64_t* sizes,
           std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t end,
           std::span<const float> soon = {}, float* apart = nullptr) const;
  std::int64_t apart_floats(std::int64_t pixels) const;

 private:
  struct Block {
    std::size_t first, count;
    std::int64_t begin, depth;
  };
  void find_runs(std::vector<NhwcShape::Sum> sums);
  struct Job {
    const float* const* at;
    const std::byte* weights;
    float* widened;         // room for a block's weights
    std::byte* result;      // the first pixel's, which is prefetched
    std::int64_t number;    // bytes of a number of it
    const float* beside;    // a residual that the epilogue will read, or null
    float* sums;            // the first pixel's
    std::int64_t sums_row;  // floats between pixels
    std::int64_t count;
    const float *soon, *soon_end;
  };
  void block(Job& j, const Block& b, std::int64_t panel, bool first) const;

  std::int64_t rows_, depth_ = 1;
  int mr_, nr_;
  decltype(NhwcTable::tile) tile_;
  decltype(NhwcTable::widen_bf16) widen_ = nullptr;
  std::vector<TapRun> runs_;
  std::vector<Block> blocks_;
};

// Winograd's F(4x4, 3x3) for channels-last convolutions, in blocks of tiles: transforms filters and image, computes 36
// matrix products, and transforms back.
class NhwcWinograd {
 public:
  NhwcWinograd(const NhwcShape& s, std::int64_t images, const NhwcTable& t, WeightType stored,
               const Blocking& blocking);
  // Scratch, in floats.
  std::int64_t floats() const;
  // Returns false if a number is infinite, NaN or too large for the transforms; the result is then incomplete.
  bool run(const HostLaunch& l, const float* image, std::int64_t images, const Epilogue* epilogue,
           const std::int64_t* sizes, float* scratch) const;

 private:
  struct Job;
  std::int64_t tiles(std::int64_t images) const { return images * down_ * across_; }
  void transform(const Job& j, int task) const;
  void multiply(const Job& j, int task) const;
  void write(const Job& j, int task) const;
  bool filters(const Job& j, int task) const;
  bool all_filters(const Job& j) const;
  bool block(Job& j) const;

  NhwcShape s_;
  const NhwcTable* t_;
  decltype(NhwcTable::widen_bf16) widen_;
  std::int64_t down_, across_, panels_, block_;
  bool far_;  // the images before and after are in no cache
};

// Returns why Winograd's algorithm cannot compute the shape with channels last; nullopt: it can.
std::optional<std::string> nhwc_winograd_refusal(const NhwcShape& s);
// Estimates cycles of a core that multiplies two vectors per cycle, with the memory costs of two such cores: of a
// product, a tenth lower because Winograd must gain as much, and of Winograd's algorithm.
double nhwc_cost(const NhwcShape& s, std::int64_t images);
double nhwc_winograd_cost(const NhwcShape& s, std::int64_t images);
// The largest number of images, which the algorithm is chosen for.
std::int64_t largest_batch(const ConvPlan& c);

// Makes the kernel of a channels-last convolution in f32. `epilogue` may be null.
std::shared_ptr<HostKernel> nhwc_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                        const Target& target, const Blocking& blocking = Blocking());
// The same by Winograd's algorithm, which must be able to compute the shape.
std::shared_ptr<HostKernel> nhwc_winograd_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                                 const Target& target, const Blocking& blocking = Blocking());

// Returns whether the graph may have convolutions of images that channels_last() changes.
bool may_keep_channels_last(const Graph& g, const Target& target, Precision precision);
// Rewrites convolutions of images and their elementwise consumers to a channels-last layout if most of the graph's
// convolutions gain; otherwise returns nullopt. At Precision::Medium they are multiplied in bf16, which is equally fast
// in NCHW except for copies and pooling. On tile registers that includes convolutions of a training step, whose filters
// change.
std::optional<Graph> channels_last(const Graph& g, PassLog& log, const Target& target,
                                   Precision precision = Precision::Highest);

}  // namespace lc::backends::cpu
