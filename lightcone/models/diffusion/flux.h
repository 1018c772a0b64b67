// FLUX.1's transformer: blocks of two streams that attend together, then blocks of one stream in which attention and
// feed-forward network stand side by side; diffusers' FluxTransformer2DModel as a module and as a loaded model.
//
// Inputs: "hidden_states" f32 [batch, tokens, in_channels], where a token has the channels of 2 x 2 latents;
// "encoder_hidden_states" f32 [batch, length, joint_attention_dim]; "pooled_projections" f32 [batch,
// pooled_projection_dim]; "timestep" f32 [batch] (0 to 1); "img_ids" f32 [tokens, axes] and "txt_ids" f32 [length,
// axes], the places of tokens along the axes of axes_dims_rope: 0, row, column in pictures, zeros in texts; and
// "guidance" f32 [batch], if config.json has guidance_embeds. The output "prediction" [batch, tokens, out_channels] is
// the flow's velocity. Symbols: "batch", "tokens" and "length".
//
// Black Forest Labs, FLUX.1, 2024; M. Dehghani et al., "Scaling vision transformers to 22 billion parameters", 2023
// (parallel blocks); J. Su et al., "RoFormer", 2021 (rotations).
#pragma once

#include <optional>
#include <vector>

#include "lightcone/models/diffusion/mmdit.h"

namespace lc::diffusion {

// Hyperparameters of FLUX's transformer.
struct FluxConfig {
  std::int64_t heads = 24, head_width = 128, layers = 19, single_layers = 38;
  std::int64_t in_channels = 64, out_channels = 64;
  std::int64_t context = 4096, pooled = 768;  // widths of the text's tokens and of its pooled vector
  std::vector<std::int64_t> axes;             // numbers of a head that each axis of a place turns
  bool guidance = false;                      // the model is told how closely to follow the text

  std::int64_t width() const { return heads * head_width; }
  // Reads config.json; `weights` is the number of tensors in the file. Throws Error that names a key.
  static FluxConfig from(const ConfigFile& c, std::size_t weights);
};

// A block of one stream. Parameters: norm, attn, proj_mlp, proj_out.
class ParallelBlock {
 public:
  explicit ParallelBlock(const FluxConfig& c);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x, const Tensor& condition, const Rotation& turn) const;  // [batch, n, width]

 private:
  std::int64_t heads_;
  nn::LayerNorm<> norm_;
  nn::Linear<> modulation_, query_, key_, value_, up_, out_;
  nn::RMSNorm<> query_norm_, key_norm_;
};

// FluxTransformer2DModel as a module.
class FluxTransformer {
 public:
  explicit FluxTransformer(FluxConfig c);
  void visit(nn::Visitor& v);
  // The inputs of the header above.
  struct Inputs {
    Tensor tokens, states, pooled, timestep, picture_places, text_places, guidance = {};
  };
  Tensor operator()(const Inputs& in, const nn::At& at = nn::At::current()) const;

 private:
  Rotation rotation(const Tensor& places) const;

  FluxConfig c_;
  nn::Linear<> tokens_, context_;
  TimestepEmbedding time_, text_;
  std::optional<TimestepEmbedding> guidance_;
  std::vector<JointBlock> blocks_;
  std::vector<ParallelBlock> single_blocks_;
  nn::LayerNorm<> norm_;
  nn::Linear<> modulation_, out_;
};

// Latents [batch, channels, 2 rows, 2 columns] -> tokens [batch, rows columns, 4 channels], and back.
Tensor packed_latents(const Tensor& latents);
Tensor unpacked_latents(const Tensor& tokens, const Dim& rows, const Dim& columns);

// The names of the weights in diffusers' files.
std::span<const WeightName> flux_weight_names();

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_flux(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc::diffusion
