// Kernel IR as C text.
#pragma once

#include <string>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

// What differs between the C-like languages; CUDA, OpenCL and Metal add rows of their own.
struct Dialect {
  std::string_view function;     // what stands before the name of a kernel
  std::string_view parallel;     // pragma before a loop whose iterations are independent
  std::string_view unseen_zero;  // defines `unseen`, a zero the optimiser does not know to be one
};
inline constexpr Dialect kC = {"void", "#pragma GCC ivdep", "long unseen = 0; __asm__(\"\" : \"+r\"(unseen));"};

// Text that defines one function
//   void <name>(const void* const* in, void* out, const long* n, long begin, long end)
// computing iterations [begin, end) of the outermost output loop. It calls the functions of the C
// prelude. Kernels with equal text are one kernel: the name is given by the caller.
std::string render(const Kernel& k, std::string_view name, const Dialect& dialect = kC);

}  // namespace lc::codegen
