// The hyperparameters of SAM, as transformers' config.json has them.
#pragma once

#include <string>
#include <vector>

#include "lightcone/models/files/config_file.h"

namespace lc {

// The encoder of pictures: a ViT most of whose layers attend within windows.
struct SamVisionConfig {
  std::int64_t width = 768, layers = 12, heads = 12, inner = 3072, out = 256, channels = 3;
  std::int64_t picture = 1024, patch = 16, window = 14;
  std::vector<bool> global = {};  // whether a layer attends over the whole map
  std::int64_t features = 128;    // half the width of encoded points
  bool bias = true, absolute_positions = true, relative_positions = true;
  std::string activation = "gelu";
  double eps = 1e-6;
  std::int64_t grid() const { return picture / patch; }
};

// The encoder of points, boxes and masks.
struct SamPromptConfig {
  std::int64_t width = 256, picture = 1024, patch = 16, mask_channels = 16, kinds = 4;
  std::string activation = "gelu";
  double eps = 1e-6;
  std::int64_t grid() const { return picture / patch; }
};

// The decoder of masks.
struct SamDecoderConfig {
  std::int64_t width = 256, inner = 2048, layers = 2, heads = 8, downsampling = 2, masks = 3;
  std::int64_t score_depth = 3, score_width = 256;
  std::string activation = "relu";
  double eps = 1e-6;
};

struct SamConfig {
  SamVisionConfig vision = {};
  SamPromptConfig prompts = {};
  SamDecoderConfig decoder = {};
};

// Reads the three parts. Throws Error for sizes that do not fit together.
SamConfig read_sam(const ConfigFile& file, const Weights& w);
// Reads the encoder of pictures alone (model_type sam_vision_model).
SamVisionConfig read_sam_vision(const ConfigFile& file, const Weights& w);

}  // namespace lc
