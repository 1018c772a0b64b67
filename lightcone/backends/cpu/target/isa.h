// Instruction sets that the microkernels are compiled for.
#pragma once

#include <cstdint>
#include <vector>

namespace lc::backends::cpu {

// Baseline instruction sets. Extensions that only some of their CPUs have (VNNI, BF16, AMX; Arm's int8 and bf16
// products) are part of Target (target.h) and selected in microkernel.h.
enum class Isa : std::uint8_t { Generic, Avx2, Avx512, Neon };
// The best instruction set of this CPU. $LIGHTCONE_ISA=generic|avx2|avx512|neon lowers it. "avx512+vnni" keeps only the
// extensions listed, named as in str(Target); "avx512+none" keeps none. Throws Error for other values.
Isa detect_isa();
// All instruction sets up to detect_isa(), for tests.
std::vector<Isa> isas();
// The name of an instruction set, as in $LIGHTCONE_ISA.
const char* name(Isa isa);

}  // namespace lc::backends::cpu
