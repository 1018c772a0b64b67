// What a DataLoader does to each sample: torchvision's transforms of the same names.
//
// A sample is one row of an array: an image is [height, width], [channels, height, width] or more axes before these.
// Whatever is random follows from (seed, epoch, number of the sample, place of the transform in its list) and from
// nothing else: not from the batch, the thread or what was asked before. Two arrays with the same list, an image and
// its mask, are cropped and flipped alike.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "lightcone/io/data/array.h"
#include "lightcone/io/data/seeded_random.h"

namespace lc {

// Any dtype to f32, divided by `divisor` (in f32). With 255: torchvision.transforms.ToTensor() of u8, but for the order
// of axes.
struct ToFloat {
  float divisor = 255;
};
// [height, width, channels] to [channels, height, width].
struct ChannelsFirst {};
// (x - mean[c]) / std[c] of f32, in f32: torchvision.transforms.Normalize. The channels are the axis before the last
// two; a sample of two axes has one.
struct Normalize {
  std::vector<float> mean, std;
};
// torchvision.transforms.RandomCrop(size, padding): zeros around the last two axes, `padding` deep, then any
// height x width of it, each place as likely as any other.
struct RandomCrop {
  std::int64_t height, width, padding = 0;
};
// torchvision.transforms.RandomHorizontalFlip: the last axis turned round.
struct RandomHorizontalFlip {
  double probability = 0.5;
};
// torchvision.transforms.Resize((height, width)) with its default interpolation, as Pillow computes it: each number is
// a mean of its surroundings, weighted by a triangle as wide as the picture shrinks; along rows, then along columns.
// Bytes (u8) are rounded after each, f32 is not.
struct Resize {
  std::int64_t height, width;
};
// torchvision.transforms.CenterCrop((height, width)): zeros around where the picture is smaller.
struct CenterCrop {
  std::int64_t height, width;
};
// A function of one's own, called on the thread that makes batches. It may change the numbers, not the shape or dtype;
// what it throws, DataLoader::next() throws.
struct EachSample {
  std::function<void(Array& sample, SeededRandom& random)> apply;
};
using Transform =
    std::variant<ToFloat, ChannelsFirst, Normalize, RandomCrop, RandomHorizontalFlip, Resize, CenterCrop, EachSample>;

// A list of transforms for samples of one dtype and shape, checked once.
class Transforms {
 public:
  // Error when one does not fit what it would be given.
  Transforms(std::vector<Transform> list, DType dtype, std::vector<std::int64_t> sample_shape);
  DType dtype() const { return stages_.back().dtype; }  // of what comes out
  const std::vector<std::int64_t>& shape() const { return stages_.back().shape; }
  std::size_t bytes() const { return stages_.back().bytes; }
  // One sample. `key` is (seed, epoch, number of the sample).
  void apply(const std::byte* from, std::byte* to, const std::uint64_t (&key)[3]);

 private:
  struct Stage {  // what a sample is, before the first transform and after each
    DType dtype;
    std::vector<std::int64_t> shape;
    std::size_t bytes;
  };
  std::vector<Transform> list_;
  std::vector<Stage> stages_;
  std::vector<std::byte> scratch_[2];
};

}  // namespace lc
