// LLVM IR text to callable functions, by LLVM's own library where one is installed: loaded at run
// time through its C interface, never linked.
#pragma once

#include "lightcone/backends/cpu/jit/jit.h"
#include "lightcone/codegen/llvm/text.h"

namespace lc::backends::cpu {

struct LlvmFound {
  std::string path;             // of the library; "" when there is none that can be used
  std::string problem;          // why, as a sentence
  bool typed_pointers = false;  // the language of LLVM before 15
  bool avx512 = false;          // LLVM finds AVX-512F and DQ, and $LIGHTCONE_ISA does not forbid them
  codegen::llvm::Target target(int vector) const { return {typed_pointers, avx512 && vector >= 64, vector}; }
};
LlvmFound find_llvm(const JitOptions& options = {});

// As jit(), of sources by codegen::render_llvm(). Throws an Error that says what LLVM refused.
Jitted jit_llvm(std::span<const Source> sources, const JitOptions& options = {});

}  // namespace lc::backends::cpu
