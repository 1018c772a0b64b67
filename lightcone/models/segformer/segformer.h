// SegFormer: a class for each place of a picture, or for the whole picture.
//
// Input: "pixel_values" f32 [batch, channels, height, width]. Outputs: "hidden" [batch, width, h, w], the features of
// the last stage; "logits" [batch, labels, height / 4, width / 4] of a segmenter, or [batch, labels] of a classifier.
// Symbol: "batch".
//
// E. Xie et al., "SegFormer: simple and efficient design for semantic segmentation with transformers", 2021.
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_segformer(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
