// The parts of a folder of diffusers: model_index.json, and the weights of each part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/models/files/config_file.h"

namespace lc::diffusion {

// Pipelines that are put together in the same way.
enum class Family : std::uint8_t { StableDiffusion, StableDiffusionXL, StableDiffusion3, Flux };

// Which parts a folder has.
struct PipelineIndex {
  std::string folder, class_name;
  Family family = Family::StableDiffusion;
  bool zeros_for_empty = false;  // SDXL: force_zeros_for_empty_prompt

  // Reads model_index.json. Throws Error for a class or a part that is not supported.
  static PipelineIndex read(const std::string& folder, const ReadOptions& o, const std::vector<std::string>& ignore);
  std::string part(std::string_view name) const;  // the folder of a part
  bool has(std::string_view name) const;          // whether there is one
  // The folder of the network that denoises: "unet" or "transformer".
  std::string_view network() const { return family < Family::StableDiffusion3 ? "unet" : "transformer"; }
};

// Opens the weights of a part, whichever of diffusers' and transformers' names the file has. Throws Error if there is
// none.
Weights open_part(const std::string& folder, const ReadOptions& o);

}  // namespace lc::diffusion
