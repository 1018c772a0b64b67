// The program that a sampler runs once a step: UNet or MMDiT, guidance, and the sums of SamplingStep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/models/diffusion/sampling/sampling_plan.h"
#include "lightcone/models/diffusion/unet.h"

namespace lc::diffusion {

// The sizes for which a denoiser is compiled.
struct DenoiserSizes {
  std::int64_t height = 0, width = 0;  // that latents have
  std::int64_t length = 77;            // tokens of a text
  bool guided = true;                  // the model runs on two texts, the negative one first
};

// A UNet with the update of a sampler, and a ControlNet if there is one.
//
// Inputs, f32: "sample" [1, channels, h, w], "memory" [kMemories, channels, h, w], "noise" [1, channels, h, w];
// "timestep" [texts], where texts is 2 if it is guided and else 1; "step" [4]: input_scale, from_sample, from_output,
// limit; "update" [kRows, kColumns]; "guidance" [1]; "encoder_hidden_states" [texts, length, width] and the other
// inputs of a UNet (unet.h); "beside" [1, more, h, w] where the UNet reads more channels than it denoises (inpainting:
// the mask and the latents of what is kept); "controlnet_cond" [texts, 3, scale h, scale w] and "control_scale" [1].
// Outputs: "next" and "next_memory", of the shapes of "sample" and "memory".
LoadedModel load_denoiser(const Weights& unet, const std::optional<Weights>& controlnet, const LoadModelOptions& o,
                          const DenoiserSizes& sizes);

// How many channels a UNet reads besides those that it denoises.
std::int64_t channels_beside(const UNetConfig& u);

}  // namespace lc::diffusion
