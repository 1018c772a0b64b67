// DETR: a transformer that finds objects as a set, on the features of a residual network.
//
// Input: "pixel_values" f32 [batch, channels, height, width], without padding (the transformer sees every pixel).
// Outputs: "logits" [batch, queries, labels + 1], the last of which is that of no object; "pred_boxes" [batch, queries,
// 4], centre and size as shares of the picture (box_convert() makes corners of them); and "hidden" [batch, queries,
// width]. Symbol: "batch".
//
// N. Carion et al., "End-to-end object detection with transformers", 2020.
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_detr(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
