// Networks of pictures as timm saves them (PyTorch Image Models): ViT, DeiT with and without distillation, ConvNeXt,
// Swin, and torchvision's ResNets. Their config.json names an architecture and no sizes; those are sizes of weights,
// and the weights get the names of transformers. A network of parts beyond those is an Error that names a weight.
//
// Inputs and outputs are those of the family: models/vision_transformer/vit.h, models/convnet, models/swin.
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// True for a config.json of timm's.
bool is_timm(const ConfigFile& config);
// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_timm(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
