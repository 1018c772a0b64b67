// Activations by the names that config.json has for them.
#pragma once

#include <string_view>
#include <vector>

#include "lightcone/core/tensor.h"

namespace lc {

// The names, those of transformers' ACT2FN: gelu, gelu_new, quick_gelu, relu, silu, tanh, ...
const std::vector<std::string_view>& activation_names();
// Applies an activation. Throws Error that names the nearest one if there is none of this name.
Tensor activate(std::string_view name, const Tensor& x);

}  // namespace lc
