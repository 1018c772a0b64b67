// Swin: a transformer whose attention stays within windows of a picture, which every second layer moves by half a
// window.
//
// Input: "pixel_values" f32 [batch, channels, height, width]; no stage has a map smaller than a window. Outputs:
// "hidden" [batch, tokens, width], the patches of the last stage in rows; "pooled" [batch, width], their mean; and of a
// classifier "logits" [batch, labels]. Symbol: "batch".
//
// Z. Liu et al., "Swin transformer: hierarchical vision transformer using shifted windows", 2021.
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_swin(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
