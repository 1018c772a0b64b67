// The options of residual networks by config.json, as transformers writes it for ResNet and RegNet, by themselves and
// as backbones.
#pragma once

#include "lightcone/models/convnet/residual.h"
#include "lightcone/models/files/config_file.h"

namespace lc {

// Throws Error for a model_type that is neither resnet nor regnet, and for sizes that do not fit together.
ResidualOptions read_residual(const ConfigFile& file, const Weights& w);

}  // namespace lc
