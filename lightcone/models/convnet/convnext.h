// ConvNeXt, ConvNeXt V2 and DINOv3's ConvNeXt.
//
// Input: "pixel_values" f32 [batch, channels, height, width]. Outputs: "hidden" [batch, width, height / 32, width / 32]
// (for patches of 4), "pooled" [batch, width], its means after a layer norm; and of a classifier "logits" [batch,
// labels]. DINOv3's "hidden" is [batch, 1 + places, width], the means before the places in rows, after the norm, and
// its "pooled" the first of them. Symbol: "batch".
//
// Z. Liu et al., "A ConvNet for the 2020s", 2022; S. Woo et al., "ConvNeXt V2", 2023.
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_convnext(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
