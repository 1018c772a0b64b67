// DINOv3's transformers of pictures: ViTs with registers whose patches are turned by their places (RoPE of rows and
// columns), for pictures of any size.
//
// Input: "pixel_values" f32 [batch, channels, height, width]. Outputs: "hidden" [batch, tokens, width], the class token
// and the registers before the patches in rows, and "pooled" [batch, width], the class token. Symbol: "batch".
//
// O. Siméoni et al., "DINOv3", 2025.
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_dinov3(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
