// Pairs of a tower of pictures and a tower of texts whose vectors meet: CLIP and SigLIP; and each tower by itself
// (CLIPVisionModel, CLIPVisionModelWithProjection, CLIPTextModel, CLIPTextModelWithProjection, SiglipVisionModel,
// SiglipTextModel, SiglipForImageClassification).
//
// Inputs: "pixel_values" f32 [batch, channels, height, width]; "input_ids" and "attention_mask" i64 [texts, length]; 1
// in the mask is a token and 0 is padding. SigLIP was trained on texts padded to the full length with a mask of ones.
// Outputs: "image_embeds" [batch, dim] and "text_embeds" [texts, dim], of length 1 in a pair, which also gives them as
// they were before, "image_features" and "text_features"; "logits_per_image" [batch, texts] and "logits_per_text"
// [texts, batch]; "image_hidden" [batch, tokens, width] and "image_pooled" [batch, width], "text_hidden" [texts,
// length, width] and "text_pooled" [texts, width]; "text_penultimate" [texts, length, width], the states before the
// last layer, without a norm, which diffusion models read; "logits" [batch, labels] of a classifier. A program for some
// of them alone needs LoadModelOptions::outputs. Symbols: "batch", "texts", "length".
//
// A. Radford et al., "Learning transferable visual models from natural language supervision", 2021; X. Zhai et al.,
// "Sigmoid loss for language image pre-training", 2023.
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_clip(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

// The names of the weights of a tower of pictures by itself, with and without "vision_model." before them; this
// library's begin with "vision.".
std::vector<WeightName> picture_tower_names();

}  // namespace lc
