// Compiles LLVM IR text to callable functions with an installed LLVM library, which is loaded at run time through its C
// interface and never linked.
#pragma once

#include "lightcone/backends/cpu/jit/jit.h"
#include "lightcone/codegen/llvm/text.h"

namespace lc::backends::cpu {

// The LLVM library that was found.
struct LlvmFound {
  std::string path;             // path of the library; "" if no usable one exists
  std::string problem;          // why there is none, as a sentence
  bool typed_pointers = false;  // typed pointers, as in LLVM before 15
  bool avx512 = false;          // the target is AVX-512
  codegen::llvm::Target target(int vector) const { return {typed_pointers, avx512 && vector >= 64, vector}; }
};
// Finds the LLVM library that `options` or $LIGHTCONE_LLVM name, else the newest one installed.
LlvmFound find_llvm(const JitOptions& options = {});

// As jit(), for sources rendered by codegen::render_llvm(). Throws Error with LLVM's message if LLVM rejects a kernel,
// and CompilerUnfit if the library does not work.
Jitted jit_llvm(std::span<const Source> sources, const JitOptions& options = {});

}  // namespace lc::backends::cpu
