// The text encoders of Stable Diffusion: CLIP's tower of texts with what a denoiser reads of it, which are the states
// before the last layer, too (transformers' CLIPTextModel and CLIPTextModelWithProjection).
//
// Input: "input_ids" i64 [batch, length]. Outputs: "hidden" f32 [batch, length, width], after the last norm;
// "penultimate", the states before the last layer, without a norm; "pooled" [batch, width], the state at the token that
// ends the text; and "text_embeds" [batch, projection_dim], where the file has the projection.
//
// A. Radford et al., "Learning transferable visual models from natural language supervision", 2021.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lightcone/models/blocks/transformer_block.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc::diffusion {

// Hyperparameters of a text encoder.
struct TextEncoderConfig {
  std::int64_t vocab = 49408, width = 512, layers = 12, heads = 8, inner = 2048, positions = 77;
  std::int64_t projection = 0;  // width of "text_embeds"; 0: the model has none
  std::int64_t end = 49407;     // the token that ends a text; 2: the largest id does, as in files of before 2023
  double eps = 1e-5;
  std::string activation = "quick_gelu";

  // Reads config.json; `weights` is the number of tensors in the file. Throws Error that names a key.
  static TextEncoderConfig from(const ConfigFile& c, std::size_t weights);
};

// A text encoder as a module.
class TextEncoder {
 public:
  explicit TextEncoder(TextEncoderConfig c);
  void visit(nn::Visitor& v);
  struct Output {
    Tensor hidden, penultimate, pooled, embeds;
  };
  Output operator()(const Tensor& ids, const nn::At& at = nn::At::current()) const;
  const TextEncoderConfig& config() const { return c_; }

 private:
  TextEncoderConfig c_;
  nn::Embedding<> tokens_, positions_;
  std::vector<TransformerBlock> layers_;
  nn::LayerNorm<> norm_;
  std::optional<nn::Linear<>> projection_;
};

// Makes the loaded model of a folder of transformers. Throws Error for the reasons of load_model().
LoadedModel load_text_encoder(const Weights& w, const LoadModelOptions& o);

}  // namespace lc::diffusion
