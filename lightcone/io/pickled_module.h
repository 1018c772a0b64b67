// PickledModule: what a pickle of PyTorch says of a module beside its tensors.
#pragma once

#include <map>
#include <string>

namespace lc {

// A module of a pickled model. Nothing of its class is known or run.
struct PickledModule {
  std::string class_name;                         // "torch.nn.modules.conv.Conv2d"
  std::map<std::string, std::string> attributes;  // plain values as JSON: {"stride", "[2, 2]"}
};

}  // namespace lc
