// How the C compiler is told what generated loops are to become: nothing that matters is left to its tuning.
#pragma once

#include <string>
#include <vector>

#include "lightcone/backends/cpu/target/isa.h"

namespace lc::host {

// An option of GCC's own vectoriser; whatever is not called clang is given it, and may refuse (jit.cpp).
inline constexpr const char* kGccOption = "-fvect-cost-model=dynamic";

// The options of one call, between the compiler's name and the files. `vector`: bytes of the widest vectors.
std::vector<std::string> c_flags(const std::string& compiler, int vector, Isa isa);

}  // namespace lc::host
