// Shared by the writers of checkpoint formats.
#pragma once

#include <span>
#include <string_view>

#include "lightcone/io/checkpoints/save.h"

namespace lc::io {

// Error, of `op`, for bytes that are not as many as the shape needs, and for names that are there twice or reserved.
void check_tensors(std::string_view op, std::span<const TensorToSave> tensors,
                   std::span<const std::string_view> reserved = {});

}  // namespace lc::io
