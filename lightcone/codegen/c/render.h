// Renders kernel IR as C text.
#pragma once

#include <string>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

// The differences between C-like languages. CUDA, OpenCL and Metal have their own (simt/dialect.h).
struct Dialect {
  std::string_view function;  // text before the name of a kernel
  std::string_view parallel;  // pragma before a loop with independent iterations
  std::string_view rolled;    // pragma before a loop that must not be unrolled
  std::string_view hide;      // hides the value of the variable % from the optimiser
};
inline constexpr Dialect kC = {"void", "#pragma GCC ivdep", "#pragma GCC unroll 1", "__asm__(\"\" : \"+r\"(%));"};

// Returns the text of one function,
//   void <name>(const void* const* in, void* out, const long* n, long begin, long end)
// which computes the iterations [begin, end) of the outermost output loop. It calls the functions of the C prelude. The
// caller chooses the name: kernels with equal text are one kernel.
std::string render(const Kernel& k, std::string_view name, const Dialect& dialect = kC);

}  // namespace lc::codegen
