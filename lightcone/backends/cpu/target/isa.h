// Instruction sets that the microkernels are compiled for.
#pragma once

#include <vector>

#include "lightcone/backends/cpu/kernels/abi/tables.h"

namespace lc::backends::cpu {

// The best instruction set of this CPU. $LIGHTCONE_ISA=generic|avx2|avx512|neon lowers it. "avx512+vnni" keeps only the
// extensions listed, named as in str(Target); "avx512+none" keeps none. Throws Error for other values.
Isa detect_isa();
// All instruction sets up to detect_isa(), for tests.
std::vector<Isa> isas();
// The name of an instruction set, as in $LIGHTCONE_ISA.
const char* name(Isa isa);

}  // namespace lc::backends::cpu
