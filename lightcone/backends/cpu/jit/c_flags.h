// How the C compiler is told what generated loops are to become: nothing that matters is left to its tuning.
#pragma once

#include <string>
#include <vector>

#include "lightcone/backends/cpu/target/isa.h"

namespace lc::host {

// The options of one call, between the compiler's name and the files. `vector`: bytes of the widest vectors.
std::vector<std::string> c_flags(const std::string& compiler, int vector, Isa isa = detect_isa());

}  // namespace lc::host
