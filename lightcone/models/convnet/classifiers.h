// Convolutional classifiers: ResNet and RegNet of transformers, and torchvision's ResNet, ResNeXt, Wide ResNet, VGG,
// MobileNetV3 and EfficientNet.
//
// Input: "pixel_values" f32 [batch, channels, height, width]. Outputs: "hidden", the last features [batch, width, h,
// w]; "pooled" [batch, width], their means; and of a classifier "logits" [batch, labels]. Symbol: "batch".
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Each makes the loaded model of an opened checkpoint, or throws Error for the reasons of load_model().
//
// model_type resnet and regnet by the names of transformers or, resnet alone, of torchvision.
LoadedModel load_residual(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);
// torchvision's names: model_type vgg; mobilenet_v3 and efficientnet with a list of blocks.
LoadedModel load_vgg(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);
LoadedModel load_inverted_residual(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

// torchvision's files have no config.json: sizes are those of the weights. True for a ResNet or a VGG by its names.
bool is_torchvision(const Weights& w);
// Throws Error for weights of another network.
LoadedModel load_torchvision(const Weights& w, const LoadModelOptions& o);

}  // namespace lc
