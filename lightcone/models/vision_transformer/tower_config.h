// The hyperparameters of towers: transformers of pictures or of texts with one layer norm before each part, as in ViT,
// DeiT, DINOv2, CLIP and SigLIP.
#pragma once

#include <cstdint>

#include "lightcone/models/blocks/patch_embedding.h"
#include "lightcone/models/blocks/transformer_block.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/pictures.h"

namespace lc {

// Hyperparameters of one tower. The defaults are those of transformers for the files that leave them out.
struct TowerConfig {
  std::int64_t layers = 12;
  TransformerBlockOptions block = {};
  PatchEmbeddingOptions patches = {};     // towers of pictures have them
  std::int64_t vocab = 0, positions = 0;  // towers of texts have them
  std::int64_t width() const { return block.width; }
};

// Reads what all towers have: hidden_size, num_hidden_layers, num_attention_heads, hidden_act and layer_norm_eps, with
// `otherwise` where the file has none; and intermediate_size, unless otherwise.block.inner is negative. Throws Error
// for heads that do not divide the width and for an unknown activation.
TowerConfig read_tower(const ConfigFile& c, const TowerConfig& otherwise);
// Reads image_size, patch_size and num_channels into c.patches.
void read_patches(const ConfigFile& file, TowerConfig& c, const LoadModelOptions& o);

}  // namespace lc
