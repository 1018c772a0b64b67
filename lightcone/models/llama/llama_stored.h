// How the values of a trained Llama are written, whatever the file.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "lightcone/core/dtype.h"

namespace lc {

// Error for another type than f32, f16 and bf16.
void require_stored_type(std::string_view op, DType type);
// Rounded to nearest, ties to even.
std::vector<std::byte> stored_as(std::span<const float> values, DType type);

}  // namespace lc
