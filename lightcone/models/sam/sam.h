// SAM, the Segment Anything Model: masks of objects that points, boxes or masks of a picture name.
//
// Inputs, as transformers' SamModel takes them: "pixel_values" f32 [batch, channels, n, n], pictures of the size in
// config.json; "input_points" f32 [batch, prompts, points, 2], x and y in pixels of these pictures, with "input_labels"
// i64 [batch, prompts, points] (1: in the object, 0: beside it, -10: only fills up); "input_boxes" f32 [batch, prompts,
// 4], left, top, right, bottom; "input_masks" f32 [batch, 1, n / 4, n / 4] (for patches of 16), logits of an earlier
// run. LoadModelOptions::inputs says which of them there are: by default pictures, points and labels. With
// "image_embeddings" [batch, width, n / 16, n / 16] in place of "pixel_values" a picture is encoded once, for any
// number of prompts. Outputs: "pred_masks" [batch, prompts, 3, n / 4, n / 4], logits, with "iou_scores" [batch,
// prompts, 3], how well the model believes them to fit; "single_mask" [batch, prompts, 1, n / 4, n / 4] with
// "single_score" [batch, prompts, 1] (multimask_output=False); and "image_embeddings". Symbols: "batch", "prompts",
// "points".
//
// SamVisionModel alone: "hidden" [batch, width, n / 16, n / 16].
//
// A. Kirillov et al., "Segment anything", 2023.
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Make the loaded model of an opened checkpoint. They throw Error for the reasons of load_model().
LoadedModel load_sam(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);
LoadedModel load_sam_vision(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
