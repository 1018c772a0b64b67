// The program that a sampler runs once a step: a network, guidance, and the sums of SamplingStep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/models/diffusion/pipeline/components.h"
#include "lightcone/models/diffusion/sampling/sampling_plan.h"
#include "lightcone/models/diffusion/unet.h"

namespace lc::diffusion {

// The sizes for which a denoiser is compiled.
struct DenoiserSizes {
  std::int64_t height = 0, width = 0;  // that latents have
  std::int64_t length = 77;            // tokens of a text
  bool guided = true;                  // the network runs on two texts, the negative one first
};

// What the network of a pipeline denoises and reads, by its config.json.
struct NetworkFacts {
  std::int64_t channels = 4;                           // that latents have
  std::int64_t beside = 0;                             // channels that it reads besides those (inpainting)
  std::int64_t patch = 1;                              // the sides of latents are multiples of it
  std::int64_t sample_height = 64, sample_width = 64;  // the latents it was trained for
  std::int64_t context = 0, pooled = 0;  // widths of the states of texts and of pooled texts; pooled 0: not known
  bool embeds_guidance = false;          // the network is told the guidance (FLUX.1 dev)
  bool steers = true;                    // guidance by a second, negative text is possible
};
// Throws Error for a network that is no denoiser or not supported.
NetworkFacts network_facts(Family family, const Weights& w, const LoadModelOptions& o);

// A network with the update of a sampler, and for UNets a ControlNet if there is one.
//
// Inputs, f32: "sample" [1, channels, h, w], "memory" [kMemories, channels, h, w], "noise" [1, channels, h, w];
// "timestep" [texts], where texts is 2 if it is guided and else 1; "step" [4]: input_scale, from_sample, from_output,
// limit; "update" [kRows, kColumns]; "guidance" [1] where it is guided or told the guidance; "encoder_hidden_states"
// [texts, length, width] and the other inputs of a UNet (unet.h), or "pooled_projections" [texts, width] of a
// transformer; "beside" [1, more, h, w] where a UNet reads more channels than it denoises (inpainting: the mask and the
// latents of what is kept); "controlnet_cond" [texts, 3, scale h, scale w] and "control_scale" [1]. Outputs: "next" and
// "next_memory", of the shapes of "sample" and "memory".
LoadedModel load_denoiser(Family family, const Weights& network, const std::optional<Weights>& controlnet,
                          const LoadModelOptions& o, const DenoiserSizes& sizes);

// ---- the parts, for the file of each network ----------------------------------------------------------------

// What all denoisers have around their networks.
class SamplerGraph {
 public:
  // Adds the inputs of a step to a loaded model.
  SamplerGraph(LoadedModel& m, std::int64_t channels, const DenoiserSizes& sizes);
  std::int64_t texts() const { return sizes_.guided ? 2 : 1; }
  // What the network sees for each text [texts, channels + beside, h, w]; `beside` is undefined or [1, more, h, w].
  Tensor shown(const Tensor& beside = {}) const;
  // Adds what makes the next sample of the network's answers [texts, channels, h, w], and the results.
  void finish(Tensor output);

 private:
  LoadedModel* m_;
  DenoiserSizes sizes_;
  Shape shape_;
  Tensor sample_, noise_, step_, memory_, update_;
};

LoadedModel load_unet_denoiser(const Weights& unet, const std::optional<Weights>& controlnet, const LoadModelOptions& o,
                               const DenoiserSizes& sizes);
LoadedModel load_mmdit_denoiser(const Weights& w, const LoadModelOptions& o, const DenoiserSizes& sizes);
LoadedModel load_flux_denoiser(const Weights& w, const LoadModelOptions& o, const DenoiserSizes& sizes);

}  // namespace lc::diffusion
