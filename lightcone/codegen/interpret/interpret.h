// Runs kernel IR directly, without a compiler.
#pragma once

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

// Computes the iterations [begin, end) of the outermost output loop, like the generated code.
void interpret(const Kernel& k, const void* const* in, void* out, const std::int64_t* n, std::int64_t begin,
               std::int64_t end);

}  // namespace lc::codegen
