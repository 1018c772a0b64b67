// ImageProcessor: what preprocessor_config.json says that is to be done with a picture before a network, as graph code.
//
//   const ImageProcessor prepare = ImageProcessor::load("vit-base-patch16-224");
//   const Array pixels = prepare.apply(read_image("photo.jpg"));   // f32 [1, 3, 224, 224]
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/tensor.h"
#include "lightcone/io/data/array.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/pictures.h"

namespace lc {

// The steps of transformers' image processors, in their order: resize, crop the middle, rescale, normalise.
struct ImageProcessorConfig {
  enum class Resize : std::uint8_t { None, Stretch, Shortest };  // to a size; so that the shorter side has a size
  enum class Filter : std::uint8_t { Nearest, Bilinear, Bicubic };
  Resize resize = Resize::None;
  PictureSize size = {};     // Shortest: both are the extent of the shorter side
  std::int64_t longest = 0;  // Shortest: the longer side is no longer; 0: no limit
  Filter filter = Filter::Bilinear;
  PictureSize crop = {};                    // 0: none
  double rescale = 1;                       // a factor for the bytes
  std::vector<double> mean = {}, std = {};  // for each channel; empty: not normalised
  bool twice = false;                       // EfficientNet: divided by the deviations once more
};

// Prepares pictures.
class ImageProcessor {
 public:
  explicit ImageProcessor(ImageProcessorConfig c) : c_(std::move(c)) {}
  // Reads preprocessor_config.json of a folder, or such a file. Throws Error that names a key which is not known or not
  // supported.
  static ImageProcessor load(const std::string& path, const ReadOptions& o = {});
  static ImageProcessor of(const ConfigFile& file);
  // A picture u8 [3, height, width] -> f32 [1, 3, height', width']. Resizing is Pillow's: along rows, then along
  // columns, and both results are rounded to bytes. A picture that is smaller than the crop gets bars of 0.
  Tensor operator()(const Tensor& picture) const;
  // The same for a picture in memory, by default_compiler(). Throws Error for another array, and for a picture more
  // than a hundred times as long as wide.
  Array apply(const Array& picture) const;
  // The size of the result.
  PictureSize size_of(const PictureSize& picture) const;
  const ImageProcessorConfig& config() const { return c_; }

 private:
  PictureSize resized(const PictureSize& picture) const;
  ImageProcessorConfig c_;
};

}  // namespace lc
#include "lightcone/macros_on.h"
