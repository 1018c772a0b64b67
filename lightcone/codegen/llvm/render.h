// Kernel IR as LLVM IR text, for machines with LLVM's library but no C compiler.
#pragma once

#include <string>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/codegen/llvm/text.h"

namespace lc::codegen {

// One function with the same signature and meaning as render()'s, and the declarations it needs;
// in a module of several functions, equal declarations may stand only once. Lanes are vectors.
std::string render_llvm(const Kernel& k, std::string_view name, const llvm::Target& target);

}  // namespace lc::codegen
