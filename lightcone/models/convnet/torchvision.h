// torchvision's ResNet and VGG by the names and shapes of their weights alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lightcone/models/convnet/residual.h"
#include "lightcone/models/files/weight_table.h"

namespace lc {

// The options of a residual network whose weights are called conv1, bn1, layer1.0.conv1, ... after `prefix`. Throws
// Error if the weights are those of no such network.
ResidualOptions torchvision_resnet(const Weights& w, const std::string& prefix);
// What such names are in a ResidualNet at `ours`; both end in '.' or are empty. The rows stay valid.
std::vector<WeightName> torchvision_resnet_names(const std::string& theirs, const std::string& ours);

// A VGG: convolutions with their numbers among the features, and whether a pool follows.
struct VggLayout {
  struct Layer {
    std::int64_t number = 0, in = 0, out = 0;
    bool pooled = false;
  };
  std::vector<Layer> layers = {};
  bool norms = false;                    // a batch norm after each convolution
  std::vector<std::int64_t> dense = {};  // widths of the three linear layers
  std::int64_t grid = 7;                 // extents of the pooled features
};
VggLayout torchvision_vgg(const Weights& w);

}  // namespace lc
