// The parts of a folder of diffusers: model_index.json, and the weights of each part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/models/files/config_file.h"

namespace lc::diffusion {

// Which parts a folder has.
struct PipelineIndex {
  std::string folder, class_name;
  bool two_encoders = false;     // SDXL: text_encoder_2 and tokenizer_2
  bool zeros_for_empty = false;  // SDXL: force_zeros_for_empty_prompt

  // Reads model_index.json. Throws Error for a class or a part that is not supported.
  static PipelineIndex read(const std::string& folder, const ReadOptions& o, const std::vector<std::string>& ignore);
  std::string part(std::string_view name) const;  // the folder of a part
};

// Opens the weights of a part, whichever of diffusers' and transformers' names the file has. Throws Error if there is
// none.
Weights open_part(const std::string& folder, const ReadOptions& o);

}  // namespace lc::diffusion
