// The transforms that a DataLoader applies to each sample, named as in torchvision.
//
// A sample is one row of an array. An image is [height, width], [channels, height, width], or has more leading axes.
// Randomness is a function of (seed, epoch, index of the sample, index of the transform in its list) only, not of the
// batch, the thread or earlier draws. Two arrays with the same list, such as an image and its mask, are cropped and
// flipped alike.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "lightcone/io/data/array.h"
#include "lightcone/io/data/seeded_random.h"

namespace lc {

// Converts any dtype to f32 and divides by `divisor` in f32. With 255 it is torchvision.transforms.ToTensor() for u8,
// except for the order of the axes.
struct ToFloat {
  float divisor = 255;
};
// [height, width, channels] -> [channels, height, width].
struct ChannelsFirst {};
// torchvision.transforms.Normalize: (x - mean[c]) / std[c], f32. The channels are the third axis from the end; a sample
// of two axes has one channel.
struct Normalize {
  std::vector<float> mean, std;
};
// torchvision.transforms.RandomCrop(size, padding): pads the last two axes by `padding` zeros and takes a random height
// x width part, uniformly distributed.
struct RandomCrop {
  std::int64_t height, width, padding = 0;
};
// torchvision.transforms.RandomHorizontalFlip: reverses the last axis with this probability.
struct RandomHorizontalFlip {
  double probability = 0.5;
};
// torchvision.transforms.Resize((height, width)) with its default interpolation, computed as in Pillow: each element is
// a weighted mean of its neighbourhood, with a triangle filter as wide as the picture shrinks, first along rows, then
// along columns. Values of u8 are rounded after each direction, f32 is not.
struct Resize {
  std::int64_t height, width;
};
// torchvision.transforms.CenterCrop((height, width)), padded with zeros if the picture is smaller.
struct CenterCrop {
  std::int64_t height, width;
};
// Applies a user's function, on the thread that makes batches. It may change the elements, but not the shape or dtype.
// DataLoader::next() rethrows its exceptions.
struct EachSample {
  std::function<void(Array& sample, SeededRandom& random)> apply;
};
// Any of the transforms.
using Transform =
    std::variant<ToFloat, ChannelsFirst, Normalize, RandomCrop, RandomHorizontalFlip, Resize, CenterCrop, EachSample>;

// A list of transforms for samples of one dtype and shape, checked once.
class Transforms {
 public:
  // Throws Error if a transform does not accept the result of the previous one.
  Transforms(std::vector<Transform> list, DType dtype, std::vector<std::int64_t> sample_shape);
  DType dtype() const { return stages_.back().dtype; }                             // dtype of the result
  const std::vector<std::int64_t>& shape() const { return stages_.back().shape; }  // shape of the result
  std::size_t bytes() const { return stages_.back().bytes; }                       // size of the result in bytes
  // Transforms one sample, from `from` to `to`. `key` is (seed, epoch, index of the sample). Uses scratch memory of the
  // object, so it is not thread-safe.
  void apply(const std::byte* from, std::byte* to, const std::uint64_t (&key)[3]);

 private:
  struct Stage {  // dtype and shape of a sample before the first transform, and after each
    DType dtype;
    std::vector<std::int64_t> shape;
    std::size_t bytes;
  };
  std::vector<Transform> list_;
  std::vector<Stage> stages_;
  std::vector<std::byte> scratch_[2];
};

}  // namespace lc
