// LLaVA: a language model that reads pictures. A tower of pictures (CLIP's or SigLIP's) gives vectors of patches, two
// layers turn them into vectors of tokens, and they stand in a text where its ids have image_token_index, one id for
// each patch, pictures in the order of the texts.
//
// Inputs: "input_ids" and "attention_mask" i64 [batch, length] as of the language model (models/language/
// load_language.h), and "pixel_values" f32 [pictures, channels, height, width], prepared as the tower wants them.
// Outputs: those of the language model, "logits" [batch, length, vocab] and "hidden" [batch, length, width]; and
// "image_features" [pictures, patches, width], what the tokens of pictures are replaced by. More tokens than vectors
// read vectors of 0. Symbols: "batch", "length", "pictures".
//
// H. Liu et al., "Visual instruction tuning", 2023; "Improved baselines with visual instruction tuning", 2023.
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_llava(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
