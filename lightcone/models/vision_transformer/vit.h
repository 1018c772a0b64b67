// Transformers of pictures: ViT, DeiT and DINOv2 (with and without registers).
//
// Input: "pixel_values" f32 [batch, channels, height, width], pictures as the model's preprocessor makes them
// (models/vision/image_processor.h). Outputs: "hidden" [batch, tokens, width], the class token (DeiT: and that of
// distillation; DINOv2: and the registers) before the patches in rows; "pooled" [batch, width]: ViT's and DeiT's layer
// on the class token, where a file without a classifier has it, and DINOv2's class token; and of a classifier "logits"
// [batch, labels], DeiT's with a teacher the mean of "cls_logits" and "distillation_logits". Symbol: "batch".
//
// A. Dosovitskiy et al., "An image is worth 16x16 words", 2020; H. Touvron et al., "Training data-efficient image
// transformers", 2020; M. Oquab et al., "DINOv2", 2023; T. Darcet et al., "Vision transformers need registers", 2023.
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_vit(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
