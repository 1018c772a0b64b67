// The sizes that a kernel receives for a run.
#pragma once

#include <vector>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

// Returns the symbols of Kernel::sizes, in order, with the bounds that the kernel's expressions have for them. An
// unused symbol is 0, like the bounds of a column range that the caller sets.
std::vector<Dim> size_symbols(const Kernel& k);

}  // namespace lc::codegen
