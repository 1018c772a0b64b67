// What a kernel has to be told of a run.
#pragma once

#include <vector>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

// Kernel::sizes with the bounds that the kernel's expressions know of them, in the same order; 0 for one
// that no expression names, as for the bounds of a part that whoever runs the kernel sets.
std::vector<Dim> size_symbols(const Kernel& k);

}  // namespace lc::codegen
