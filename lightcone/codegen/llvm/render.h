// Renders kernel IR as LLVM IR text, for machines that have LLVM's library but no C compiler.
#pragma once

#include <string>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/codegen/llvm/text.h"

namespace lc::codegen {

// Returns one function with the signature and meaning of render()'s, preceded by its declarations. Equal declarations
// must occur only once in a module of several functions. Lanes become vectors.
std::string render_llvm(const Kernel& k, std::string_view name, const llvm::Target& target);

}  // namespace lc::codegen
