// UNets of Stable Diffusion 1, 2 and XL as modules and as loaded models, and ControlNets.
//
// A loaded UNet2DConditionModel takes "sample" f32 [batch, in_channels, height, width], "timestep" f32 [batch] (0 to
// 999 for Stable Diffusion) and "encoder_hidden_states" f32 [batch, length, width of the text]. With them, where
// config.json says so: "text_embeds" f32 [batch, ...] and "time_ids" f32 [batch, 6] (SDXL); "class_labels", i64 [batch]
// for a table, otherwise f32 [batch] or [batch, width]; "timestep_cond" f32 [batch, width]. The output "prediction"
// [batch, out_channels, height, width] is the noise, or what the scheduler's prediction_type says. Symbols: "batch",
// "height", "width" and "length". LoadModelOptions::height and width fix the size of latents here and in the other
// networks of this folder, which saves memory.
//
// A loaded ControlNetModel takes the same and "controlnet_cond" f32 [batch, 3, scale height, scale width], where scale
// is 8 for Stable Diffusion. Its outputs "down_block_res_samples.0", ... and "mid_block_res_sample" are added to the
// values that a UNet's way up reads, and to its middle.
//
// O. Ronneberger et al., "U-Net", 2015; R. Rombach et al., "High-resolution image synthesis with latent diffusion
// models", 2022; D. Podell et al., "SDXL", 2023; L. Zhang et al., "Adding conditional control to text-to-image
// diffusion models", 2023.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lightcone/models/diffusion/unet_blocks.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc::diffusion {

// The inputs of a UNet by name, those of the header above that its config.json asks for.
using Conditions = std::map<std::string, Tensor>;

// What a ControlNet adds to a UNet.
struct Residuals {
  std::vector<Tensor> down;
  Tensor middle;
};

// The half of a UNet that ControlNets share: embeddings, the way down and the middle. Parameters: conv_in,
// time_embedding, class_embedding, add_embedding, encoder_hid_proj, down_blocks, mid_block.
class UNetTrunk {
 public:
  explicit UNetTrunk(UNetConfig u);
  void visit(nn::Visitor& v);
  struct State {
    Tensor x, time, context;    // after the middle
    std::vector<Tensor> skips;  // what the way up reads
  };
  // `hint`, where it is defined, is added to the first value.
  State operator()(const Conditions& given, const Tensor& hint = {}) const;
  const UNetConfig& config() const { return u_; }

 private:
  Tensor time_embedding(const Conditions& given) const;
  Tensor class_embedding(const Tensor& labels) const;

  UNetConfig u_;
  nn::Conv2d<> conv_in_;
  TimestepEmbedding time_embedding_;
  std::optional<nn::Embedding<>> class_table_;
  std::optional<TimestepEmbedding> class_embedding_, add_embedding_;
  std::optional<nn::Linear<>> class_projection_, encoder_hid_proj_;
  std::vector<DownBlock> down_blocks_;
  MiddleBlock mid_block_;
};

// UNet2DConditionModel.
class UNet {
 public:
  explicit UNet(const UNetConfig& u);
  void visit(nn::Visitor& v);
  Tensor operator()(const Conditions& given, const std::optional<Residuals>& control = {},
                    const nn::At& at = nn::At::current()) const;
  const UNetConfig& config() const { return trunk_.config(); }

 private:
  UNetTrunk trunk_;
  std::vector<UpBlock> up_blocks_;
  GroupNorm conv_norm_out_;
  nn::Conv2d<> conv_out_;
};

// ControlNetModel.
class ControlNet {
 public:
  explicit ControlNet(const UNetConfig& u);
  void visit(nn::Visitor& v);
  // `given` has "controlnet_cond", too.
  Residuals operator()(const Conditions& given, const nn::At& at = nn::At::current()) const;
  const UNetConfig& config() const { return trunk_.config(); }
  // How much larger the picture that controls is than the latents.
  std::int64_t scale() const;

 private:
  // Makes the picture that controls as large as the latents. Parameters: conv_in, blocks, conv_out.
  struct Hint {
    nn::Conv2d<> conv_in, conv_out;
    std::vector<nn::Conv2d<>> blocks;
    explicit Hint(const UNetConfig& u);
    void visit(nn::Visitor& v) { v("conv_in", conv_in)("blocks", blocks)("conv_out", conv_out); }
    Tensor operator()(const Tensor& picture) const;
  };
  UNetTrunk trunk_;
  Hint hint_;
  std::vector<nn::Conv2d<>> down_;
  nn::Conv2d<> mid_;
};

// Extents of a model's inputs: numbers, or symbols where a size is 0.
struct UNetSizes {
  std::int64_t batch = 0, height = 0, width = 0, length = 0;
};
// Adds the inputs of a UNet or a ControlNet to a loaded model; "sample" only if `sample` is true.
Conditions unet_inputs(LoadedModel& m, const UNetConfig& u, const LoadModelOptions& o, const UNetSizes& sizes,
                       bool sample = true);

// The names of the weights in diffusers' files.
std::span<const WeightName> unet_weight_names();

// Makes the loaded models of opened checkpoints. Throws Error for the reasons of load_model().
LoadedModel load_unet(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);
LoadedModel load_controlnet(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc::diffusion
