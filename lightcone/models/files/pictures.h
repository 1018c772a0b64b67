// What models of pictures read of config.json, and their input.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// The size of a picture, or of a patch.
struct PictureSize {
  std::int64_t height = 0, width = 0;
};
// A key that is one number, or a height and a width.
PictureSize size_of_key(const ConfigFile& file, std::string_view key, std::int64_t otherwise);
// image_size.
inline PictureSize trained_size(const ConfigFile& file, std::int64_t otherwise) {
  return size_of_key(file, "image_size", otherwise);
}
// The size of the pictures that a model takes: that of the options, or `otherwise`. Throws Error for a side below 1 or
// above 16,384; `path` is the file that it names.
PictureSize picture_size(const std::string& path, const LoadModelOptions& o, const PictureSize& otherwise);
inline PictureSize picture_size(const ConfigFile& file, const LoadModelOptions& o, const PictureSize& otherwise) {
  return picture_size(file.path(), o, otherwise);
}
// The input "pixel_values" f32 [batch, channels, height, width].
Tensor picture_input(LoadedModel& m, const LoadModelOptions& o, std::int64_t channels, const PictureSize& size);

// Throws Error if the stages of a network have more layers than the file has weights.
void require_fewer_layers(const ConfigFile& file, std::span<const std::int64_t> depths, const Weights& w);

}  // namespace lc
