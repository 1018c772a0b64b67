// MMDiT, the transformer of Stable Diffusion 3 and 3.5, in which tokens of the picture and of the text attend to each
// other: diffusers' SD3Transformer2DModel as a module and as a loaded model.
//
// Inputs: "sample" f32 [batch, in_channels, patch rows, patch columns], "timestep" f32 [batch] (0 to 1000),
// "encoder_hidden_states" f32 [batch, length, joint_attention_dim] and "pooled_projections" f32 [batch,
// pooled_projection_dim]. The output "prediction" [batch, out_channels, patch rows, patch columns] is the flow's
// velocity. Symbols: "batch", "rows", "columns" (numbers of patches) and "length".
//
// A file with one block alone, whose config.json has img_len and txt_len in place of num_layers, takes "hidden_states"
// f32 [batch, image_length, width], "encoder_hidden_states" f32 [batch, length, width] and "temb" f32 [batch, width],
// and gives "hidden" and "encoder_hidden" of the first two's shapes.
//
// P. Esser et al., "Scaling rectified flow transformers for high-resolution image synthesis", 2024.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lightcone/models/diffusion/attention.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc::diffusion {

// Hyperparameters of an MMDiT.
struct MMDiTConfig {
  std::int64_t heads = 18, head_width = 64, layers = 18;
  std::int64_t inner = 0;  // width of the feed-forward networks
  std::int64_t patch = 2, in_channels = 16, out_channels = 16;
  std::int64_t context = 4096, pooled = 2048;  // widths of the text's tokens and of its pooled vector
  std::int64_t most_patches = 96;              // along one side, of the table of positions
  std::vector<bool> dual;                      // whether a block attends within the picture a second time
  bool norm_queries = false;                   // queries and keys are normalised
  bool one_block = false;
  double eps = 1e-6;

  std::int64_t width() const { return heads * head_width; }
  // Reads config.json; `weights` is the number of tensors in the file. Throws Error that names a key.
  static MMDiTConfig from(const ConfigFile& c, std::size_t weights);
};

// A norm's values scaled and shifted by the two halves of `both` [batch, 2 width], the scale first (diffusers'
// AdaLayerNormContinuous).
Tensor scaled_first(const Tensor& normed, const Tensor& both);

// What turns the queries and keys of tokens by their places: cosines and sines [tokens, head_width / 2] for pairs of
// neighbours. Undefined: they are not turned.
struct Rotation {
  Tensor cos = {}, sin = {};
  Tensor operator()(const Tensor& x) const;  // [batch, heads, tokens, head_width] -> the same shape
};

// A block of two streams that attend together. Parameters have diffusers' names: norm1, norm1_context, attn, attn2, ff,
// ff_context.
class JointBlock {
 public:
  // The last block of a model does not change the text (`picture_only`).
  JointBlock(const MMDiTConfig& c, bool dual, bool picture_only);
  void visit(nn::Visitor& v);
  struct Streams {
    Tensor picture, text;  // [batch, n, width]; the text is undefined after the last block
  };
  // `turn` has the tokens of the picture before those of the text.
  Streams operator()(const Streams& x, const Tensor& condition, const Rotation& turn = {}) const;

 private:
  struct Stream {
    nn::Linear<> query, key, value, output, up, down;
    std::optional<nn::RMSNorm<>> query_norm, key_norm;
    explicit Stream(const MMDiTConfig& c);
  };
  Tensor heads_of(const nn::Linear<>& projection, const std::optional<nn::RMSNorm<>>& norm, const Tensor& x) const;

  std::int64_t heads_;
  bool dual_, picture_only_, norms_;
  nn::LayerNorm<> norm_;
  nn::Linear<> modulation_, text_modulation_;
  Stream picture_, text_;
  std::optional<Stream> second_;
};

// SD3Transformer2DModel as a module.
class MMDiT {
 public:
  explicit MMDiT(MMDiTConfig c);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& sample, const Tensor& timestep, const Tensor& states, const Tensor& pooled,
                    const nn::At& at = nn::At::current()) const;

 private:
  MMDiTConfig c_;
  nn::Conv2d<> patches_;
  Tensor positions_;
  TimestepEmbedding time_, text_;
  nn::Linear<> context_;
  std::vector<JointBlock> blocks_;
  nn::LayerNorm<> norm_;
  nn::Linear<> modulation_, out_;
};

// The names of the weights in diffusers' files.
std::span<const WeightName> mmdit_weight_names();

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_mmdit(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc::diffusion
