// Checks shared by the writers of checkpoint formats.
#pragma once

#include <span>
#include <string_view>

#include "lightcone/io/checkpoints/save.h"

namespace lc::io {

// Throws Error, with `op`, if the bytes of a tensor do not match its shape, if a name occurs twice or is reserved, and
// for block formats unless the file may have them. Without `have_bytes` it looks at no bytes.
void check_tensors(std::string_view op, std::span<const TensorToSave> tensors,
                   std::span<const std::string_view> reserved = {}, bool may_have_blocks = false,
                   bool have_bytes = true);

}  // namespace lc::io
