// The modules of a pickled model: their classes and the plain attributes that say what they compute.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "lightcone/io/checkpoints/torch/values.h"
#include "lightcone/io/pickled_module.h"

namespace lc::io::torch {

// Finds the modules below the root, by paths as those of their tensors; `left_out` is the key that names leave out. A
// module that several others have is found below each. Attributes are JSON; those of more than a few hundred bytes are
// left out, and so are modules beyond a number that no network has.
std::map<std::string, PickledModule, std::less<>> modules_below(Values& v, Id root, std::string_view left_out);

}  // namespace lc::io::torch
