// Kernel IR run directly, without a compiler.
#pragma once

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

// What generated code computes: iterations [begin, end) of the outermost output loop.
void interpret(const Kernel& k, const void* const* in, void* out, const std::int64_t* n, std::int64_t begin,
               std::int64_t end);

}  // namespace lc::codegen
